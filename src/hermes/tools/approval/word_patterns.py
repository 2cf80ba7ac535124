"""Brackets and braces in the text of a word: where they close, and what brace expansion makes of them."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache

from hermes.tools.approval.command_text import UNKNOWN
from hermes.tools.approval.effects_model import Budget

STAR, ANY, CLASS = "\ue02a", "\ue03f", "\ue05b"
_PLAIN = str.maketrans({STAR: "*", ANY: "?", CLASS: "["})
_ACTIVE = str.maketrans({"*": STAR, "?": ANY, "[": CLASS})


def active(text: str) -> str:
    """Mark the glob characters of unquoted `text` as ones the shell will expand."""
    return text.translate(_ACTIVE)


def plain(word: str) -> str:
    """The word as the user typed it."""
    return word if word.isascii() else word.translate(_PLAIN)


def has_glob(word: str) -> bool:
    return not word.isascii() and (STAR in word or ANY in word or CLASS in word)


def is_open(word: str) -> bool:
    """Whether only the running shell knows what the word becomes."""
    return UNKNOWN in word or has_glob(word)


def could_name(pattern: str, path: str) -> bool:
    """Whether the absolute `pattern` (with active globs or unknown parts) may expand to `path`."""
    wanted, have = path.split("/"), pattern.split("/")
    if UNKNOWN in pattern:
        head = pattern.split(UNKNOWN, 1)[0]
        if not has_glob(head):
            return path.startswith(head)
    if len(wanted) != len(have):
        return False
    return all(_matches(part, piece) for part, piece in zip(wanted, have, strict=True))


@lru_cache(maxsize=4096)
def _matches(name: str, piece: str) -> bool:
    if not is_open(piece):
        return name == piece
    if name.startswith(".") and piece[:1] in (STAR, ANY, CLASS):
        return False
    return fnmatchcase(name, plain(piece).replace(UNKNOWN, "*"))


_HEREDOC = re.compile(r"<<-?[ \t]*('[^'\n]*'|\"[^\"\n]*\"|\\?[\w.!-]+)")
_NUMBER_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?\Z")
_LETTER_RANGE = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d+))?\Z")
_CHARACTERS = 8  # of a word, that are looked at in one step
_MAX_OPEN = 32  # braces that nothing closes
MAX_FIELDS = 64
MAX_TEXT = 16384


def braces(raw: str, budget: Budget) -> list[str]:
    """The words that brace expansion makes of `raw`; never more than `MAX_FIELDS` + an unknown one."""
    done: list[str] = []
    todo = [raw]
    work = 0
    while todo:
        word = todo.pop()
        work += len(word) + 1
        budget.spend(1 + len(word) // _CHARACTERS)
        if len(done) + len(todo) > MAX_FIELDS or work > MAX_TEXT:
            done.append("${" + UNKNOWN + "}")
            break
        found = _first_brace(word)
        if found is None:
            done.append(word)
            continue
        head, parts, tail = found
        todo += [head + part + tail for part in reversed(parts)]
    return done


def _first_brace(word: str) -> tuple[str, list[str], str] | None:
    position = open_ones = 0
    while position < len(word):
        char = word[position]
        if char in "\\'\"$":
            position = _end_of_part(word, position)
        elif char == "{":
            found = _alternatives(word, position + 1)
            if found is not None:
                parts, end = found
                return word[:position], parts, word[end + 1 :]
            open_ones += 1
            if open_ones > _MAX_OPEN:  # each looks for its end in all that follows
                return "", ["${" + UNKNOWN + "}"], ""
        position += 1
    return None


def _end_of_part(word: str, position: int) -> int:
    """The last character of an escape, a quoted part or a substitution that starts at `position`."""
    char = word[position]
    if char == "\\":
        return position + 1
    if char == "'":
        return or_end(word, word.find("'", position + 1))
    if char == '"':
        return double_end(word, position + 1)
    if word.startswith(("${", "$("), position):
        return closing(word, position + 2, *("{}" if word[position + 1] == "{" else "()"))
    return position


def _alternatives(word: str, start: int) -> tuple[list[str], int] | None:
    depth, position, begin = 0, start, start
    parts: list[str] = []
    while position < len(word):
        char = word[position]
        if char in "\\'\"$":
            position = _end_of_part(word, position)
        elif char == "{":
            depth += 1
        elif char == "}" and depth:
            depth -= 1
        elif char == "}":
            parts.append(word[begin:position])
            if len(parts) > 1:
                return parts, position
            spread = _range(parts[0])
            return (spread, position) if spread else None
        elif char == "," and not depth:
            parts.append(word[begin:position])
            begin = position + 1
        position += 1
    return None


def _range(body: str) -> list[str] | None:
    found = _NUMBER_RANGE.match(body)
    if found:
        low, high = int(found[1][:9]), int(found[2][:9])
        step = abs(int((found[3] or "1")[:9])) or 1
        width = max(len(found[1]), len(found[2])) if found[1].lstrip("-").startswith("0") else 0
        numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
        picked = [str(number).zfill(width) for number in numbers[:MAX_FIELDS]]
        return picked + (["${" + UNKNOWN + "}"] if len(numbers) > MAX_FIELDS else [])
    found = _LETTER_RANGE.match(body)
    if found:
        low, high = ord(found[1]), ord(found[2])
        step = abs(int((found[3] or "1")[:9])) or 1
        letters = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
        return [chr(letter) for letter in letters]
    return None


def closing(text: str, start: int, opener: str = "(", closer: str = ")") -> int:
    """The index of the bracket that closes the one opened just before `start`; `len(text)` when there is none."""
    depth, position = 1, start
    ends: list[str] = []
    while position < len(text):
        char = text[position]
        if char in "\\'\"":
            position = _end_of_part(text, position)
        elif char == "<" and opener == "(" and (found := _HEREDOC.match(text, position)):
            ends.append(found[1].strip("'\"\\"))
            position = found.end() - 1
        elif char == "\n" and ends:
            position = _after_bodies(text, position, ends) - 1
            ends = []
        elif char == "#" and opener == "(" and text[position - 1].isspace():
            position = or_end(text, text.find("\n", position)) - 1
        elif char == opener:
            depth += 1
        elif char == closer:
            depth -= 1
            if depth == 0:
                return position
        position += 1
    return len(text)


def _after_bodies(text: str, position: int, ends: list[str]) -> int:
    for end in ends:
        found = re.compile(rf"\n\t*{re.escape(end)}(?=\n|\Z|[ \t]*\))").search(text, position)
        position = found.end() if found else len(text)
    return position


def or_end(text: str, index: int) -> int:
    return index if index >= 0 else len(text)


def double_end(text: str, start: int) -> int:
    position = start
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 1
        elif char == '"':
            return position
        elif text.startswith("$(", position):
            position = closing(text, position + 2)
        position += 1
    return len(text)
