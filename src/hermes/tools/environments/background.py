"""Background processes as every backend offers them: start, look, read, write, stop."""

import asyncio
import logging
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from hermes.errors import ToolError
from hermes.seams import Decision, Environment

log = logging.getLogger(__name__)
Status: TypeAlias = Literal["running", "exited"]


class Order(Struct, frozen=True, kw_only=True):
    """A background process to be, and what is to be told about it."""

    command: str
    cwd: str
    pty: bool = False
    session_id: str = ""
    task_id: str = ""
    notify: bool = False
    watch: tuple[str, ...] = ()


class Record(Struct, frozen=True, kw_only=True):
    """A background process as it was started; kept beside its log, so that a later runtime finds it."""

    id: str
    order: Order
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

    async def start(self, order: Order, decision: Decision) -> Record: ...
    async def records(self, task_id: str | None = None) -> list[Record]: ...
    async def find(self, ident: str) -> Record | None: ...
    async def state(self, record: Record) -> State: ...
    async def log(self, record: Record) -> bytes: ...
    async def kill(self, record: Record, grace_s: float = 1.0) -> bool:
        """Stop it and everything below it; False when it had ended already."""
        ...

    async def write(self, record: Record, data: bytes) -> None:
        """Send to its stdin; raises `ToolError` when that is not possible."""
        ...

    async def close_stdin(self, record: Record) -> None: ...
    async def mark_seen(self, record: Record) -> None:
        """The end of it was shown; no notice of it is needed."""
        ...

    async def notices(self, *session_ids: str) -> list[str]:
        """What there is to tell these sessions since the last time: ends, and output they watch for."""
        ...

    async def end_session(self, session_id: str) -> int:
        """Stop what the session still runs; return how many that were."""
        ...


async def end_all(background: Background, records: list[Record]) -> int:
    """Stop these, side by side; return how many still ran."""

    async def end(record: Record) -> bool:
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
