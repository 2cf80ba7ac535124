"""sed by its own grammar: what a script writes and runs; one that does not read as sed asks."""

import re
from collections.abc import Iterator

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import writes
from hermes.tools.approval.printed_text import labelled, sed
from hermes.tools.approval.run_state import DARK, NOTHING, Command, CommandOutput, Handlers
from hermes.tools.approval.stream_flow import read

_ADDRESS = re.compile(
    r"\s*(?:(?:[\d$]+|[+~]\d+|/(?:\\.|\[[^\]\n]*\]|[^/\\\n])*/[IM]*|\\([^\w\s\\])(?:\\.|(?!\1)[^\\\n])*\1[IM]*)\s*[,~]?\s*)*!?\s*"
)
_TO_END = re.compile(r"[^\n]*")
_TO_NEXT = re.compile(r"[^;}\n]*")
_SUBSTITUTE = re.compile(
    r"s([^\n\\])((?:\\.|\[[^\]\n]*\]|(?!\1)[^\\])*)\1((?:\\.|(?!\1)[^\\])*)\1([gpiImMe0-9]*)(?:w\s*([^\n]*))?",
    re.DOTALL,
)
_TRANSLATE = re.compile(r"y([^\n\\])(?:\\.|(?!\1)[^\\])*\1(?:\\.|(?!\1)[^\\])*\1", re.DOTALL)
_TEXT = re.compile(r"[aic]\s*(?:\\\n)?(?:[^\n\\]|\\.)*\\?", re.DOTALL)

_PLAIN = {  # by their letters, the commands that neither write nor run
    "#": _TO_END,
    "{=dDgGhHnNpPxzF": re.compile("."),
    "btTqQlLrRv:": _TO_NEXT,
    "aic": _TEXT,
    "y": _TRANSLATE,
}


def edit(cmd: Command) -> CommandOutput | None:
    options = read_options(cmd.args, "efl", frozenset({"expression", "file", "line-length"}))
    named = options.value("f", "file")
    given = _expressions(cmd.args)
    files = options.operands
    if not given and named is None:
        given, files = files[:1], files[1:]
    if named is not None:
        given.append((cmd.stdin if named in ("-", "/dev/stdin") else read(named, cmd.scope, cmd.run)).text or "")
    if options.has("iI", "in-place"):
        writes(cmd, *files)
    script = "\n".join(given)
    if options.has("iI", "in-place") and re.fullmatch(r"\s*(?:1,\$)?\s*d\s*", script):
        cmd.run.add("destroy_data", f"every line goes: {cmd.line}")
    for action, value in _actions(script):
        if action == "write":
            writes(cmd, value)
        elif action == "run" and value.strip():
            cmd.shell(value, NOTHING)
        elif action == "run":
            cmd.run.add("decoded_code", "sed runs the edited text as a command")
        else:
            cmd.run.unknown("a sed script that does not read as one")
    return sed(cmd) or labelled(cmd, DARK)


def _expressions(args: list[str]) -> list[str]:
    found: list[str] = []
    for position, arg in enumerate(args):
        if arg == "--":
            break
        if arg == "--expression" or re.fullmatch(r"-[nErsuzi]*e", arg):
            found += args[position + 1 : position + 2]
        elif arg.startswith("--expression="):
            found.append(arg.partition("=")[2])
        elif glued := re.match(r"-[nErsuz]*e(.+)", arg, re.DOTALL):
            found.append(glued[1])
    return found


def _actions(script: str) -> Iterator[tuple[str, str]]:
    """("write", file), ("run", command) and ("unread", rest) of a script, in its order."""
    position = 0
    while position < len(script):
        if script[position] in " \t\n;}":
            position += 1
            continue
        address = _ADDRESS.match(script, position)
        position = address.end() if address else position
        letter = script[position : position + 1]
        if letter in ("", "\n", ";"):
            continue
        if pattern := next((pattern for letters, pattern in _PLAIN.items() if letter in letters), None):
            found = pattern.match(script, position)
        elif letter in "wWe":
            found = _TO_END.match(script, position)
            if found:
                yield ("run" if letter == "e" else "write"), found[0][1:].strip()
        elif letter == "s" and (found := _SUBSTITUTE.match(script, position)):
            if "e" in found[4]:
                yield "run", found[3] if not re.search(r"[\\&]", found[3]) else ""
                yield "run", ""
            if found[5]:
                yield "write", found[5].strip()
        else:
            found = None
        if found is None:
            if UNKNOWN not in script:  # what the shell would put there may be half of a command
                yield "unread", script[position:]
            return
        position = max(found.end(), position + 1)


HANDLERS: Handlers = dict.fromkeys(words("sed gsed"), edit)
