"""Programs that start another program: the command behind them is what is judged."""

import itertools
import re
from functools import cache, partial
from typing import NamedTuple

from hermes.tools.approval.command_text import UNKNOWN, quoted, words
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.options import after_options, read_options
from hermes.tools.approval.paths import deletes_since
from hermes.tools.approval.run_state import DARK, NOTHING, Command, CommandOutput, Handlers, Scope, kept
from hermes.tools.approval.stream_flow import feed, listed, read, run_file
from hermes.tools.approval.tables import rows

SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "yash", "pwsh"])
_MAX_STARTS = 12  # of one command with different words that are looked at
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class Wrapper(NamedTuple):
    """How to find the command behind a wrapper: its options with values, and how many operands come first."""

    short: str = ""
    long: frozenset[str] = frozenset()
    operands: int = 0


def _longs(names: str) -> frozenset[str]:
    return frozenset(names.split())


_RUNNERS = frozenset(
    words("uv poetry pipenv pdm rye hatch bundle conda mamba micromamba mise asdf npm pnpm yarn bun op doppler")
)


def wrapped(cmd: Command, wrapper: Wrapper) -> CommandOutput:
    rest = after_options(cmd.args, wrapper.short, wrapper.long)[wrapper.operands :]
    if "{" in rest[:2]:  # `time { a; }`, `coproc NAME { a; }`: keywords that the grammar takes for commands
        rest = rest[rest.index("{") + 1 :]
    return cmd.nested(rest)


@cache
def plain() -> Handlers:
    """The handlers of programs that are known by their options alone."""
    return {
        name: partial(wrapped, wrapper=Wrapper(short.strip(), _longs(longs), int(operands)))
        for names, short, longs, operands in (row.split(":") for row in rows("wrappers.txt"))
        for name in names.split()
    }


def sudo(cmd: Command) -> CommandOutput:
    rest = after_options(cmd.args, "CDghpRrtTUu", _longs("user group host prompt chdir close-from chroot role type"))
    options = read_options(cmd.args[: len(cmd.args) - len(rest)], "CDghpRrtTUu")
    if options.has("S", "stdin"):
        cmd.run.add("sudo_stdin", "sudo that reads a password from its input", severity=Severity.HARDLINE)
    elif options.has("As", "askpass", "shell") or (options.has("i", "login") and not rest):
        cmd.run.add("sudo_flags", "sudo that opens a shell or asks a helper for the password")
    if options.has("s", "shell") and rest:
        return cmd.shell(" ".join(rest))
    return _with_settings(cmd, rest) if rest else DARK


def env(cmd: Command) -> CommandOutput:
    args = list(cmd.args)
    for position, arg in enumerate(args):
        if arg.startswith(("-S", "--split-string")):
            text = arg[2:] if arg.startswith("-S") else arg.partition("=")[2]
            rest = args[position + 1 :]
            if not text and rest:
                text, rest = rest[0], rest[1:]
            return cmd.shell(" ".join([text, *map(quoted, rest)]))
        if not arg.startswith("-"):
            break
    rest = after_options(args, "uCa", _longs("unset chdir argv0"))
    return _with_settings(cmd, rest) if rest else CommandOutput(None, frozenset({"environment"}))


def _with_settings(cmd: Command, rest: list[str]) -> CommandOutput:
    """`NAME=value command`, as a shell takes it: what the settings do counts, too."""
    settings = list(itertools.takewhile(_ASSIGNMENT.match, rest))
    if not settings:
        return cmd.nested(rest)
    pairs = (setting.partition("=") for setting in settings)
    given = (f"{name}={quoted(value)}" if UNKNOWN not in value else f'{name}="${{_}}"' for name, _, value in pairs)
    text = " ".join([*given, *map(quoted, rest[len(settings) :])])
    return cmd.shell(text) if len(settings) < len(rest) else CommandOutput(None, frozenset({"environment"}))


def cross_env(cmd: Command) -> CommandOutput:
    return _with_settings(cmd, after_options(cmd.args))


def mpirun(cmd: Command) -> CommandOutput:
    """mpirun: long options with one dash; the first word that is no option starts the program."""
    skip = words("-n -np -c -H --host -hostfile --hostfile -x --map-by --bind-to -machinefile -ppn")
    position = 0
    while position < len(cmd.args) and cmd.args[position].startswith("-"):
        position += 2 if cmd.args[position] in skip else 1
    return cmd.nested(cmd.args[position:]) if position < len(cmd.args) else DARK


def command(cmd: Command) -> CommandOutput:
    if cmd.args[:1] and re.fullmatch(r"-[pvV]*[vV][pvV]*", cmd.args[0]):
        return CommandOutput(f"/usr/bin/{cmd.args[1]}\n" if len(cmd.args) > 1 else "")
    return cmd.nested(after_options(cmd.args))


