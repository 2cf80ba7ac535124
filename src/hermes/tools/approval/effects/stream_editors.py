"""awk and sed, each by its own grammar: the programs they start, the files they write.

A command or a file that is only known when it runs asks, and so does a script that does not read as sed.
"""

import re
from collections.abc import Iterator

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.effects.processes import names_own
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import writes
from hermes.tools.approval.printed_text import labelled, sed
from hermes.tools.approval.run_state import DARK, NOTHING, Command, CommandOutput, Handlers
from hermes.tools.approval.stream_flow import feed, read, run_file

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


_STRING = r'"(?:[^"\\]|\\.)*"'
_TOKENS = re.compile(
    rf"(?P<string>{_STRING})|\#[^\n]*|(?P<name>@?[A-Za-z_]\w*)|(?P<op>\|\||\|&|>=|>>|&&|\S)|(?P<space>\n)", re.DOTALL
)
_PATTERN = re.compile(rf"{_STRING}|(?P<slash>/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/)", re.DOTALL)
_BEFORE_PATTERN = re.compile(r"(?:\A|[(,;{}!&|~\n])\s*\Z")
_SHELL = re.compile(r"\s*(?:exec\s+)?(?:/(?:usr/)?bin/)?(?:ba|da|z|k)?sh\b")
_ESCAPES = {"n": "\n", "t": "\t"}
_SOUGHT = re.compile(r'/([^/\n]+)/|"([^"\n]+)"')
_ENDS = frozenset({";", "}", "\n", ")", "&&", "||", ","})


def awk(cmd: Command) -> CommandOutput | None:
    options = read_options(
        cmd.args, "Ffvieo", frozenset({"include", "source", "file", "assign", "field-separator"}), stop=True
    )
    name = options.value("f", "file")
    program = options.value("e", "source")
    operands = options.operands
    if name is not None:
        program = _from_file(cmd, name)
    elif program is None:
        program, operands = (operands[0] if operands else ""), operands[1:]
    if options.value("i", "include") == "inplace":
        writes(cmd, *operands)
    labels = cmd.stdin.labels
    if "process" in labels and names_own([found for pair in _SOUGHT.findall(program) for found in pair if found]):
        labels |= {"own"}
    for word in operands:
        labels |= read(word, cmd.scope, cmd.run).labels
    if UNKNOWN in program and not program.strip(UNKNOWN + " "):
        cmd.run.add("inline_code", f"run code that only exists while it runs with {cmd.name}")
    given = [arg.partition("=") for arg in cmd.args if re.match(r"[A-Za-z_]\w*=", arg)]
    _AwkProgram(cmd, program, labels, {name: value for name, _, value in given}).judge()
    printed = re.fullmatch(r"\s*BEGIN\s*\{\s*print\s+\"([^\"\\]*)\"\s*;?\s*\}\s*", program)
    return CommandOutput(printed[1] + "\n") if printed else CommandOutput(None, labels - {"file"})


def _from_file(cmd: Command, name: str) -> str:
    source = cmd.stdin if name in ("-", "/dev/stdin") else read(name, cmd.scope, cmd.run)
    if source.text is None:
        run_file(cmd, name)
    return source.text or ""


def _without_patterns(text: str) -> str:
    """The program with an empty string for each search pattern; a slash elsewhere divides."""

    def one(found: re.Match[str]) -> str:
        is_pattern = found["slash"] and _BEFORE_PATTERN.search(text[max(0, found.start() - 8) : found.start()])
        return '""' if is_pattern else found[0]

    return _PATTERN.sub(one, text)


