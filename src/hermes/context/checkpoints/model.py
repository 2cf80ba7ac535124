"""The vocabulary of checkpoints."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from hermes.errors import UserError

Reason: TypeAlias = Literal["turn", "command", "rollback", "found"]
Sig: TypeAlias = tuple[int, int, int, int]
"""ctime in ns, size, inode and mode of a file: any change of content or mode changes it."""

State: TypeAlias = str
"""What a path is: "" when it is not there, else its mode in octal and the name of its content. A folder has no content.

The key of a folder ends with a slash, so that a file and a folder of one name are two entries.
"""

ABSENT: State = ""


class CheckpointError(UserError):
    """A snapshot could not be taken, found or restored; the text says why."""


class CheckpointLimits(Struct, frozen=True, kw_only=True):
    """How much is kept."""

    max_snapshots: int = 200  # turns
    max_total_bytes: int = 500_000_000
    max_file_bytes: int = 10_000_000
    max_files: int = 50_000
    auto_prune: bool = True
    retention_s: float = 7 * 86_400.0
    delete_orphans: bool = True
    min_interval_s: float = 86_400.0

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> "CheckpointLimits":
        """From the `checkpoints` section of the configuration."""
        return cls(
            max_snapshots=int(section["max_snapshots"]),
            max_total_bytes=int(section["max_total_size_mb"]) * 1_000_000,
            max_file_bytes=int(section["max_file_size_mb"]) * 1_000_000,
            auto_prune=bool(section["auto_prune"]),
            retention_s=float(section["retention_days"]) * 86_400,
            delete_orphans=bool(section["delete_orphans"]),
            min_interval_s=float(section["min_interval_hours"]) * 3600,
        )


class Snapshot(Struct, frozen=True, kw_only=True):
    """One snapshot. `number` counts back from the newest, which is 1.

    The last three are what going back to it would change now; None where that was not looked at.
    """

    number: int
    seq: int
    hash: str
    timestamp: float
    reason: str
    kind: Reason
    directory: str
    session_id: str = ""
    turn_id: str = ""
    files_changed: int | None = None
    insertions: int | None = None
    deletions: int | None = None

    @property
    def short_hash(self) -> str:
        return self.hash[:8]


class Restored(Struct, frozen=True, kw_only=True):
    """What a restore did. `kept` are paths the user has changed since, or that no longer can be judged; untouched."""

    restored_to: str
    reason: str
    directory: str
    restored: tuple[str, ...]
    kept: tuple[str, ...]
    not_in_snapshot: tuple[str, ...] = ()  # too large to have been kept
    undo: str = ""  # the snapshot that was taken before restoring
