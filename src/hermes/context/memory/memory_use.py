"""How often an entry was of use: in how many turns the person or the answer spoke of what it says."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hermes.config.paths import write_private
from hermes.typed import from_json

_WORD = re.compile(r"[^\W_]{4,}")
_SHARE = 0.4  # of the entry's longer words, that a turn has to hold


class MemoryUse:
    """Counts by entry. They only order what is shown, so two processes that count at once may lose one."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def counts(self) -> dict[str, int]:
        """How often each entry was used; none is known where the file cannot be read."""
        try:
            return from_json(self.file.read_bytes(), dict[str, int])
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            return {}

    def note(self, entries: Sequence[str], said: str) -> None:
        """Count the entries that `said` speaks of; those that are gone are forgotten."""
        spoken = set(_WORD.findall(said.casefold()))
        used = [entry for entry in entries if _speaks_of(entry, spoken)]
        if not used:
            return
        known = self.counts()
        counts = {entry: known.get(entry, 0) + (entry in used) for entry in entries}
        write_private(self.file, msgspec.json.encode(counts).decode())


def _speaks_of(entry: str, spoken: set[str]) -> bool:
    words = set(_WORD.findall(entry.casefold()))
    return bool(words) and len(words & spoken) >= max(1, _SHARE * len(words))