class _AwkProgram:
    def __init__(self, cmd: Command, text: str, labels: frozenset[str], given: dict[str, str]) -> None:
        self.cmd = cmd
        self.labels = labels
        self.text = text
        self.parts = [found for found in _TOKENS.finditer(_without_patterns(text)) if found.lastgroup]
        self.known = dict(given)
        for number in range(len(self.parts) - 2):
            if self.parts[number].lastgroup == "name" and self._at(number + 1) == "=" and self._at(number + 2) != "=":
                value = self._value(number + 2, _ENDS)
                if value is not None:
                    self.known[self._at(number)] = value

    def _at(self, number: int) -> str:
        return self.parts[number].group() if 0 <= number < len(self.parts) else ""

    def judge(self) -> None:
        is_print = False
        depth = 0
        for number, part in enumerate(self.parts):
            text = part.group()
            if text in ("print", "printf"):
                is_print, depth = True, 0
            elif text in (";", "}", "\n"):
                is_print = False
            elif text in "()":
                depth += 1 if text == "(" else -1
            if text == "system":
                self._runs(number + 1, _ENDS - {")"} | {")"})
            elif text == "|&" or text.startswith("@") or "/inet" in text:
                self._ask("awk loads code or talks to a program or a host")
            elif text == "|" and self._at(number + 1) == "getline":
                self._runs_before(number)
            elif text == "|":
                self._pipes(number + 1)
            elif text in (">", ">>") and is_print and depth <= 0:
                self._writes(number + 1)
        if re.search(r"while\s*\(\s*1\s*\)|for\s*\(\s*;\s*;", self.text) and re.search(
            r"system\s*\(\"[^\"]*&\"", self.text
        ):
            self.cmd.add("fork_bomb", severity=Severity.HARDLINE)

    def _ask(self, why: str) -> None:
        self.cmd.run.add("inline_code", f"{why}: {self.cmd.line}")

    def _value(self, number: int, ends: frozenset[str]) -> str | None:
        """The text of literals and known names side by side up to one of `ends`; None when anything else takes part."""
        text = ""
        seen = False
        while number < len(self.parts) and self._at(number) not in ends:
            word = self._at(number)
            if self.parts[number].lastgroup == "string":
                text += re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), word[1:-1])
            elif word in self.known:
                text += self.known[word]
            elif word != "(":
                return None
            seen = True
            number += 1
        return text if seen else None

    def _runs(self, number: int, ends: frozenset[str]) -> None:
        text = self._value(number, ends)
        if text is None:
            self._ask("awk runs text that is only known when it runs")
        else:
            self.cmd.shell(text, NOTHING)

    def _runs_before(self, number: int) -> None:
        start = number - 1
        while start >= 0 and (self.parts[start].lastgroup == "string" or self._at(start) in self.known):
            start -= 1
        if start == number - 1 or self._at(start) not in ("", "{", "}", ";", "(", "\n", "!"):
            self._ask("awk runs text that is only known when it runs")
        else:
            self._runs(start + 1, frozenset({"|"}))

    def _pipes(self, number: int) -> None:
        text = self._value(number, _ENDS)
        if text is None:
            self._ask("awk pipes to a program that is only known when it runs")
        elif _SHELL.match(text):
            printed = re.search(r"print\s+\"((?:[^\"\\]|\\.)*)\"", self.text)
            feed(self.cmd, CommandOutput(printed[1] if printed else None))
        else:
            self.cmd.shell(text, CommandOutput(None, self.labels))

    def _writes(self, number: int) -> None:
        text = self._value(number, _ENDS)
        if text is not None:
            writes(self.cmd, text)
        elif not self._names_by_field(number):
            self.cmd.run.unknown(f"awk writes to a path that is only known when it runs ({self.cmd.line})")

    def _names_by_field(self, number: int) -> bool:
        """`print > $1 ".txt"`: files in the working directory, one for each value."""
        rest = []
        while number < len(self.parts) and self._at(number) not in _ENDS - {")"}:
            rest.append(self.parts[number])
            number += 1
        strings = [part.group() for part in rest if part.lastgroup == "string"]
        return bool(strings) and not any(text.startswith(('"/', '"~', '"..')) for text in strings)


HANDLERS: Handlers = {
    **dict.fromkeys(words("awk gawk mawk nawk original-awk goawk"), awk),
    **dict.fromkeys(words("sed gsed"), edit),
}
