"""Cut text into tokens, and give each the pattern that finds it in a file under a level of normalisation."""

import re
import unicodedata
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

TokenKind: TypeAlias = Literal["indent", "words", "break"]


class Level(StrEnum):
    """How far a match may differ from the text that was asked for; each level allows what those before it do."""

    EXACT = "exact"
    LINE_ENDINGS = "line_endings"  # line endings, spaces at the ends of lines, a missing final newline
    INDENTATION = "indentation"  # whole lines; each indentation stands for one other, throughout
    LOOKALIKES = "escapes_and_lookalikes"  # \n or \" written out, curly quotes, dashes, no-break spaces, accents


class Shape(NamedTuple):
    """What a pattern lets differ beyond line endings."""

    indent: bool
    lookalikes: bool


class TextToken(NamedTuple):
    """A piece of one line. `text` is as written; two tokens of one kind and text are the same."""

    kind: TokenKind
    text: str


Line: TypeAlias = tuple[TextToken, ...]

# Atomic, or \r\n could be taken for two line breaks.
_EOL = r"(?>\r\n|\n|\r)"
_AT_LINE_START = r"(?:(?<=[\r\n])|\A)"
_AT_LINE_END = r"[ \t]*+(?=[\r\n]|\Z)"
_BREAKS = r"(\r\n|\n|\r)"
# Combining marks stay with their letter: a composed letter in the file is one character.
_WORDS = r"(?s)\\.|\.\.\.|[\w\u0300-\u036f]+|[ \t]+|."
_CLUSTER = r"(?s)\\.|\.\.\.|.[\u0300-\u036f]*"
_CLASSES = (
    '"\u201c\u201d\u201e\u201f\u2033',
    "'\u2018\u2019\u201a\u201b\u2032\u00b4",
    "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    " \u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000",
)
_CLASS_OF = {character: "[" + re.escape(members) + "]" for members in _CLASSES for character in members}
_QUOTES = frozenset(_CLASSES[0] + _CLASSES[1])
_ESCAPES = {r"\n": rf"(?>\\n|{_EOL})", r"\r": rf"(?>\\r|{_EOL})", r"\t": r"(?>\\t|\t)", r"\\": r"\\{1,2}+"}
_ELLIPSIS = r"(?:\.\.\.|…)"


def lines_of(text: str) -> list[Line]:
    """The lines of `text` as tokens. A text that ends in a newline has no empty line after it."""
    lines: list[Line] = []
    parts = re.split(_BREAKS, text)  # a line, its break, a line, its break, ..., what is left
    for content, ending in zip(parts[::2], [*parts[1::2], ""], strict=True):
        words = content.strip(" \t")
        if not words:
            # A blank line has no indentation of its own: its spaces count as trailing.
            lines.append((TextToken("break", content + ending),))
            continue
        indent = content[: len(content) - len(content.lstrip(" \t"))]
        tail = content[len(indent) + len(words) :] + ending
        lines.append(
            (
                TextToken("indent", indent),
                *(TextToken("words", word) for word in re.findall(_WORDS, words)),
                TextToken("break", tail),
            )
        )
    if lines and lines[-1] == (TextToken("break", ""),):
        lines.pop()
    return lines


def pattern_of(lines: list[Line], shape: Shape) -> str:
    """A regular expression for the text that `lines` were cut from, with what `shape` allows to differ."""
    parts = [_AT_LINE_START] if shape.indent else []
    for index, line in enumerate(lines):
        is_first, is_last = index == 0, index == len(lines) - 1
        for token in line:
            is_opening = is_first and token is line[0]
            parts.append(token_pattern(token, shape, is_opening=is_opening, is_last_line=is_last))
    return "".join(parts)


def token_pattern(token: TextToken, shape: Shape, *, is_opening: bool = False, is_last_line: bool = False) -> str:
    """The pattern of one token. Every token takes a definite piece, so walking token by token finds the same match."""
    match token.kind:
        case "indent":
            return r"[ \t]*+" if shape.indent else re.escape(token.text)
        case "words":
            return _lookalikes(token.text) if shape.lookalikes else re.escape(token.text)
        case "break":
            return _break_pattern(token, shape, is_opening, is_last_line)


def has_newline(token: TextToken) -> bool:
    return token.text.endswith(("\n", "\r"))


def _break_pattern(token: TextToken, shape: Shape, is_opening: bool, is_last_line: bool) -> str:
    if not has_newline(token):
        return _AT_LINE_END if token.text or shape.indent else ""
    # At the very start, spaces before the break lie outside what was asked for.
    spaces = "" if is_opening else r"[ \t]*+"
    endings = [_EOL]
    if shape.lookalikes and not is_opening:
        endings.append(r"\\n")
    if is_last_line and not is_opening:
        endings.append(r"\Z")
    return f"{spaces}(?>{'|'.join(endings)})"


def _lookalikes(text: str) -> str:
    return "".join(_character(found.group()) for found in re.finditer(_CLUSTER, text))


def _character(text: str) -> str:
    if text in _ESCAPES:
        return _ESCAPES[text]
    if text in ("...", "…"):
        return _ELLIPSIS
    bare = text[1:] if text[0] == "\\" and text[1:] in _QUOTES else text
    if bare in _QUOTES:
        return r"\\?+" + _CLASS_OF[bare]
    if text in _CLASS_OF:
        return _CLASS_OF[text]
    if text == "\t":
        return r"(?>\t|\\t)"
    if text[0] == "\\" and len(text) == 2:
        return r"\\{1,2}+" + re.escape(text[1])
    forms = {text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)}
    if len(forms) == 1:
        return re.escape(text)
    return "(?:" + "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)) + ")"
