"""Background processes as every backend offers them: start, look, read, write, stop."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from hermes.errors import ToolError
from hermes.seams import Decision, Environment

log = logging.getLogger(__name__)
Status: TypeAlias = Literal["running", "exited"]


class BackgroundRequest(Struct, frozen=True, kw_only=True):
    """A background process to be, and what is to be told about it."""

    command: str
    cwd: str
    pty: bool = False
    session_id: str = ""
    task_id: str = ""
    notify: bool = False
    watch: tuple[str, ...] = ()


class BackgroundRecord(Struct, frozen=True, kw_only=True):
    """A background process as it was started; kept beside its log, so that a later runtime finds it."""

    id: str
    order: BackgroundRequest
    pid: int
    started_at: float
    backend: str = "local"


class State(Struct, frozen=True, kw_only=True):
    """How a background process stands. `exit_code` is None while it runs, and when nobody saw its end."""

    status: Status
    exit_code: int | None = None
    ended_at: float | None = None


class Background(Protocol):
    """The background processes of one environment. Unknown ids are None, not an error."""

    async def start(self, order: BackgroundRequest, decision: Decision) -> BackgroundRecord: ...
    async def records(self, task_id: str | None = None) -> list[BackgroundRecord]: ...
    async def find(self, ident: str) -> BackgroundRecord | None: ...
    async def state(self, record: BackgroundRecord) -> State: ...
    async def log(self, record: BackgroundRecord) -> bytes: ...
    async def kill(self, record: BackgroundRecord, grace_s: float = 1.0) -> bool:
        """Stop it and everything below it; False when it had ended already."""

    async def write(self, record: BackgroundRecord, data: bytes) -> None:
        """Send to its stdin; raises `ToolError` when that is not possible."""

    async def close_stdin(self, record: BackgroundRecord) -> None: ...
    async def mark_seen(self, record: BackgroundRecord) -> None:
        """The end of it was shown; no notice of it is needed."""

    def is_silent(self, *session_ids: str) -> bool:
        """Whether `notices` has surely nothing to tell these; known without a look anywhere."""

    async def notices(self, *session_ids: str) -> list[str]:
        """What there is to tell these sessions since the last time: ends, and output they watch for."""

    async def end_session(self, session_id: str) -> int:
        """Stop what the session still runs; return how many that were."""


async def end_all(background: Background, records: list[BackgroundRecord]) -> int:
    """Stop these, side by side; return how many still ran."""

    async def end(record: BackgroundRecord) -> bool:
        try:
            return await background.kill(record)
        except ToolError as error:
            log.warning("a background process runs on: %s", error)
            return False

    async with asyncio.TaskGroup() as group:
        ends = [group.create_task(end(record)) for record in records]
    return sum(each.result() for each in ends)


def background_of(environment: Environment) -> Background:
    """The background processes of `environment`; `ToolError` when it has none."""
    found: Background | None = getattr(environment, "background", None)
    if found is None:
        raise ToolError(f"the {environment.kind} environment has no background processes; run it in the foreground")
    return found


WINDOW_S = 15.0
STRIKES = 3
GLOBAL_MOST, GLOBAL_WINDOW_S, COOL_DOWN_S = 15, 10.0, 30.0
_SHOWN = 2000


class WatchLimit:
    """At most one notice per window; three windows in a row with more than that, and watching is given up."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._window_ends = float("-inf")
        self._over_in_window = False
        self._strikes = 0
        self.given_up = False

    def allow(self) -> bool:
        """Whether a match may be told now."""
        if self.given_up:
            return False
        now = self._clock()
        if now < self._window_ends:
            if not self._over_in_window:
                self._over_in_window = True
                self._strikes += 1
                self.given_up = self._strikes >= STRIKES
            return False
        if not self._over_in_window:
            self._strikes = 0
        self._window_ends = now + WINDOW_S
        self._over_in_window = False
        return True


class Breaker:
    """The limit over all processes: 15 notices in 10 s, then none for 30 s."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: deque[float] = deque(maxlen=GLOBAL_MOST)
        self._closed_until = float("-inf")

    def allow(self) -> bool:
        now = self._clock()
        if now < self._closed_until:
            return False
        if len(self._times) == GLOBAL_MOST and now - self._times[0] < GLOBAL_WINDOW_S:
            self._closed_until = now + COOL_DOWN_S
            self._times.clear()
            return False
        self._times.append(now)
        return True


def completion(record: BackgroundRecord, exit_code: int | None, output: str) -> str:
    """The message that a process has ended."""
    code = "unknown" if exit_code is None else exit_code
    return (
        f"[IMPORTANT: background process {record.id} has ended with exit code {code}.\n"
        f"Command: {record.order.command}\nLast output:\n{output[-_SHOWN:]}]"
    )


def matches(record: BackgroundRecord, lines: list[str], limit: WatchLimit, breaker: Breaker) -> list[str]:
    """What there is to say of new lines: the first pattern that hit, that watching ends, or nothing."""
    for pattern in record.order.watch:
        hits = [line for line in lines if pattern in line]
        if hits and limit.allow() and breaker.allow():
            return [_matched(record, pattern, hits)]
        if hits:
            return [_given_up(record)] if limit.given_up else []
    return []


def _matched(record: BackgroundRecord, pattern: str, lines: list[str]) -> str:
    """The message that watched-for output has come."""
    text = "\n".join(lines)[-_SHOWN:]
    return (
        f"[IMPORTANT: background process {record.id} printed {pattern!r}.\n"
        f"Command: {record.order.command}\nMatching output:\n{text}]"
    )


def _given_up(record: BackgroundRecord) -> str:
    """The message that watching was too noisy."""
    return (
        f"[IMPORTANT: background process {record.id} prints watched-for text too often; it is no longer watched, "
        "and you are told once when it ends.]"
    )
