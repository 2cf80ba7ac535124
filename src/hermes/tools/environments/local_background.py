"""Local background processes: one folder each under HERMES_HOME, held by a keeper that outlives the runtime."""

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import secrets
import select
import shutil
import time
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from hermes.confinement.policy import AnyConfinement
from hermes.errors import ToolError
from hermes.redact import Redactor
from hermes.seams import Decision
from hermes.tools.environments import background as wording
from hermes.tools.environments.background import (
    BackgroundRecord,
    BackgroundRequest,
    Breaker,
    State,
    WatchLimit,
    end_all,
)
from hermes.tools.supervisor.threads import RunBlocking
from hermes.tools.terminal.output_text import text_of
from hermes.typed import from_json

KEPT_S = 30 * 60.0
MOST_TRACKED = 64
LOG_BYTES = 8 << 20
_WRITE_LIMIT_S = 5.0
_LOOK_AGAIN_S = 0.05
_KILL_WAIT_S = 8.0


@runtime_checkable
class Holder(Protocol):
    """What starts a background child; the process supervisor does."""

    async def hold(self, decision: Decision, request: dict[str, object], confinement: AnyConfinement) -> int: ...


class BackgroundLine(NamedTuple):
    """A command in the background with the session's shell state."""

    argv: list[str]
    texts: list[str]  # what it reads
    confinement: AnyConfinement
    in_use: str  # the lock of the session's folders, which stay as long as the process lives


class ShellLine(Protocol):
    """How the environment runs a command in the background."""

    async def __call__(self, order: BackgroundRequest) -> BackgroundLine: ...


class HeldProcesses:
    """`Background` over the folders below `root`. What is there from an earlier runtime is found and served, too."""

    def __init__(
        self, root: Path, holder: Holder, line: ShellLine, run_blocking: RunBlocking, redactor: Redactor
    ) -> None:
        self._root = root
        self._holder = holder
        self._line = line
        self._run_blocking = run_blocking
        self._redactor = redactor
        self._limits: dict[str, WatchLimit] = {}
        self._read_to: dict[str, int] = {}
        self._breaker = Breaker()
        self._started: set[str] = set()  # sessions that have started a process here
        self._without: set[str] = set()  # sessions that had none when looked for, and have started none here

    async def start(self, order: BackgroundRequest, decision: Decision) -> BackgroundRecord:
        if not decision.allowed:
            raise ToolError(decision.reason or "the command was not allowed")
        await self._run_blocking(self._prune)
        self._started.add(order.session_id)
        self._without.discard(order.session_id)
        ident = f"proc_{secrets.token_hex(6)}"
        folder = self._root / ident
        await self._run_blocking(_make_private, folder)
        # Recorded before it is started: a crash in between must not leave a process that nobody lists.
        stored = msgspec.structs.replace(
            order,
            command=self._redactor.redact(order.command),
            watch=tuple(self._redactor.redact(pattern) for pattern in order.watch),
        )
        record = BackgroundRecord(id=ident, order=stored, pid=0, started_at=time.time())
        await self._run_blocking(_save, folder, record)
        try:
            line = await self._line(order)
            request: dict[str, object] = {
                "folder": str(folder),
                "argv": line.argv,
                "env": {},
                "files": line.texts,
                "in_use": line.in_use,
                "cwd": "/",
                "pty": order.pty,
                "log_bytes": LOG_BYTES,
            }
            if self._redactor.is_on:
                request["secrets"] = list(self._redactor.known)
            await self._holder.hold(decision, request, line.confinement)
        except BaseException:
            await self._run_blocking(shutil.rmtree, folder, ignore_errors=True)
            raise
        found = await self.find(ident)
        assert found is not None
        return found

    async def records(self, task_id: str | None = None) -> list[BackgroundRecord]:
        found = await self._run_blocking(self._load_all) if self._has_any() else []
        return [record for record in found if task_id is None or record.order.task_id == task_id]

    async def find(self, ident: str) -> BackgroundRecord | None:
        return await self._run_blocking(self._load, ident)

    async def state(self, record: BackgroundRecord) -> State:
        return await self._run_blocking(_state, self._root / record.id)

    async def log(self, record: BackgroundRecord) -> bytes:
        return await self._run_blocking(_log, self._root / record.id)

    async def kill(self, record: BackgroundRecord, grace_s: float = 1.0) -> bool:
        folder = self._root / record.id
        if (await self.state(record)).status == "exited":
            return False
        await self._run_blocking(_order, folder, f"stop {grace_s}\n")
        try:
            async with asyncio.timeout(grace_s + _KILL_WAIT_S):
                # Its keeper may be another runtime's, with nothing here to await.
                while (await self.state(record)).status == "running":  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_AGAIN_S)
        except TimeoutError:
            raise ToolError(f"{record.id} (pid {record.pid}) could not be stopped") from None
        return True

    async def write(self, record: BackgroundRecord, data: bytes) -> None:
        await self._run_blocking(_write_fifo, self._root / record.id / "in", data)

    async def close_stdin(self, record: BackgroundRecord) -> None:
        await self._run_blocking(_order, self._root / record.id, "eof\n")

    async def resize(self, record: BackgroundRecord, rows: int, columns: int) -> None:
        """Give its terminal another size."""
        await self._run_blocking(_order, self._root / record.id, f"size {rows} {columns}\n")

    async def mark_seen(self, record: BackgroundRecord) -> None:
        await self._run_blocking((self._root / record.id / "seen").touch)

    def is_silent(self, *session_ids: str) -> bool:
        return self._without.issuperset(session_ids)

    async def notices(self, *session_ids: str) -> list[str]:
        if self.is_silent(*session_ids):
            return []  # asked twice in every turn, and a look at the disk is not free
        told: list[str] = []
        records = [record for record in await self.records() if record.order.session_id in session_ids]
        with_some = {record.order.session_id for record in records}
        self._without.update(set(session_ids) - with_some - self._started)  # else one may be about to appear
        for record in records:
            if record.order.notify or record.order.watch:
                told += await self._run_blocking(self._news_of, record)
        return told

    async def end_session(self, session_id: str) -> int:
        return await end_all(self, [each for each in await self.records() if each.order.session_id == session_id])

    # -- blocking --------------------------------------------------------------------------------------------------

    def _has_any(self) -> bool:
        """Most homes have none: a look costs less than a thread."""
        return os.path.isdir(self._root)  # noqa: PTH112 - see above

    def _load_all(self) -> list[BackgroundRecord]:
        if not self._root.is_dir():
            return []
        loaded = (self._load(folder.name) for folder in self._root.iterdir())
        return sorted((record for record in loaded if record), key=lambda record: record.started_at)

    def _load(self, ident: str) -> BackgroundRecord | None:
        if not ident.startswith("proc_") or "/" in ident:
            return None
        try:
            record = from_json((self._root / ident / "record.json").read_bytes(), BackgroundRecord)
            return msgspec.structs.replace(record, pid=_pid(self._root / ident))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _prune(self) -> None:
        """Forget what ended long ago, and the oldest ended ones beyond the number that is kept track of."""
        ended = []
        records = self._load_all()
        for record in records:
            state = _state(self._root / record.id)
            if state.status == "exited":
                ended.append((state.ended_at or record.started_at, record.id))
        surplus = max(0, len(records) - MOST_TRACKED + 1)
        for position, (ended_at, ident) in enumerate(sorted(ended)):
            if position < surplus or time.time() - ended_at > KEPT_S:
                shutil.rmtree(self._root / ident, ignore_errors=True)
                self._limits.pop(ident, None)
                self._read_to.pop(ident, None)

    def _news_of(self, record: BackgroundRecord) -> list[str]:
        folder = self._root / record.id
        told = []
        limit = self._limits.setdefault(record.id, WatchLimit())
        if record.order.watch and not limit.given_up:
            told += self._matches(record, folder, limit)
        wants_end = record.order.notify or limit.given_up
        if wants_end and not (folder / "seen").exists():
            state = _state(folder)
            if state.status == "exited":
                (folder / "seen").touch()
                told.append(wording.completion(record, state.exit_code, text_of(_log(folder))))
        return told

    def _matches(self, record: BackgroundRecord, folder: Path, limit: WatchLimit) -> list[str]:
        log = _log(folder)
        start = min(self._read_to.get(record.id, 0), len(log))
        new = log[start:]
        complete = new[: new.rfind(b"\n") + 1] or (new if _state(folder).status == "exited" else b"")
        self._read_to[record.id] = start + len(complete)
        return wording.matches(record, text_of(complete).splitlines(), limit, self._breaker)


