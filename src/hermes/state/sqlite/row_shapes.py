"""What a row of the state file can look like: which table rows belong to, and which values nobody can have written."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from hermes.state.codec import BLOB_MARK, JSON_MARK, decode_json
from hermes.state.schema import TABLES
from hermes.state.sqlite.schema_history import columns_of, shapes_of

MAX_INTEGER = 1 << 53  # more of anything is no count; a sum over rows must stay an integer
MAX_REAL = 2.5e11  # seconds: the year 9892
VOTERS = 16  # rows of a page that are asked what they are

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ROLE = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)
_WORD = re.compile(r"'(\w+)'", re.ASCII)  # of those that a column is limited to
_BLOB = re.compile(r"(json:)?[0-9a-f]{64}")


class Garbled(bytes):
    """The bytes of a text that is no text any more."""


def text_or_garbled(raw: bytes) -> str | Garbled:
    """Stored text; what cannot be decoded is kept as it is. Serves as a connection's `text_factory`."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Garbled(raw)


def flaws(table: str, columns: Sequence[str], values: Sequence[Any]) -> list[str]:
    """The columns of a row whose value cannot have been written there."""
    rules = _rules(table)
    return [name for name, value in zip(columns, values, strict=False) if not rules[name].allows(value)]


def is_required(table: str, column: str) -> bool:
    """Whether a row cannot be without this column, and no default stands for it."""
    return _rules(table)[column].required and "DEFAULT" not in TABLES[table][column]


def table_of(rows: Sequence[Sequence[Any]], likely: str = "") -> str | None:
    """The table that these rows, which stand on one page, are of; None when it is none of ours.

    Of tables with the same shape it is the `likely` one.
    """
    votes: dict[str, int] = {}
    for values in rows[:VOTERS]:
        for table in _by_width().get(len(values), ()):
            if not flaws(table, columns_of(table), values) and not _has_row_id(table, values):
                votes[table] = votes.get(table, 0) + 1
    return max(votes, key=lambda table: (votes[table], table == likely)) if votes else None


class _Rule(Struct, frozen=True):
    """What a column may hold."""

    kind: str  # TEXT, INTEGER or REAL
    required: bool
    check: Callable[[str], bool] | None = None

    def allows(self, value: Any) -> bool:
        if value is None:
            return not self.required
        kind = type(value)
        if self.kind == "TEXT":
            if kind is bytes:
                return _is_odd_text(value)
            return kind is str and (self.check is None or self.check(value))
        if kind is int:
            return abs(int(value)) < MAX_INTEGER
        return kind is float and abs(float(value)) < MAX_REAL  # which infinity is not


def _is_odd_text(value: bytes) -> bool:
    """Whether these bytes are text with lone surrogates, the one text that is kept as bytes."""
    try:
        value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return isinstance(text_or_garbled(value), Garbled)


def _is_json(text: str) -> bool:
    """Foreign rows hold other text as well; but what begins as JSON must end as such."""
    return not text.startswith(("[", "{")) or not isinstance(decode_json(text), str)


def _is_content(text: str) -> bool:
    if text.startswith(JSON_MARK):
        return not isinstance(decode_json(text[len(JSON_MARK) :]), str)
    return not text.startswith(BLOB_MARK) or _BLOB.fullmatch(text, len(BLOB_MARK)) is not None


_CHECKS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "digest": lambda text: _DIGEST.fullmatch(text) is not None,
        "role": lambda text: _ROLE.fullmatch(text) is not None,
        "content": _is_content,
        "tool_calls": _is_json,
        "reasoning_details": _is_json,
        "codex_reasoning_items": _is_json,
        "codex_message_items": _is_json,
        "model_config": _is_json,
        "call": _is_json,
    }
)


@cache
def _rules(table: str) -> dict[str, _Rule]:
    rules = {}
    for name, kind in TABLES[table].items():
        required = "NOT NULL" in kind or kind.startswith("TEXT PRIMARY KEY")
        words = _WORD.findall(kind.partition("CHECK")[2])
        rules[name] = _Rule(kind.split()[0], required, words.__contains__ if words else _CHECKS.get(name))
    return rules


@cache
def _by_width() -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for table in TABLES:
        for width in shapes_of(table):
            found.setdefault(width, []).append(table)
    return found


def _has_row_id(table: str, values: Sequence[Any]) -> bool:
    """Whether a value stands where SQLite stores none, because it is the number of the row."""
    return values[0] is not None and next(iter(TABLES[table].values())).startswith("INTEGER PRIMARY KEY")
