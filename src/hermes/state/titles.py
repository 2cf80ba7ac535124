"""Titles of sessions: cleaned, unique, and numbered when many would like the same: "title", "title #2", "title #3"."""

import re
from collections.abc import Callable, Sequence

MAX_TITLE_CHARS = 100

_NUMBERED = re.compile(r"^(.*) #(\d+)$", re.DOTALL)


def sanitize_title(title: str | None) -> str | None:
    """The title without control and invisible characters, spaces collapsed; None when nothing is left.

    A title longer than 100 characters is a `ValueError`.
    """
    if title is None:
        return None
    import unicodedata  # a start does not pay for it

    spaced = re.sub(r"\s+", " ", title)
    visible = "".join(char for char in spaced if unicodedata.category(char) not in ("Cc", "Cf", "Cs"))
    clean = re.sub(r" +", " ", visible).strip()
    if len(clean) > MAX_TITLE_CHARS:
        raise ValueError(f"a title has at most {MAX_TITLE_CHARS} characters, this one has {len(clean)}")
    return clean or None


def number_of(title: str, base: str) -> int:
    """The number of `base #N`, 0 for `base` itself, and -1 for any other title."""
    numbered = _NUMBERED.match(title)
    if title == base:
        return 0
    return int(numbered.group(2)) if numbered and numbered.group(1) == base else -1


def next_free(title: str, like: Callable[[str], Sequence[str]]) -> str:
    """`title` when it is unused, else with the number after the highest in use.

    `like` answers with the titles in use that are the given one, or begin with it and " #".
    """
    numbered = _NUMBERED.match(title)
    base = numbered.group(1) if numbered else title
    used = [number for one in like(base) if (number := number_of(one, base)) >= 0]
    if not used:
        return base
    number = max(1, *used)
    while True:
        number += 1
        ending = f" #{number}"
        title = base[: MAX_TITLE_CHARS - len(ending)] + ending
        # One that was cut to make room for its number may be in use, without beginning like this one.
        if title not in like(title):
            return title
