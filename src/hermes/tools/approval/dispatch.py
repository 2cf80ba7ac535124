"""From a simple command to its effects: find the program behind the word, and let its rule judge."""

import re
from collections.abc import Callable
from functools import partial

from hermes.tools.approval import builtins, exhaustion, wrappers
from hermes.tools.approval.assignments import given
from hermes.tools.approval.command_text import UNKNOWN, quoted, words
from hermes.tools.approval.effects import (
    carried_commands,
    code,
    containers,
    databases,
    files,
    git,
    interpreters,
    network,
    packages,
    processes,
    stream_editors,
    system,
    tools,
    written_paths,
)
from hermes.tools.approval.effects_model import SimpleCommand
from hermes.tools.approval.paths import place, resolve, shown
from hermes.tools.approval.printed_text import PURE, labelled
from hermes.tools.approval.run_state import DARK, NOTHING, AnalysisRun, Command, CommandOutput, Scope
from hermes.tools.approval.tables import by_name, names, word_list
from hermes.tools.approval.text_with_commands import keep_dangers, look_at_text
from hermes.tools.approval.word_patterns import has_glob, plain

Handler = Callable[[Command], CommandOutput | None]

_VERSION = re.compile(r"(?<=[a-z])-?\d[\d.]*\Z")
# Compilers for other machines, and names that only ever mean one thing.
_FAMILY = re.compile(
    r"[\w.]+(?:-[\w.]+)*-(?:gcc|g\+\+|ld|as|ar|nm|objdump|objcopy|size|strip|readelf|ranlib|cpp|gfortran|gdb|addr2line"
    r"|config)"
    r"|(?:llvm|clang|protoc-gen|create|eslint|cargo|pytest|sphinx|jupyter)-[\w-]+|__\w+"
)
_SYSTEM_FOLDER = re.compile(r"/(?:usr/|usr/local/|opt/homebrew/|snap/)?s?bin/[^/]+\Z")
# What they start comes from a package or an image that somebody chose, under whatever name.
_PACKAGES = frozenset(
    words(
        "npx bunx pnpx uvx pipx npm pnpm yarn bun poetry pipenv uv pdm hatch rye bundle conda mamba micromamba "
        "mise asdf docker podman nerdctl docker-compose podman-compose devbox nix"
    )
) | {"kubectl exec"}
_MANY_NAMES = frozenset(words("busybox toybox coreutils systemctl"))  # programs that act by the name of their link
# They keep the lines they are given, so that names of files are still names of files.
_FILTERS = frozenset(words("grep egrep fgrep rg sort uniq head tail tac shuf cat tee find fd fdfind git ls"))
# They pick some of the lines they are given, by a pattern with a name in it.
_PICKERS = frozenset(words("grep egrep fgrep rg awk gawk mawk sed"))
_PICKS = re.compile(r"[A-Za-z]{3}|:\d{2}|\d{4}")


_MODULES = (
    stream_editors,
    builtins,
    carried_commands,
    wrappers,
    interpreters,
    containers,
    databases,
    files,
    git,
    network,
    packages,
    processes,
    system,
)
_HANDLERS: dict[str, Handler] = PURE | {name: rule for module in _MODULES for name, rule in module.HANDLERS.items()}


