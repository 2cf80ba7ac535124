"""What waits for a yes: entries whose words came from outside, with their source, until a person decides."""

from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hermes.config.paths import write_private
from hermes.context.memory.entries import Operation, Target
from hermes.context.memory.memory_files import MemoryFiles
from hermes.context.memory.memory_history import Author
from hermes.errors import UserError
from hermes.typed import from_json

MAX_WAITING = 50  # a page that floods must not fill the disk; the oldest stay
_SHOWN_CHARS = 100


class Proposal(Struct, frozen=True, kw_only=True):
    """One write that waits."""

    number: int
    at: float
    target: Target
    operation: Operation
    source: str
    session_id: str = ""
    by: Author = "agent"

    @property
    def line(self) -> str:
        """What a person reads of it."""
        words = " ".join((self.operation.content or self.operation.old_text).split())
        short = words if len(words) <= _SHOWN_CHARS else words[: _SHOWN_CHARS - 1] + "…"
        where = "memory" if self.target == "memory" else "your profile"
        return f'{self.number}. {self.operation.action} in {where}: "{short}" (from {self.source})'


class Proposals:
    """The proposals of one home, in a file beside the memories and under their lock."""

    def __init__(self, files: MemoryFiles) -> None:
        self._files = files
        self.file: Path = files.folder / "proposals.json"

    def waiting(self) -> list[Proposal]:
        """All that wait, oldest first."""
        try:
            return from_json(self.file.read_bytes(), list[Proposal])
        except FileNotFoundError:
            return []
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{str(self.file)!r} cannot be read ({error}); mend or delete it") from error

    def add(self, proposal: Proposal) -> Proposal:
        """Let one wait, under the next number; the same words wait once. `UserError` when too many do."""
        with self._files.locked():
            now = self.waiting()
            new = replace(proposal, number=max((one.number for one in now), default=0) + 1)
            for one in now:
                if (one.target, one.operation) == (new.target, new.operation):
                    return one
            if len(now) >= MAX_WAITING:
                raise UserError(f"{len(now)} proposals wait already; decide with: hermes memory review")
            self._put([*now, new])
            return new

    def take_out(self, number: int) -> Proposal:
        """Remove one, decided upon; `UserError` when there is none of that number."""
        with self._files.locked():
            now = self.waiting()
            found = next((one for one in now if one.number == number), None)
            if found is None:
                raise UserError(f"no proposal has the number {number}; see: hermes memory review --list")
            self._put([one for one in now if one.number != number])
            return found

    def _put(self, proposals: list[Proposal]) -> None:
        write_private(self.file, msgspec.json.format(msgspec.json.encode(proposals).decode(), indent=2))