def shell(cmd: Command) -> CommandOutput | None:
    args = [arg for arg in cmd.args if not re.fullmatch(r"\+[a-zA-Z]+", arg)]  # `+x` switches an option off
    options = read_options(args, "oO", _longs("rcfile init-file command"), stop=True)
    if options.has("n", "no-execute"):
        return None  # it only parses
    if "command" in options.values:
        return cmd.shell(options.values["command"])
    if options.has("c"):
        script = options.operands
        if not script:
            return None
        if UNKNOWN in script[0] and not script[0].strip(UNKNOWN + " "):
            feed(cmd, CommandOutput(None, cmd.run.substituted))
            return None
        inner = cmd.scope.fork()
        inner.args = tuple(script[2:])
        if len(script) > 1:
            inner.variables["0"] = (script[1],)
        return cmd.run.script(script[0], inner, cmd.stdin, (*cmd.via, f"{cmd.name} -c"))
    for start in (options.values.get("rcfile"), options.values.get("init-file")):
        if start is not None:
            run_file(cmd, start)
    if options.operands and not options.has("s"):
        cmd.scope.args, saved = tuple(options.operands[1:]), cmd.scope.args
        run_file(cmd, options.operands[0])
        cmd.scope.args = saved
        return None
    if options.has("", "version", "help"):
        return None
    if cmd.stdin is not NOTHING:
        feed(cmd, cmd.stdin)
    return CommandOutput(None, frozenset({"shell"}))


def xargs(cmd: Command) -> CommandOutput:
    rest = after_options(
        cmd.args, "adEeIiLlnPs", _longs("arg-file delimiter max-args max-procs replace max-lines max-chars")
    )
    options = read_options(
        cmd.args[: len(cmd.args) - len(rest)], "adEILnPs", _longs("arg-file delimiter max-args max-procs replace")
    )
    mark = options.value("I", "replace")
    listed = options.value("a", "arg-file")
    given = cmd.stdin if listed is None else read(listed, cmd.scope, cmd.run)
    text = given.text
    if text is None and "listed" in given.labels:
        text = "found\n"  # names of files below the working directory
        cmd.run.found.add(f"{cmd.scope.cwd}/found")
    # With -0 and -d blanks do not separate; a plain list has one name a line.
    split = (lambda whole: re.split(r"[\0\n]", whole.rstrip("\0\n"))) if options.has("0d", "null") else str.split
    fields = [UNKNOWN] if text is None else [*kept(split(text))]
    words = rest or ["echo"]
    cmd.run.substituted |= given.labels
    base = words[0].rsplit("/", 1)[-1]
    before = len(cmd.run.effects)
    if mark:
        lines = [UNKNOWN] if text is None else _some(text.splitlines()) or [""]
        outputs = [cmd.nested([word.replace(mark, line) for word in words], NOTHING) for line in lines]
        out = outputs[0] if len(outputs) == 1 else DARK
    elif base in SHELLS and text is None and len(words) > 1 and words[-1] in ("-c", "-lc"):
        feed(cmd, given)
        out = DARK
    else:
        out = cmd.nested([*words, *fields], NOTHING)
        each = options.value("n", "max-args", "L", "max-lines") or ""
        if each.isdigit() and 0 < int(each[:4]) < len(fields):  # then it is started again and again, with some of them
            size = int(each[:4])
            for number in [*range(0, len(fields), size)][:_MAX_STARTS]:
                cmd.nested([*words, *fields[number : number + size]], NOTHING)
            if len(fields) > size * _MAX_STARTS:
                cmd.nested([*words, UNKNOWN], NOTHING)
    if base in ("rm", "unlink", "shred", "rmdir") or deletes_since(cmd.run, before):
        cmd.run.add("xargs_delete", f"delete what the list before xargs names ({base})")
    return out


def _some(lines: list[str]) -> list[str]:
    """Some of the lines that a command is started with, one by one; an unknown one stands for the rest."""
    distinct = list(dict.fromkeys(lines))
    return distinct if len(distinct) <= _MAX_STARTS else [*distinct[:_MAX_STARTS], UNKNOWN]


def parallel(cmd: Command) -> CommandOutput:
    rest = after_options(cmd.args, "jnNLaIC", _longs("jobs colsep arg-file"))
    before: list[str] = []
    for word in rest:
        if word.startswith(":::"):
            break
        before.append(word)
    inputs = [word for word in rest[len(before) :] if not word.startswith(":::")]
    if not before:
        for script in inputs:
            cmd.shell(script, NOTHING)
        if not inputs:  # every line of its input is a command
            feed(cmd, cmd.stdin)
        return DARK
    text = re.sub(r"\{[./#%\d]*\}", "{}", " ".join(before))
    effects = len(cmd.run.effects)
    for value in _some(inputs) or [UNKNOWN]:
        whole = text.replace("{}", value) if "{}" in text else f"{text} {value}"
        cmd.shell(whole.replace(UNKNOWN, "${_}"), NOTHING)
    if deletes_since(cmd.run, effects):
        cmd.run.add("xargs_delete", "delete what parallel is given")
    return DARK


def ssh_options(cmd: Command) -> None:
    """`-o ProxyCommand=…` and its like: every option whose name ends so is a command on this side."""
    for position, arg in enumerate(cmd.args):
        option = cmd.args[position + 1] if arg == "-o" and position + 1 < len(cmd.args) else arg.removeprefix("-o")
        if re.match(r"(?i)\s*\w+Command\s*[= ]", option):
            cmd.shell(re.split(r"[= ]", option.strip(), maxsplit=1)[1], NOTHING)


