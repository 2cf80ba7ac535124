"""Expand one shell word as bash would, without running anything."""

import re
from typing import TYPE_CHECKING, NamedTuple

from hermes.tools.approval.command_text import UNKNOWN
from hermes.tools.approval.grammar import LIFTED
from hermes.tools.approval.word_patterns import MAX_FIELDS, MAX_TEXT, active, braces, closing, or_end

if TYPE_CHECKING:
    from hermes.tools.approval.params import Expansions

SIMPLE = re.compile(r"[\w./:=@%+,^-]+\Z", re.ASCII)
_RUN = re.compile(r"[^'\"\\$`*?\[~<>]+")
_CHARACTERS = 16  # of a word, that are looked at in one step
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9]|[@*#?$!_-]", re.ASCII)
_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


class ShellValues(NamedTuple):
    """What an expansion yields: one text, or several when it stands for a list (`$@`, arrays)."""

    texts: tuple[str, ...]
    is_list: bool = False


def expand(raw: str, shell: "Expansions") -> list[str]:
    """The fields that `raw` becomes. Active glob characters and unknown parts stay marked in them."""
    if SIMPLE.match(raw):
        return [raw]
    if "{" in raw:
        fields: list[str] = []
        words = braces(raw, shell.run.budget)
        for alternative in words:
            fields += _Word(alternative, shell).fields()
            if len(fields) > MAX_FIELDS:
                fields.append(UNKNOWN)
                break
        return fields
    return _Word(raw, shell).fields()


def expand_one(raw: str, shell: "Expansions") -> str:
    """`raw` where the shell does not split words: an assignment, a redirection, a here-string."""
    if SIMPLE.match(raw):
        return raw
    return _Word(raw, shell, splits=False).joined()


def expand_quoted(raw: str, shell: "Expansions") -> str:
    """`raw` as inside double quotes, such as the body of a here-document."""
    word = _Word('"', shell, splits=False)
    word.double(raw, 0, end=None)
    return word.joined()


def ansi(body: str) -> str:
    """The text of `$'body'` and of `echo -e` and `printf` escapes."""

    def one(found: re.Match[str]) -> str:
        hex2, uni4, uni8, octal, control, letter = found.groups()
        digits = hex2 or uni4 or uni8
        if digits:
            code = int(digits, 16)
            return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else ""
        if octal:
            return chr(int(octal, 8) & 0xFF) if int(octal, 8) & 0xFF else ""
        if control:
            return chr(ord(control.upper()) & 0x1F) if control != "@" else ""
        return _ANSI_LETTERS.get(letter, letter if letter in "\\'\"?" else "\\" + letter)

    return _ANSI_ESCAPE.sub(one, body)


class _Word:
    """One pass over a raw word; holds the field under construction and the finished ones."""

    def __init__(self, raw: str, shell: "Expansions", *, splits: bool = True) -> None:
        self.raw = raw
        self.shell = shell
        self.splits = splits
        self.done: list[str] = []
        self.part: list[str] = []
        self.is_real = False  # a quoted empty word is still a word
        shell.run.budget.spend(1 + len(raw) // _CHARACTERS)

    def fields(self) -> list[str]:
        self._scan()
        if self.part or self.is_real:
            self.done.append(_capped("".join(self.part)))
        return self.done

    def joined(self) -> str:
        if self.raw != '"':
            self._scan()
        self.done.append("".join(self.part))
        return _capped(" ".join(self.done))

    def _scan(self) -> None:
        raw, position = self.raw, 0
        while position < len(raw):
            run = _RUN.match(raw, position)
            if run:
                self._text(run.group())
                position = run.end()
                continue
            position = self._special(raw, position)

    def _special(self, raw: str, position: int) -> int:
        char = raw[position]
        if char == "'":
            end = or_end(raw, raw.find("'", position + 1))
            body = raw[position + 1 : end]
            self._text(self.shell.literal(body) if LIFTED in body else body)
            self.is_real = True
            return end + 1
        if char == '"':
            self.is_real = True
            return self.double(raw, position + 1)
        if char == "\\":
            if raw[position + 1 : position + 2] not in ("\n", ""):
                self._text(raw[position + 1])
            return position + 2
        if char == "$":
            return self._dollar(raw, position, quoted=False)
        if char == "`":
            return self._backtick(raw, position, quoted=False)
        if char == "~" and self._tilde_may_start(raw, position):
            return self._tilde(raw, position)
        if char in "<>" and raw.startswith("(", position + 1):
            end = closing(raw, position + 2)
            self._text(self.shell.process(raw[position + 2 : end], char))
            return end + 1
        self._text(active(char))
        return position + 1

    def double(self, raw: str, position: int, end: str | None = '"') -> int:
        start = position
        while position < len(raw):
            char = raw[position]
            if char == end:
                self._text(raw[start:position])
                return position + 1
            if char not in "\\$`":
                position += 1
                continue
            self._text(raw[start:position])
            if char == "\\":
                following = raw[position + 1 : position + 2]
                if following != "\n":
                    self._text(following if following and following in '$`"\\' else "\\" + following)
                position += 2
            elif char == "$":
                position = self._dollar(raw, position, quoted=True)
            else:
                position = self._backtick(raw, position, quoted=True)
            start = position
        self._text(raw[start:])
        return position

    def _dollar(self, raw: str, position: int, *, quoted: bool) -> int:
        following = raw[position + 1 : position + 2]
        if following == "'" and not quoted:
            end = position + 2
            while end < len(raw) and raw[end] != "'":
                end += 2 if raw[end] == "\\" else 1
            self._text(ansi(raw[position + 2 : end]))
            self.is_real = True
            return end + 1
        if following == '"' and not quoted:
            return position + 1
        if raw.startswith("((", position + 1):
            end = closing(raw, position + 2)
            if raw[end - 1 : end] == ")":
                self._value(ShellValues((self.shell.arithmetic(raw[position + 3 : end - 1]),)), quoted=quoted)
                return end + 1
        if following == "(":
            end = closing(raw, position + 2)
            self._value(ShellValues((self.shell.substitution(raw[position + 2 : end]),)), quoted=quoted)
            return end + 1
        if following == "{":
            end = closing(raw, position + 2, "{", "}")
            self._value(self.shell.parameter(raw[position + 2 : end]), quoted=quoted)
            return end + 1
        if following == "[":
            end = closing(raw, position + 2, "[", "]")
            self._value(ShellValues((self.shell.arithmetic(raw[position + 2 : end]),)), quoted=quoted)
            return end + 1
        name = _NAME.match(raw, position + 1)
        if name is None:
            self._text("$")
            return position + 1
        self._value(self.shell.parameter(name.group()), quoted=quoted)
        return name.end()

    def _backtick(self, raw: str, position: int, *, quoted: bool) -> int:
        end = position + 1
        while end < len(raw) and raw[end] != "`":
            end += 2 if raw[end] == "\\" else 1
        body = re.sub(r"\\([`$\\])", r"\1", raw[position + 1 : end])
        self._value(ShellValues((self.shell.substitution(body),)), quoted=quoted)
        return end + 1

    def _tilde_may_start(self, raw: str, position: int) -> bool:
        return position == 0 or (raw[position - 1] in "=:" and "=" in raw[:position])

    def _tilde(self, raw: str, position: int) -> int:
        end = position + 1
        while end < len(raw) and raw[end] not in "/:":
            if raw[end] in "'\"\\$`":
                self._text("~")
                return position + 1
            end += 1
        self._text(self.shell.home(raw[position + 1 : end]))
        return end

    def _text(self, text: str) -> None:
        if text:
            self.part.append(text)

    def _value(self, values: ShellValues, *, quoted: bool) -> None:
        if quoted or not self.splits:
            self._quoted_value(values, quoted=quoted)
            return
        separators = self.shell.separators()
        for number, text in enumerate(values.texts):
            if number:
                self._break()
            pieces = _split(text, separators)
            for index, piece in enumerate(pieces):
                if index:
                    self._break()
                self._text(active(piece))

    def _quoted_value(self, values: ShellValues, *, quoted: bool) -> None:
        if not (values.is_list and self.splits):
            self._text(" ".join(values.texts))
            return
        if quoted and not values.texts and self.raw in ('"$@"', '"${@}"'):
            self.is_real = False
        for number, text in enumerate(values.texts):
            if number:
                self.is_real = True
                self._break()
            self._text(text)

    def _break(self) -> None:
        if self.part or self.is_real:
            self.done.append(_capped("".join(self.part)))
        self.part = []
        self.is_real = False


def _split(text: str, separators: str) -> list[str]:
    if not any(char in text for char in separators):
        return [text]
    return re.split("[" + re.escape(separators) + "]+", text)


def _capped(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + UNKNOWN
