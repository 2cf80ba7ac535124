"""The shell's own commands: those that move, set, read or evaluate."""

import re

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import resolve
from hermes.tools.approval.run_state import NOTHING, Command, CommandOutput, Handlers, Scope, kept
from hermes.tools.approval.stream_flow import feed, run_file, subscripts
from hermes.tools.approval.word_patterns import STAR


def cd(cmd: Command) -> CommandOutput:
    operands = [arg for arg in cmd.args if arg not in ("-P", "-L", "-e", "--")]
    if cmd.name == "popd" or operands[:1] == ["-"]:
        cmd.scope.cwd = cmd.scope.variables.get("OLDPWD", (UNKNOWN,))[0]
        return NOTHING
    previous = cmd.scope.cwd
    cmd.scope.cwd = resolve(operands[0] if operands else cmd.run.places.home, cmd.scope, cmd.run)
    cmd.scope.put("OLDPWD", (previous,))
    return NOTHING


def read_line(cmd: Command) -> CommandOutput:
    subscripts(cmd, *cmd.args)
    options = read_options(cmd.args, "adinNptu")
    text = cmd.stdin.text
    names = options.operands or ["REPLY"]
    if "a" in options.values:
        words = (UNKNOWN,) if text is None else tuple(_fields(text, cmd.scope))
        cmd.scope.put(options.values["a"], words)
        return NOTHING
    if text is None and "listed" in cmd.stdin.labels and len(names) == 1:
        text = STAR  # some file below the working directory
        cmd.run.found.add(f"{cmd.scope.cwd}/{STAR}")
    labels = cmd.stdin.labels or ({"dark"} if text is None else frozenset())
    first = None if text is None else text.split("\n", 1)[0]
    words_left = [] if first is None else _fields(first, cmd.scope, len(names) - 1)
    for number, name in enumerate(names):
        known = "" if number >= len(words_left) else words_left[number]
        cmd.scope.put(name, (UNKNOWN if first is None else known,))
        if labels:
            cmd.scope.labels[name] = frozenset(labels)
    return NOTHING


def _fields(text: str, scope: Scope, most: int = -1) -> list[str]:
    """The parts of a line as `read` takes it apart."""
    separators = "".join(scope.variables.get("IFS", ("",))).strip()
    if not separators or UNKNOWN in separators:
        return text.split(None, most)
    return re.split(f"[{re.escape(separators)}]", text.rstrip("\n"), maxsplit=max(most, 0))


def mapfile(cmd: Command) -> CommandOutput:
    subscripts(cmd, *cmd.args)
    options = read_options(cmd.args, "dnOsuCc")
    name = options.operands[0] if options.operands else "MAPFILE"
    text = cmd.stdin.text
    cmd.scope.put(name, (UNKNOWN,) if text is None else kept(text.splitlines()))
    return NOTHING


def set_arguments(cmd: Command) -> CommandOutput:
    if not cmd.args:
        return CommandOutput(None, frozenset({"environment"}))
    if "--" in cmd.args or cmd.args[0][:1] not in ("-", "+"):
        cmd.scope.args = tuple(cmd.args[cmd.args.index("--") + 1 :] if "--" in cmd.args else cmd.args)
        cmd.scope.choices.pop("@", None)
    if "+o" in cmd.args and "history" in cmd.args:
        cmd.run.add("defence_off", "switch off the shell history")
    return NOTHING


def shift(cmd: Command) -> CommandOutput:
    count = int(cmd.args[0][:4]) if cmd.args and cmd.args[0].isdigit() else 1
    cmd.scope.args = cmd.scope.args[count:]
    if "@" in cmd.scope.choices:
        cmd.scope.choices["@"] = tuple(args[count:] for args in cmd.scope.choices["@"])
    return NOTHING


def unset(cmd: Command) -> CommandOutput:
    subscripts(cmd, *cmd.args)
    for name in cmd.args:
        cmd.scope.variables.pop(name, None)
        cmd.scope.functions.pop(name, None)
        if name == "HISTFILE":
            cmd.run.add("defence_off", "switch off the shell history")
        elif not name.startswith("-"):
            cmd.scope.put(name, ("",))
    return NOTHING


def alias(cmd: Command) -> CommandOutput:
    for arg in cmd.args:
        name, equals, body = arg.partition("=")
        if equals and name:
            cmd.scope.aliases[name] = body
    return NOTHING


def evaluate(cmd: Command) -> CommandOutput:
    text = " ".join(cmd.args)
    run = cmd.run
    labels = run.substituted
    if "remote" in labels:
        run.add("remote_code", "evaluate downloaded text")
    elif "decoded" in labels:
        run.add("decoded_code", "evaluate decoded text")
    if UNKNOWN in text and not text.strip(UNKNOWN + " ;"):
        if not labels & {"remote", "decoded", "settings"}:
            run.add("decoded_code", "evaluate text that only exists while it runs")
        return CommandOutput()
    return run.script(text, cmd.scope, cmd.stdin, (*cmd.via, "eval"))


def source(cmd: Command) -> CommandOutput:
    if cmd.args:
        run_file(cmd, cmd.args[0], same_scope=True)
    elif cmd.stdin.labels:  # in fish
        feed(cmd, cmd.stdin, same_scope=True)
    return CommandOutput()


def trap(cmd: Command) -> CommandOutput:
    operands = read_options(cmd.args, stop=True).operands
    if len(operands) > 1 and operands[0] not in ("", "-"):
        cmd.run.script(operands[0], cmd.scope.fork(), NOTHING, (*cmd.via, "trap"))
        cmd.run.traps.append((operands[0], cmd.scope))
    return NOTHING


def hash_path(cmd: Command) -> CommandOutput:
    if cmd.args[:1] == ["-p"] and len(cmd.args) > 2:
        cmd.run.links[f"\1{cmd.args[2]}"] = cmd.args[1].rsplit("/", 1)[-1]
    return NOTHING


def history(cmd: Command) -> CommandOutput:
    if read_options(cmd.args, "dan").has("cd"):
        cmd.run.add("defence_off", "clear the shell history")
    return CommandOutput(None, frozenset({"private"}))


def umask(cmd: Command) -> CommandOutput:
    if cmd.args[:1] and cmd.args[0].lstrip("0") == "":
        cmd.run.add("world_writable", "every new file open to everybody")
    return CommandOutput()


def enable(cmd: Command) -> CommandOutput:
    if read_options(cmd.args, "f").has("f"):
        cmd.run.add("inline_code", "load new commands into the shell from a file")
    return NOTHING


def from_history(cmd: Command) -> CommandOutput:
    """fc: anything but a listing runs again what nobody sees here."""
    options = read_options(cmd.args, "e")
    if not options.has("l"):
        cmd.run.unknown("it runs a command of the history")
    return CommandOutput(None, frozenset({"private"}))


def inert(cmd: Command) -> CommandOutput:
    subscripts(cmd, *cmd.args)
    return CommandOutput()


HANDLERS: Handlers = {
    **dict.fromkeys(words("cd pushd popd chdir"), cd),
    "read": read_line,
    **dict.fromkeys(words("mapfile readarray"), mapfile),
    "set": set_arguments,
    "shift": shift,
    "unset": unset,
    "alias": alias,
    "eval": evaluate,
    **dict.fromkeys(words("source ."), source),
    "trap": trap,
    "hash": hash_path,
    "history": history,
    "umask": umask,
    "enable": enable,
    "fc": from_history,
    **dict.fromkeys(words("shopt let test [ ulimit return wait getopts"), inert),
}
