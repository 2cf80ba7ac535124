"""Tables of names, read from their files on first use."""

from functools import cache
from pathlib import Path


@cache
def names(file: str) -> frozenset[str]:
    """Every word of a table."""
    return frozenset(name for row in rows(file) for name in row.split())


@cache
def sections(file: str) -> dict[str, frozenset[str]]:
    """The words of a table by section: `title: words`, with further lines set in."""
    found: dict[str, list[str]] = {}
    title = ""
    for row in rows(file):
        if not row.startswith(" "):
            title, _, row = row.partition(": ")  # noqa: PLW2901 - the title is cut off
        found.setdefault(title, []).extend(row.split())
    return {title: frozenset(words) for title, words in found.items()}


def word_list(title: str) -> frozenset[str]:
    """A list of words.txt, which many rules have one of."""
    return sections("words.txt")[title]


@cache
def by_name(kind: str) -> dict[str, list[str]]:
    """The words of this kind in options.txt, by program or variable."""
    listed = (row.split(": ") for row in rows("options.txt"))
    return {name: words.split() for names, of, words in listed if of == kind for name in names.split()}


def rows(file: str) -> list[str]:
    """The lines of a table; a comment has a line of its own."""
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return [row for row in text.split("\n") if row and not row.startswith("#")]
