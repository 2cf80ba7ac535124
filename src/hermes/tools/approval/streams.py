"""Text that reaches a shell or comes out of a file: where it is from decides how it is taken."""

from hermes.tools.approval.glob import plain
from hermes.tools.approval.paths import classify, is_credential, is_private, resolve
from hermes.tools.approval.state import Cmd, Out, Run, Scope
from hermes.tools.approval.text import UNKNOWN


def read(word: str, scope: Scope, run: Run) -> Out:
    """What reading the file `word` yields, as far as the script made it itself."""
    path = resolve(word, scope, run)
    if path in run.files:
        return run.files[path]
    if path == "/dev/null":
        return Out("")
    if path in ("/dev/zero", "/dev/urandom", "/dev/random"):
        return Out(None, frozenset({"file", "endless"}))
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        return Out(None, frozenset({"remote"}))
    if path.startswith(("/run/", "/var/run/")) and path.endswith(".pid"):
        return Out(None, frozenset({"file", "daemon"}))
    if classify(path, run.places) == "own":
        return Out(None, frozenset({"file", "private", "own"}))
    if is_private(path, run.places):
        credential = {"credential"} if is_credential(path, run.places) else set()
        return Out(None, frozenset({"file", "private", *credential}))
    return Out(None, frozenset({"file"}))


def listed(roots: list[str]) -> frozenset[str]:
    """The label of names of files below the working directory, where none of `roots` leads out of it."""
    leaves = any(root.startswith(("/", "~", "..", UNKNOWN)) or "/.." in root for root in roots)
    return frozenset() if leaves else frozenset({"listed"})


def pour(path: str, out: Out, scope: Scope, run: Run) -> None:
    """What is written to `>(…)` is read by the script in it; private data may leave there."""
    if path in run.sinks and out.labels & {"private", "environment"}:
        run.script(run.sinks[path], scope.fork(), out, (">()",))


def subscripts(cmd: Cmd, *words: str) -> None:
    """`test -v 'a[$(x)]'`: the shell runs what stands in the brackets of a name that it is given as a word."""
    for word in map(plain, words):
        if "[" in word and ("$(" in word or "`" in word):
            cmd.run.script(f'echo "{word}"', cmd.scope.fork(), Out(""), (*cmd.via, cmd.name))


def feed(cmd: Cmd, out: Out, *, same_scope: bool = False) -> None:
    """Judge a stream that a shell runs as a script."""
    run = cmd.run
    if "remote" in out.labels:
        run.add("remote_code", f"run downloaded text with {cmd.name}")
    if "decoded" in out.labels:
        run.add("decoded_code", f"run decoded text with {cmd.name}")
    text = out.text
    if text and text.strip(UNKNOWN + " \n\t"):
        scope = cmd.scope if same_scope else cmd.scope.fork()
        run.script(text, scope, Out(""), (*cmd.via, cmd.name))
    elif (text is None or UNKNOWN in text) and not out.labels & {"remote", "decoded", "file", "settings"}:
        run.add("decoded_code", f"run text that only exists while it runs with {cmd.name}")


def run_file(cmd: Cmd, word: str, *, same_scope: bool = False) -> None:
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
