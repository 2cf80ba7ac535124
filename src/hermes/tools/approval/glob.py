"""Active glob characters inside resolved words, and what such a word may name."""

from fnmatch import fnmatchcase
from functools import lru_cache

from hermes.tools.approval.text import UNKNOWN

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