def judge(argv: list[str], scope: Scope, stdin: CommandOutput, via: tuple[str, ...], run: AnalysisRun) -> CommandOutput:
    """Record the effects of one command and return what is known of its output."""
    name = argv[0]
    if UNKNOWN in name or has_glob(name):
        return _unresolved(argv, scope, stdin, via, run)
    if name in scope.aliases and name not in scope.stack:
        return _alias(argv, scope, stdin, via, run)
    shown = tuple(argv) if all(map(str.isascii, argv)) else tuple(plain(word) for word in argv)
    run.list_command(SimpleCommand(shown, scope.cwd, via))
    program = _program(name, scope, run)
    if not _has_rule(program):
        program = _meant(program)
        if program.startswith("git-"):
            program, argv = "git", ["git", program[4:], *argv[1:]]
    if name.startswith("/etc/init.d/"):
        program = "service"
    handler = _HANDLERS.get(program) or wrappers.plain().get(program)
    if program in by_name("arguments") and scope.variables:
        argv = [*argv[:1], *given(program, argv[1:], scope, run)]
    cmd = Command(program, argv[1:], scope, stdin, via, run)
    prints = program in tools.rules() and tools.judge_words(cmd)
    if handler is None and any("/dev/" in word for word in argv):
        system.judge_device(cmd)
    if "/" in name and run.places.real is not None:
        _behind_link(cmd, name)
    _options(cmd)
    written_paths.judge_written(cmd, has_rule=handler is not None)
    if handler is None:
        _without_handler(cmd, name)
    out = (handler(cmd) if handler is not None else None) or labelled(cmd, DARK)
    out = exhaustion.judge_stream(cmd, out)
    if prints:
        return CommandOutput(None, out.labels | {"private"})
    if program in word_list("dispatch.settings") and (
        not cmd.args or cmd.args[0] in word_list("dispatch.settings_verbs") or cmd.args[0].startswith("shell.")
    ):
        return CommandOutput(None, frozenset({"settings"}))
    if "everyone" in out.labels and program in _PICKERS and any(map(_PICKS.search, cmd.args)):
        out = CommandOutput(out.text, out.labels - {"everyone"})
    if "listed" in out.labels and program not in _FILTERS:
        return CommandOutput(out.text, out.labels - {"listed"})
    return out


def _meant(program: str) -> str:
    """The name that a program is known by: `gcc-12` is gcc, `mkfs.ext4` is mkfs."""
    if program in names("programs.txt"):
        return program
    if program.startswith(("mkfs.", "mkfs_", "newfs")):
        return "mkfs"
    return _VERSION.sub("", program.lower().removesuffix(".exe"))


def _options(cmd: Command) -> None:
    """What options do in programs that may have a rule of their own: carry commands, load code, write."""
    if cmd.name in word_list("dispatch.carriers"):
        look_at_text(cmd, " ".join(cmd.args))
    if cmd.name in by_name("command"):
        carried_commands.judge_carried(cmd)
    carried_commands.judge_loaded(cmd)
    if cmd.name in tools.CLOUDS:
        tools.judge_cloud(cmd)


def _without_handler(cmd: Command, written_paths: str) -> None:
    if cmd.name in word_list("dispatch.inert"):
        return
    if not _is_known(cmd, written_paths):
        cmd.run.add("unknown_program", f"nobody here knows the program {plain(cmd.name)}")
    look_at_text(cmd, " ".join(cmd.args))
    if cmd.name in word_list("dispatch.builders") and any(
        resolve(word, cmd.scope, cmd.run) in cmd.run.files for word in cmd.args
    ):
        cmd.run.add("decoded_code", f"build by a file that the command itself wrote: {cmd.line}")
    if "--" in cmd.args[:-1]:
        keep_dangers(cmd, partial(cmd.nested, cmd.args[cmd.args.index("--") + 1 :], NOTHING))
    if cmd.name not in tools.rules():
        tools.judge_verb(cmd)
    _handed_over(cmd)


def _is_known(cmd: Command, written_paths: str) -> bool:
    """Whether the program is one that people use every day, a file of the project, or a package's own command."""
    if cmd.name in tools.rules() or cmd.name in names("programs.txt") or _FAMILY.fullmatch(cmd.name):
        return True
    if not cmd.name.strip("".join(map(chr, range(33)))):
        return True  # a key such as Ctrl-C, typed into a shell
    if "/" in written_paths:
        return not _SYSTEM_FOLDER.match(resolve(written_paths, cmd.scope, cmd.run))
    return any(step in _PACKAGES for step in cmd.via)