def ssh(cmd: Command) -> CommandOutput:
    args = cmd.args
    ssh_options(cmd)
    rest = after_options(args, "BbcDEeFIiJLlmOopQRSWw")
    if not rest:
        return DARK
    host = rest[0].rpartition("@")[2]
    remote = after_options(rest[1:], "BbcDEeFIiJLlmOopQRSWw")
    cmd.run.add("network", f"connect to {host}", hosts=(host,), severity=Severity.NOTE)
    if cmd.stdin.labels & {"private", "environment"}:
        cmd.run.add("exfiltration", f"send private data to {host}", hosts=(host,))
    if not remote:
        if cmd.stdin.text:
            feed(cmd, cmd.stdin)
        return DARK
    there = Scope(cmd.run.places.home)
    cmd.run.script(" ".join(remote), there, cmd.stdin, (*cmd.via, f"ssh {host}"))
    return CommandOutput(None, frozenset({"remote"}))


def su(cmd: Command) -> CommandOutput | None:
    options = read_options(cmd.args, "cgGsTw", _longs("command session-command shell group"))
    text = options.value("c", "command", "session-command")
    if text is not None:
        return cmd.shell(text)
    return None


def by_flag(cmd: Command, flags: str) -> CommandOutput | None:
    """Programs that take a shell command as the value of an option: script -c, flock -c, watch, tmux, screen."""
    options = read_options(cmd.args, flags, stop=True)
    for letter in flags:
        if letter in options.values and letter in "ce":
            return cmd.shell(options.values[letter], NOTHING)
    rest = options.operands
    if cmd.name == "flock":
        rest = rest[1:]
        if rest[:1] == ["-c"]:
            return cmd.shell(" ".join(rest[1:]))
    if cmd.name == "script":
        return None
    return cmd.nested(rest) if rest else None


def watch(cmd: Command) -> CommandOutput | None:
    rest = after_options(cmd.args, "nd", _longs("interval"))
    return cmd.shell(" ".join(rest), NOTHING) if rest else None


def at(cmd: Command) -> CommandOutput | None:
    if not read_options(cmd.args, "fqt").has("lrc"):
        cmd.run.add("cron_write", "schedule a command for later")
        feed(cmd, cmd.stdin)
    return None


def runner(cmd: Command) -> CommandOutput | None:
    verbs = {"run", "exec", "x", "dlx", "--", "r"}
    for position, arg in enumerate(cmd.args):
        if arg in verbs and (arg == "--" or position < 2):
            rest = after_options(cmd.args[position + 1 :], "npe", _longs("name prefix with python package extra group"))
            if cmd.name in ("npm", "pnpm", "yarn", "bun") and arg in ("run", "r"):
                return None
            if rest and "=" in rest[0]:
                rest = rest[1:]
            return cmd.nested(rest) if rest else None
    return None


def npx(cmd: Command) -> CommandOutput | None:
    options = read_options(cmd.args, "pc", _longs("package call"), stop=True)
    if options.value("c", "call"):
        return cmd.shell(options.value("c", "call") or "", NOTHING)
    return cmd.nested(options.operands, NOTHING) if options.operands else None


def nix(cmd: Command) -> CommandOutput | None:
    options = read_options(cmd.args, "pAI", _longs("run command packages"))
    text = options.value("run", "command")
    return cmd.shell(text, NOTHING) if text else None


def searcher(cmd: Command) -> CommandOutput | None:
    """rg, ag, ack: with `-l` they list names."""
    options = read_options(cmd.args, "ABCegfmtTjrM", frozenset({"pre", "type", "glob", "regexp", "file", "max-count"}))
    names = options.operands[1:] if not options.has("", "files") else options.operands
    if options.has("l", "files", "files-with-matches", "files-without-match"):
        return CommandOutput(None, cmd.stdin.labels | listed(names))
    return None


HANDLERS: Handlers = {
    **dict.fromkeys(SHELLS, shell),
    **dict.fromkeys(_RUNNERS, runner),
    "sudo": sudo,
    **dict.fromkeys(words("cross-env cross-env-shell"), cross_env),
    **dict.fromkeys(words("mpirun mpiexec orterun"), mpirun),
    "env": env,
    "command": command,
    "xargs": xargs,
    "gxargs": xargs,
    "parallel": parallel,
    "ssh": ssh,
    "autossh": ssh,
    "sshpass": partial(wrapped, wrapper=Wrapper("pfdP")),
    "su": su,
    "runas": su,
    "script": partial(by_flag, flags="cEIOBTmo"),
    "flock": partial(by_flag, flags="wE"),
    "watch": watch,
    "at": at,
    "batch": at,
    **dict.fromkeys(words("npx bunx pnpx uvx"), npx),
    "pipx": runner,
    "nix-shell": nix,
    "entr": partial(wrapped, wrapper=Wrapper("")),
    **dict.fromkeys(words("rg ag ack"), searcher),
}
