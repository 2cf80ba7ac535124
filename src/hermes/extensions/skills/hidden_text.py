"""Characters that a person does not see and a model reads. Pure."""

import re
import unicodedata
from collections.abc import Iterator

# Zero width, direction marks, fillers, and the tags that spell letters nobody shows.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f]")
_MIXED = re.compile(r"\b(?=\w*[A-Za-z])(?=\w*[\u0400-\u04ff])\w{3,}\b")
_FAR = re.compile(r"\S[ \t]{200,}\S")
_JOINS = "\u200c\u200d"  # between emoji and in some scripts they are how a word is written


def hidden_in(text: str) -> Iterator[tuple[int, str]]:
    """Line and description of each kind of hidden character; of one kind the first alone."""
    told: set[str] = set()
    for found in _HIDDEN.finditer(text):
        what = f"U+{ord(found[0]):04X} {unicodedata.name(found[0], 'tag character')}"
        if what not in told and not _is_spelling(text, found.start()):
            told.add(what)
            yield _line(text, found.start()), what
    if control := _CONTROL.search(text):
        yield _line(text, control.start()), f"control character U+{ord(control[0]):04X}"
    if mixed := _MIXED.search(text):
        yield _line(text, mixed.start()), f"letters of two scripts in one word: {mixed[0]!r}"
    if far := _FAR.search(text):
        yield _line(text, far.start()), "words far to the right of a line"


def _is_spelling(text: str, place: int) -> bool:
    """Whether a joiner stands between two characters that are joined so; a mark at the beginning is none either."""
    if text[place] == "\ufeff":
        return place == 0
    if text[place] not in _JOINS or not 0 < place < len(text) - 1:
        return False
    before, after = text[place - 1], text[place + 1]
    if text[place] == "\u200d" and unicodedata.category(after) in ("So", "Sk"):
        return unicodedata.category(before) in ("So", "Sk") or before == "\ufe0f"
    return all(unicodedata.category(char) in ("Lo", "Mn", "Mc") for char in (before, after))


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
