"""Changes of skills that wait for a yes, because their words came from outside or the settings ask for one."""

from pathlib import Path

import msgspec
from msgspec import Struct, structs

from hermes.config import paths
from hermes.errors import UserError
from hermes.extensions.skills.lock_file import LockFile
from hermes.extensions.skills.skill_change import SkillChange, WriteFacts
from hermes.typed import from_json

MAX_WAITING = 50  # a page that floods must not fill the disk; the oldest stay
FILE = ".proposals.json"


class SkillProposal(Struct, frozen=True, kw_only=True):
    """One change that waits, and where its words come from."""

    number: int
    at: float
    source: str
    change: SkillChange
    facts: WriteFacts = WriteFacts()

    @property
    def line(self) -> str:
        """What a person reads of it."""
        return f"{self.number}. {self.change.action} of the skill {self.change.place!r} (from {self.source})"


class SkillProposals:
    """The proposals of one folder of skills, under the same lock as the skills themselves."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._lock = LockFile(folder)

    def waiting(self) -> list[SkillProposal]:
        """All that wait, oldest first."""
        try:
            return from_json(self._file.read_bytes(), list[SkillProposal])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError) as error:
            raise UserError(f"{str(self._file)!r} cannot be read ({error}); mend or delete it") from error

    def add(self, proposal: SkillProposal) -> SkillProposal:
        """Let one wait, under the next number; the same change waits once. `UserError` when too many do."""
        with self._lock.changing():
            now = self.waiting()
            for one in now:
                if one.change == proposal.change:
                    return one
            if len(now) >= MAX_WAITING:
                raise UserError(f"{len(now)} proposals wait already; a person can decide with: hermes skills review")
            new = structs.replace(proposal, number=max((one.number for one in now), default=0) + 1)
            self._put([*now, new])
            return new

    def one(self, number: int) -> SkillProposal:
        """The one of this number; `UserError` when there is none."""
        found = next((each for each in self.waiting() if each.number == number), None)
        if found is None:
            raise UserError(f"no proposal has the number {number}; see: hermes skills review")
        return found

    def drop(self, number: int) -> None:
        """Remove one that was decided upon."""
        with self._lock.changing():
            self._put([one for one in self.waiting() if one.number != number])

    def _put(self, proposals: list[SkillProposal]) -> None:
        paths.write_private(self._file, msgspec.json.format(msgspec.json.encode(proposals), indent=2).decode())
