"""What a task remembers about files between calls: what it has read, what it wrote, where it failed."""

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from hermes.redact import Redactor
from hermes.seams import FileInfo

if TYPE_CHECKING:
    from hermes.tools.files.tokens import Level

REDACTOR = "redactor"  # where a memo holds the redactor of the whole runtime, when there is one
_KEY = "files"
_MAX_DIGESTED_BYTES = 1 << 20


class FileStamp(NamedTuple):
    """A file as it was when last seen. `digest` is empty when it is large or only a part of it was read."""

    mtime_ns: int
    size: int
    digest: str = ""


class Repeat(NamedTuple):
    """A question, and how often it was asked in a row."""

    question: tuple[object, ...]
    times: int


_NOTHING_ASKED = Repeat((), 0)


class Shown(NamedTuple):
    """A page that the model has: of which version of the file, and how often it was told so since."""

    mtime_ns: int
    size: int
    times_told: int = 0


class FileMemo(Struct):
    """One task's view. Paths are absolute with links resolved."""

    home: str | None = None
    seen: dict[str, FileStamp] = field(default_factory=dict)
    shown: dict[tuple[str, int, int], Shown] = field(default_factory=dict)  # by path, offset and limit
    failures: dict[str, int] = field(default_factory=dict)
    applied: dict[tuple[str, str], "Level"] = field(default_factory=dict)  # by path and digest of the edit
    last: Repeat = _NOTHING_ASKED
    redactor: Redactor = field(default_factory=Redactor)

    @classmethod
    def of(cls, memo: dict[str, Any]) -> "FileMemo":
        """The memo in a task's store of them; made when it is not there."""
        found = memo.get(_KEY)
        if not isinstance(found, cls):
            shared = memo.get(REDACTOR)
            found = memo[_KEY] = cls(redactor=shared) if isinstance(shared, Redactor) else cls()
        return found

    def asked(self, *question: object) -> int:
        """How many times in a row this has now been asked."""
        times = self.last.times + 1 if self.last.question == question else 1
        self.last = Repeat(question, times)
        return times

    def saw(self, info: FileInfo, content_digest: str = "") -> None:
        """The task knows the file as `info` says it is; the digest is that of all its bytes."""
        self.seen[info.path] = FileStamp(info.mtime_ns, info.size, content_digest)

    def is_stale(self, info: FileInfo, data: bytes) -> bool:
        """Whether the file is not what the task has read; false when it has not read it."""
        stamp = self.seen.get(info.path)
        if stamp is None or (stamp.mtime_ns, stamp.size) == (info.mtime_ns, info.size):
            return False
        return not stamp.digest or stamp.digest != digest(data)

    def failed(self, path: str) -> int:
        """Count a failed edit; return how many in a row this file has had."""
        self.failures[path] = self.failures.get(path, 0) + 1
        return self.failures[path]

    def wrote(self, path: str) -> None:
        """An edit went in: failures are forgotten, and the next read is not a repeat."""
        self.failures.pop(path, None)
        self.last = _NOTHING_ASKED


def reset_repeats(memo: dict[str, Any]) -> None:
    """Another tool ran in between: the next read is not a repeat."""
    if isinstance(files := memo.get(_KEY), FileMemo):
        files.last = _NOTHING_ASKED


def forget_shown(memo: dict[str, Any]) -> None:
    """The model no longer has the pages it was shown: a compression has left them out."""
    FileMemo.of(memo).shown.clear()


def digest(data: bytes) -> str:
    """A digest for comparison; empty for much data, where the time of the last change has to do."""
    if len(data) > _MAX_DIGESTED_BYTES:
        return ""
    return sha256(data, usedforsecurity=False).hexdigest()