def _handed_over(cmd: Command) -> None:
    """A program without a rule is given a credential, the runtime's own files or its processes."""
    if "credential" in cmd.stdin.labels:
        cmd.run.add("exfiltration", f"hand a credential to {plain(cmd.name)}")
    if "own" in cmd.run.substituted:
        cmd.add("self_kill")
    for word in cmd.args:
        if "/" in word and place(cmd, word.rpartition("=")[2]) == "own":
            cmd.add("own_files", shown(cmd, word.rpartition("=")[2]), path_class="own")


def _unresolved(
    argv: list[str], scope: Scope, stdin: CommandOutput, via: tuple[str, ...], run: AnalysisRun
) -> CommandOutput:
    if "remote" in run.substituted:
        run.add("remote_code", "run downloaded text as a command")
    elif has_glob(argv[0]) and argv[0][:1] not in "/.~" and "/" not in argv[0] and UNKNOWN not in argv[0]:
        run.unknown(f"the command's name is a pattern ({plain(argv[0])})")
    else:
        run.unknown("the name of a command is only known when it runs")
    if has_glob(argv[0]) and "/" in argv[0] and not has_glob(argv[0].rsplit("/", 1)[-1]):
        run.start([argv[0].rsplit("/", 1)[-1], *argv[1:]], scope, stdin, via)
    # It may be empty or a prefix such as sudo: what follows is judged as a command too.
    if len(argv) > 1 and UNKNOWN in argv[0] and not argv[1].startswith("-"):
        run.start(argv[1:], scope, stdin, via)
    return DARK


def _alias(
    argv: list[str], scope: Scope, stdin: CommandOutput, via: tuple[str, ...], run: AnalysisRun
) -> CommandOutput:
    saved = scope.stack
    scope.stack = (*saved, argv[0])
    rest = " ".join(map(quoted, argv[1:]))
    out = run.script(f"{scope.aliases[argv[0]]} {rest}", scope, stdin, (*via, "alias"))
    scope.stack = saved
    return out


def _program(name: str, scope: Scope, run: AnalysisRun) -> str:
    if "/" not in name:
        return run.links.get(f"\1{name}", name)
    path = resolve(name, scope, run)
    if path in run.files:
        _run_made_file(path, scope, run)
    elif run.is_cloned(path):
        run.add("remote_code", f"run {plain(name)}, which was just downloaded", (plain(name),))
    elif path in run.executables:
        run.add("chmod_run", f"make {plain(name)} executable and run it", (plain(name),))
    if name.startswith((".", "/", "~")):
        run.list_script(path)
    own = name.rsplit("/", 1)[-1]
    # A link on disk may stand for a program of many names (reboot for systemctl): the name that was written counts
    # when it means something, else what the link leads to.
    return own if (_has_rule(own) or _has_rule(_meant(own))) and not run.links else path.rsplit("/", 1)[-1] or name


def _has_rule(program: str) -> bool:
    return program in _HANDLERS or program in wrappers.plain() or program in tools.rules()


def _behind_link(cmd: Command, written_paths: str) -> None:
    """What a link on disk leads to is judged as well: it may have any name, `ls` for one that deletes."""
    target = resolve(written_paths, cmd.scope, cmd.run).rsplit("/", 1)[-1]
    if target != cmd.name and target not in _MANY_NAMES and _has_rule(target):
        keep_dangers(cmd, partial(cmd.nested, [target, *cmd.args]))


def _run_made_file(path: str, scope: Scope, run: AnalysisRun) -> None:
    out = run.files[path]
    if "remote" in out.labels:
        run.add("remote_code", "run a file that was just downloaded", (plain(path),))
    elif "decoded" in out.labels:
        run.add("decoded_code", "run a file that was just decoded", (plain(path),))
    elif path in run.executables:
        run.add("chmod_run", "make a file executable and run it", (plain(path),))
    if out.text:
        first = out.text.split("\n", 1)[0]
        if first.startswith("#!") and "sh" not in first:
            code.inline(Command(first.rsplit("/", 1)[-1].split()[-1], [], scope, NOTHING, (), run), out.text)
        else:
            run.script(out.text, scope.fork(), NOTHING, ("script",))
