"""What is no longer true: entries that were replaced, removed or forgotten, and the old words that say the same."""

import re
from collections.abc import Iterable

from msgspec import Struct

from hermes.context.memory.memory_history import MemoryRecord

_WORD = re.compile(r"[^\W_]+")
_SHARE = 0.6  # of what the old entry has in common with the new one, that a line has to hold as well
_SHORT = 3  # letters; shorter words tell nothing


class OldEntry(Struct, frozen=True):
    """An entry that went: until when it held, the words that only it has, and those that its successor has, too."""

    until: float
    telling: frozenset[str]
    common: frozenset[str]


class Superseded(Struct, frozen=True):
    """All entries that went."""

    entries: tuple[OldEntry, ...]

    @classmethod
    def of(cls, records: Iterable[MemoryRecord]) -> "Superseded":
        """From the history: what was replaced or removed, unless it is back."""
        gone: dict[str, OldEntry] = {}
        for record in records:
            if record.new:
                gone.pop(record.new, None)
            if record.old:
                old, new = _words(record.old), _words(record.new)
                gone[record.old] = OldEntry(record.at, old - new, old & new)
        return cls(tuple(one for one in gone.values() if one.telling))

    def holds(self, line: str, at: float) -> bool:
        """Whether a line of that time says what is no longer true."""
        words = _words(line)
        return any(
            at <= one.until
            and one.telling <= words
            and (not one.common or len(one.common & words) >= _SHARE * len(one.common))
            for one in self.entries
        )


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text.casefold()) if len(word) >= _SHORT or word.isdigit())
