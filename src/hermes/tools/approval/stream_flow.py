"""Text that reaches a shell or comes out of a file: where it is from decides how it is taken."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from hermes.tools.approval.command_text import UNKNOWN
from hermes.tools.approval.paths import EMPTIES, classify, is_credential, is_private, resolve, write_path
from hermes.tools.approval.run_state import DARK, AnalysisRun, Command, CommandOutput, Scope
from hermes.tools.approval.word_patterns import plain


def read(word: str, scope: Scope, run: AnalysisRun) -> CommandOutput:
    """What reading the file `word` yields, as far as the script made it itself."""
    path = resolve(word, scope, run)
    if path in run.files:
        return run.files[path]
    if path == "/dev/null":
        return CommandOutput("")
    if path in ("/dev/zero", "/dev/urandom", "/dev/random"):
        return CommandOutput(None, frozenset({"file", "endless"}))
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        return CommandOutput(None, frozenset({"remote"}))
    if path.startswith(("/run/", "/var/run/")) and path.endswith(".pid"):
        return CommandOutput(None, frozenset({"file", "daemon"}))
    if classify(path, run.places) == "own":
        return CommandOutput(None, frozenset({"file", "private", "own"}))
    if is_private(path, run.places):
        credential = {"credential"} if is_credential(path, run.places) else set()
        return CommandOutput(None, frozenset({"file", "private", *credential}))
    return CommandOutput(None, frozenset({"file"}))


def listed(roots: list[str]) -> frozenset[str]:
    """The label of names of files below the working directory, where none of `roots` leads out of it."""
    leaves = any(root.startswith(("/", "~", "..", UNKNOWN)) or "/.." in root for root in roots)
    return frozenset() if leaves else frozenset({"listed"})


def pour(path: str, out: CommandOutput, scope: Scope, run: AnalysisRun) -> None:
    """What is written to `>(…)` is read by the script in it; private data may leave there."""
    if path in run.sinks and out.labels & {"private", "environment"}:
        run.script(run.sinks[path], scope.fork(), out, (">()",))


def subscripts(cmd: Command, *words: str) -> None:
    """`test -v 'a[$(x)]'`: the shell runs what stands in the brackets of a name that it is given as a word."""
    for word in map(plain, words):
        if "[" in word and ("$(" in word or "`" in word):
            cmd.run.script(f'echo "{word}"', cmd.scope.fork(), CommandOutput(""), (*cmd.via, cmd.name))


def feed(cmd: Command, out: CommandOutput, *, same_scope: bool = False) -> None:
    """Judge a stream that a shell runs as a script."""
    run = cmd.run
    if "remote" in out.labels:
        run.add("remote_code", f"run downloaded text with {cmd.name}")
    if "decoded" in out.labels:
        run.add("decoded_code", f"run decoded text with {cmd.name}")
    text = out.text
    if text and text.strip(UNKNOWN + " \n\t"):
        scope = cmd.scope if same_scope else cmd.scope.fork()
        run.script(text, scope, CommandOutput(""), (*cmd.via, cmd.name))
    elif (text is None or UNKNOWN in text) and not out.labels & {"remote", "decoded", "file", "settings"}:
        run.add("decoded_code", f"run text that only exists while it runs with {cmd.name}")


def run_file(cmd: Command, word: str, *, same_scope: bool = False) -> None:
    """Judge a script file that is run: one this script wrote is read, others are named."""
    run = cmd.run
    if word in ("/dev/stdin", "-", "/proc/self/fd/0", "/dev/fd/0"):
        feed(cmd, cmd.stdin, same_scope=same_scope)
        return
    if UNKNOWN in word:
        if "settings" not in run.substituted:
            run.unknown("it runs a script whose path is only known when it runs")
        return
    path = resolve(word, cmd.scope, run)
    if path in run.files:
        feed(cmd, run.files[path], same_scope=same_scope)
    elif run.is_cloned(path):
        run.add("remote_code", f"run {plain(word)}, which was just downloaded", (plain(word),))
    elif path in run.executables:
        run.add("chmod_run", f"make {plain(word)} executable and run it", (plain(word),))
    else:
        run.list_script(path)


# Nobody starts one of these empty, but for a Python package.
_DATA = re.compile(r".*\.(?:db|sqlite3?|dump|rdb|mdb|kdbx|js|ts|go|rs|java|c)|(?!(?:.*/)?__init__\.py).*\.py")
_READS = frozenset({"dup", "<<", "<<<", "<"})


class Redirect(NamedTuple):
    """One redirection, resolved: `op` as written, `target` a path or None for a duplicated descriptor."""

    op: str
    fd: str
    target: str | None
    content: CommandOutput = DARK


def apply_writes(
    redirects: list[Redirect], out: CommandOutput, scope: Scope, run: AnalysisRun, argv: Sequence[str] = ()
) -> CommandOutput:
    """Record what the redirections of the command `argv` write; return what is left on standard output."""
    is_made = any(resolve(word, scope, run) in run.files for word in argv[1:])  # it prints what was made of the file
    for redirect in redirects:
        if redirect.target is None or redirect.op in _READS:
            continue
        path = resolve(redirect.target, scope, run)
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            _network(run, path, out)
            continue
        if redirect.op in (">", ">|") and path in run.found and not is_made:
            run.add("destroy_data", f"overwrite every file of {plain(redirect.target)}", (plain(redirect.target),))
        if redirect.op in (">", ">|") and out.text == "" and _DATA.fullmatch(redirect.target):
            run.add("destroy_data", f"empty {plain(redirect.target)}", (plain(redirect.target),))
        if "endless" in out.labels and classify(path, run.places) != "device":
            run.add("exhaustion", f"fill {plain(redirect.target)} without end", (plain(redirect.target),))
        how = EMPTIES if redirect.op in (">", ">|") and out.text == "" else f"{redirect.op} "
        write_path(run, scope, redirect.target, how + plain(redirect.target))
        pour(path, out, scope, run)
        if redirect.op != "<>" and redirect.fd in ("", "1") and path not in ("/dev/stdout", "/dev/stderr", "/dev/tty"):
            run.files[path] = out
            if "credential" in out.labels and classify(path, run.places) in ("workspace", "env"):
                run.add("exfiltration", f"put a credential into {plain(redirect.target)}", (plain(redirect.target),))
            out = CommandOutput("", out.labels)
    return out


def _network(run: AnalysisRun, path: str, out: CommandOutput) -> None:
    host = path.split("/")[3] if path.count("/") > 2 else "?"
    if out.labels & {"private", "environment"}:
        run.add("exfiltration", f"send private data to {host}", hosts=(host,))
    else:
        run.add("reverse_shell", f"open a connection to {host}", hosts=(host,))
