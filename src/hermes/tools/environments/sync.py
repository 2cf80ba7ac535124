"""Keep a folder here and its copy on a remote backend the same: skills, so that their scripts run there."""

import io
import logging
import os
import tarfile
import time
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from hermes.errors import ToolError
from hermes.tools.environments.remote_files import RunScript
from hermes.tools.supervisor.threads import RunBlocking

log = logging.getLogger(__name__)

EVERY_S = 5.0
MOST_BYTES = 64 << 20
_PUT = """
case $1 in '~/'*) set -- "$HOME/${1#'~/'}" ;; esac
mkdir -p -- "$1" && cd -- "$1" && tar -xf - --no-same-owner || exit 1
[ ! -f .hermes-gone ] || { xargs -0 -r rm -f -- <.hermes-gone; rm -f .hermes-gone; }
"""
_LIST = """
case $1 in '~/'*) set -- "$HOME/${1#'~/'}" ;; esac
[ -d "$1" ] || exit 0
cd -- "$1" && find . -type f -print0 | xargs -0 -r stat --printf '%Y %s %n\\0'
"""
_GET = """
case $1 in '~/'*) set -- "$HOME/${1#'~/'}" ;; esac
cd -- "$1" && tar -cf - --null -T -
"""


class Synced(Struct, frozen=True):
    """A folder here, and where it lies on the other side; `~/` is the home there."""

    here: Path
    there: str


class SyncStamp(NamedTuple):
    """How a change of a file is known. Whole seconds: a copy keeps no more of them."""

    mtime: int
    size: int


class FolderSync:
    """Sends what changed here before a command, at most every five seconds; brings home at the end what changed there.

    A file changed on both sides: the newer one wins. A file that went away there stays here.
    """

    def __init__(self, folder: Synced, run: RunScript, run_blocking: RunBlocking) -> None:
        self._folder = folder
        self._run = run
        self._run_blocking = run_blocking
        self._sent: dict[str, SyncStamp] = {}  # as both sides had it after the last exchange
        self._next = 0.0

    def forget(self) -> None:
        """The other side is a new one."""
        self._sent, self._next = {}, 0.0

    async def send(self, *, at_once: bool = False) -> None:
        """Make the other side as this one is. What fails is tried again as a whole: `ToolError`."""
        if not at_once and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY_S
        present = await self._run_blocking(_stamps, self._folder.here)
        changed = [name for name, stamp in present.items() if self._sent.get(name) != stamp]
        gone = [name for name in self._sent if name not in present]
        if not changed and not gone:
            return
        packed = await self._run_blocking(_packed, self._folder.here, changed, gone)
        answer = await self._run(_PUT, self._folder.there, stdin=packed)
        if answer.code != 0:
            raise ToolError(f"{self._folder.here} could not be copied there: {answer.errors.strip()}")
        self._sent = present

    async def bring_home(self) -> list[str]:
        """Copy back what was changed there; returns the names. Files that are newer here stay as they are."""
        listed = (await self._run(_LIST, self._folder.there)).output.decode("utf-8", "surrogateescape")
        theirs = {}
        for row in filter(None, listed.split("\0")):
            mtime, size, name = row.split(" ", 2)
            theirs[name.removeprefix("./")] = SyncStamp(int(mtime), int(size))
        # Other folders there are somebody else's: the other machine may have a Hermes of its own.
        ours = {name.partition("/")[0] for name in self._sent}
        changed = [name for name, stamp in theirs.items() if self._sent.get(name) != stamp]
        wanted = [name for name in changed if name.partition("/")[0] in ours]
        if sum(theirs[name].size for name in wanted) > MOST_BYTES:
            raise ToolError(f"{self._folder.there} changed by more than {MOST_BYTES >> 20} MB; it was not copied back")
        if not wanted:
            return []
        packed = (await self._run(_GET, self._folder.there, stdin="\0".join(wanted).encode())).output
        return await self._run_blocking(_unpacked, self._folder.here, packed, set(wanted))


def _stamps(folder: Path) -> dict[str, SyncStamp]:
    found: dict[str, SyncStamp] = {}
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            if path.is_symlink() or not path.is_file():
                continue
            stat = path.stat()
            total += stat.st_size
            found[str(path.relative_to(folder))] = SyncStamp(int(stat.st_mtime), stat.st_size)
    if total > MOST_BYTES:
        raise ToolError(f"{folder} holds more than {MOST_BYTES >> 20} MB; it is not copied to the other side")
    return found


def _packed(folder: Path, changed: list[str], gone: list[str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in changed:
            archive.add(folder / name, name)
        if gone:
            names = "\0".join(gone).encode("utf-8", "surrogateescape")
            entry = tarfile.TarInfo(".hermes-gone")
            entry.size = len(names)
            archive.addfile(entry, io.BytesIO(names))
    return packed.getvalue()


def _unpacked(folder: Path, packed: bytes, wanted: set[str]) -> list[str]:
    """Write the files of the archive that are newer than those here. Nothing is believed of it but names asked for."""
    written = []
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for entry in archive:
            name = entry.name.removeprefix("./")
            target, content = folder / name, archive.extractfile(entry)
            if name not in wanted or content is None or not target.resolve().is_relative_to(folder.resolve()):
                continue
            if target.exists() and int(target.stat().st_mtime) > entry.mtime:
                log.warning("%s changed on both sides; the newer one, here, was kept", target)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
            os.utime(target, (entry.mtime, entry.mtime))
            written.append(name)
    return written