def _make_private(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(mode=0o700)


def _save(folder: Path, record: BackgroundRecord) -> None:
    (folder / "record.json.new").write_bytes(msgspec.json.encode(record))
    (folder / "record.json.new").rename(folder / "record.json")


def _pid(folder: Path) -> int:
    try:
        return int((folder / "pid").read_text())
    except FileNotFoundError:
        return 0  # its start was never reported


def _state(folder: Path) -> State:
    alive = _is_held(folder)
    try:
        facts = json.loads((folder / "exit").read_text())
    except FileNotFoundError:
        # The keeper was killed, or the machine went down: the end was seen by nobody.
        return State(status="running" if alive else "exited")
    return State(status="exited", exit_code=_shell_code(facts["exit_code"]), ended_at=facts["ended_at"])


def _shell_code(code: int | None) -> int | None:
    return 128 - code if code is not None and code < 0 else code


def _is_held(folder: Path) -> bool:
    """Whether a keeper lives: it holds the lock, and a reused pid cannot."""
    try:
        fd = os.open(folder / "lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _log(folder: Path) -> bytes:
    parts = []
    for name in ("log.1", "log"):
        with contextlib.suppress(FileNotFoundError):
            parts.append((folder / name).read_bytes())
    return b"".join(parts)


def _order(folder: Path, text: str) -> None:
    _write_fifo(folder / "ctl", text.encode())


def _write_fifo(path: Path, data: bytes) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            raise ToolError("the process has ended; its input is closed") from error
        raise
    until = time.monotonic() + _WRITE_LIMIT_S
    view = memoryview(data)
    try:
        while view:
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                left = until - time.monotonic()
                if left <= 0:
                    raise ToolError("the process does not read its input; try again later") from None
                select.select([], [fd], [], left)
    finally:
        os.close(fd)
