"""What is remembered of a project between calls: the newest snapshot file by file, and who left which file how."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hermes.context.checkpoints.model import ABSENT, CheckpointError, Sig, State
from hermes.context.checkpoints.scan import Scan
from hermes.typed import from_json, from_msgpack


class Known(Struct, kw_only=True):
    """The newest snapshot, and what the files looked like when it was taken: the warm index."""

    tree: str = ""
    commit: str = ""
    seq: int = 0
    files: dict[bytes, Sig] = field(default_factory=dict)
    contents: dict[bytes, str] = field(default_factory=dict)
    folders: dict[bytes, int] = field(default_factory=dict)
    too_large: dict[bytes, Sig] = field(default_factory=dict)
    listed: dict[bytes, int] = field(default_factory=dict)
    meta: bytes = b""

    def as_scan(self) -> Scan:
        return Scan(self.files, self.folders, self.too_large, self.listed)

    def state(self, path: bytes) -> State:
        """What the path was."""
        if path.endswith(b"/"):
            mode = self.folders.get(path)
            return ABSENT if mode is None else f"{mode:o}"
        sig = self.files.get(path)
        if sig is not None:
            return f"{sig[3]:o} {self.contents[path]}"
        large = self.too_large.get(path)
        return ABSENT if large is None else large_state(large)

    def paths(self) -> set[bytes]:
        return {*self.files, *self.folders, *self.too_large}


class Ledger(Struct, kw_only=True):
    """Who left what: `agent` is how the agent last left a path, `user` the first snapshot after the user changed it."""

    agent: dict[bytes, State] = field(default_factory=dict)
    user: dict[bytes, int] = field(default_factory=dict)

    def is_users(self, path: bytes, now: State, since: int) -> bool:
        """Whether the user has changed the path since snapshot `since`, or nobody knows who did."""
        return self.user.get(path, 0) > since or self.agent.get(path) != now


class Project(Struct, kw_only=True):
    """One project in the store."""

    root: str
    used_at: float = 0.0

    @property
    def is_orphan(self) -> bool:
        """Whether its folder is gone."""
        return not Path(self.root).is_dir()


class Records:
    """The small files beside the store, one set per project; each is replaced whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, tuple[tuple[int, int], Known]] = {}

    def known(self, key: str) -> Known:
        """The warm index; an empty one when there is none that can be read."""
        file = self._file(key, "known")
        try:
            info = file.stat()
        except FileNotFoundError:
            self._known.pop(key, None)
            return Known()
        stamp = (info.st_mtime_ns, info.st_size)
        cached = self._known.get(key)
        if cached is not None and cached[0] == stamp:
            return cached[1]
        try:
            known = from_msgpack(file.read_bytes(), Known)
        except (OSError, msgspec.DecodeError):
            return Known()  # only slower: every file is read again
        self._known[key] = (stamp, known)
        return known

    def keep_known(self, key: str, known: Known) -> None:
        file = self._file(key, "known")
        self._replace(file, msgspec.msgpack.encode(known))
        info = file.stat()
        self._known[key] = ((info.st_mtime_ns, info.st_size), known)

    def ledger(self, key: str) -> Ledger:
        try:
            return from_msgpack(self._file(key, "ledger").read_bytes(), Ledger)
        except (FileNotFoundError, msgspec.DecodeError):
            return Ledger()  # then nothing counts as the agent's, and a restore keeps what it does not know

    def keep_ledger(self, key: str, ledger: Ledger) -> None:
        self._replace(self._file(key, "ledger"), msgspec.msgpack.encode(ledger))

    def project(self, key: str) -> Project | None:
        try:
            return from_json(self._file(key, "json").read_bytes(), Project)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def keep_project(self, key: str, project: Project) -> None:
        self._replace(self._file(key, "json"), msgspec.json.encode(project))

    def projects(self) -> list[str]:
        """Every project there is."""
        if not self.folder.is_dir():
            return []
        return sorted(file.stem for file in self.folder.glob("*.json") if len(file.stem) == 16)

    def forget(self, key: str) -> None:
        self._known.pop(key, None)
        for ending in ("known", "ledger", "json"):
            self._file(key, ending).unlink(missing_ok=True)

    def forget_index(self, key: str) -> None:
        """Read every file again next time."""
        self._known.pop(key, None)
        self._file(key, "known").unlink(missing_ok=True)

    def lock_file(self, key: str) -> Path:
        return self._file(key, "lock")

    def _file(self, key: str, ending: str) -> Path:
        return self.folder / f"{key}.{ending}"

    def _replace(self, file: Path, data: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = file.with_name(f".{file.name}.{os.getpid()}")
        fresh.write_bytes(data)
        fresh.chmod(0o600)
        fresh.replace(file)


def large_state(sig: Sig) -> State:
    """The state of a file whose content is not kept."""
    return f"{sig[3]:o} ~{sig[0]}.{sig[1]}.{sig[2]}"


WAIT_S = 10.0
_STEP_S = 0.02


@asynccontextmanager
async def locked(file: Path, *, shared: bool = False) -> AsyncIterator[None]:
    """Hold the lock on `file`. `CheckpointError` when somebody else keeps it for longer than ten seconds."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        await _acquired(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


async def _acquired(fd: int, kind: int) -> None:
    try:
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    fcntl.flock(fd, kind | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(_STEP_S)
                else:
                    return
    except TimeoutError as error:
        raise CheckpointError("the snapshots are busy elsewhere") from error
