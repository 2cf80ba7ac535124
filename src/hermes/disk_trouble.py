"""When the disk is the trouble and not Hermes: full, over quota, read-only, failing, not this user's to write,
or with a folder where a file belongs."""

import errno
import os
from pathlib import Path

_REMEDIES = {
    errno.ENOSPC: ("no space is left on the disk", "free some space and try again"),
    errno.EDQUOT: ("your disk quota is used up", "free some space and try again"),
    errno.EROFS: ("the file system is read-only", "make it writable"),
    errno.EIO: ("the disk reports an error", "look after it, then try again"),
    errno.EACCES: ("permission is denied", "give yourself the right to write there"),
    errno.EPERM: ("permission is denied", "give yourself the right to write there"),
    errno.EISDIR: ("a folder is where a file belongs", "move the folder away"),
    errno.ENOTDIR: ("a file is where a folder of this path belongs", "move the file away"),
}
_LITTLE_BYTES = 256 * 1024  # less than the session file needs to be opened
_WITHOUT_A_NAME = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


def disk_trouble(error: BaseException) -> str | None:
    """One sentence for a person when `error`, its cause or one of its group is about a disk; None when it is not."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, OSError) and (sentence := _sentence(one)):
            return sentence
        waiting += [one.__cause__, *(one.exceptions if isinstance(one, BaseExceptionGroup) else ())]
    return None


def reason_of(error: OSError) -> str:
    """Why the system would not do it and what to do about it, for a sentence that names the file itself."""
    what, remedy = _REMEDIES.get(error.errno or 0, (error.strerror or str(error), ""))
    return f"{what}; {remedy}" if remedy else what


def full_disk(folder: Path, *, is_known: bool = False) -> str:
    """What to do about the disk that `folder` is on, when it has no room; for libraries that only say "I/O error".

    `is_known`: they have said so, and what they had begun to write is gone again.
    """
    if is_known:
        return "; ".join(_REMEDIES[errno.ENOSPC])
    try:
        room = os.statvfs(folder)
    except OSError:
        return ""
    has_room = room.f_bavail * room.f_frsize > _LITTLE_BYTES or not room.f_blocks
    return "" if has_room else "; ".join(_REMEDIES[errno.ENOSPC])


def _sentence(error: OSError) -> str | None:
    # Without a file's name these may be about anything: a signal, a socket.
    if error.errno not in _REMEDIES or not (error.filename or error.errno in _WITHOUT_A_NAME):
        return None
    what, remedy = _REMEDIES[error.errno]
    name = error.filename2 or error.filename  # a move names what was to be replaced last
    where = f" ({os.fsdecode(name)!r})" if isinstance(name, str | bytes) else ""
    return f"{what}{where}; {remedy}. Nothing that was stored is lost"
