"""The seam for the schedule: jobs, their due moments, what is to be delivered, and who keeps the time.

The rows are plain; what they mean is decided in `hermes.schedule`, by functions that run inside one transaction. So a
database has to offer a dozen reads and writes, and every one of them behaves alike.
"""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from hermes.types import JsonObject

Answer = TypeVar("Answer")
ScheduleKind: TypeAlias = Literal["once", "interval", "cron"]
JobState: TypeAlias = Literal["scheduled", "paused", "completed", "error"]
CatchUp: TypeAlias = Literal["skip", "once", "all"]
Overlap: TypeAlias = Literal["skip", "queue", "parallel"]
MomentKind: TypeAlias = Literal["schedule", "manual"]
MomentState: TypeAlias = Literal["planned", "claimed", "done", "skipped", "folded"]
DeliveryState: TypeAlias = Literal["waiting", "sending", "sent", "failed"]


class Schedule(Struct, frozen=True, kw_only=True):
    """When a job is due. `at` is the moment itself, or what an interval counts from."""

    kind: ScheduleKind
    display: str
    at: float = 0.0
    seconds: int = 0
    expr: str = ""


class Job(Struct, frozen=True, kw_only=True):
    """A job as it is stored. All of its due moments up to `mark` have a row, or came before it."""

    id: str  # 12 hex digits
    name: str
    schedule: Schedule
    created_at: float
    mark: float
    prompt: str = ""
    skills: tuple[str, ...] = ()
    model: str = ""
    provider: str = ""
    base_url: str = ""
    script: str = ""
    no_agent: bool = False
    context_from: tuple[str, ...] = ()
    enabled_toolsets: tuple[str, ...] = ()
    workdir: str = ""
    deliver: str = "local"
    origin: JsonObject = {}
    timezone: str = ""  # empty: that of the settings
    repeat: int | None = None  # None: forever
    completed: int = 0  # runs begun by the schedule
    expires_at: float | None = None
    catch_up: CatchUp = "once"
    overlap: Overlap = "skip"
    jitter_s: int = 0
    run_usd: float | None = None
    month_usd: float | None = None
    allow: tuple[str, ...] = ()  # commands that a person granted to this job
    state: JobState = "scheduled"
    paused_at: float | None = None
    paused_reason: str = ""
    last_run_at: float | None = None
    last_status: str = ""  # ok or error
    last_error: str = ""
    last_delivery_error: str = ""
    last_cost_usd: float | None = None
    failures: int = 0  # in a row
    ahead: tuple[float, ...] = ()  # moments to come that have their row: they ran while the clock was wrong


class DueMoment(Struct, frozen=True, kw_only=True):
    """One row: a due moment that was run or is to be run, or `count` that were passed over one after the other."""

    job_id: str
    due_at: float
    state: MomentState
    id: int = 0
    kind: MomentKind = "schedule"
    last_at: float = 0.0
    count: int = 1
    start_at: float = 0.0  # `due_at` with jitter, or later where it has to wait
    reason: str = ""  # why it was passed over
    outcome: str = ""  # of one that is done: ok, silent, error
    error: str = ""
    phase: Literal["", "script", "agent"] = ""  # how far a claimed one has come
    session_id: str = ""
    output: str = ""  # the file with what came of it
    fence: int = 0  # that only who has claimed it knows
    owner: str = ""
    claimed_at: float = 0.0
    renewed_at: float = 0.0
    finished_at: float = 0.0
    tries: int = 0
    cost_usd: float | None = None


class Delivery(Struct, frozen=True, kw_only=True):
    """Words that are to reach somebody: written with the outcome that they tell, sent afterwards."""

    job_id: str
    target: str
    text: str
    at: float
    id: int = 0
    moment_id: int = 0
    origin: JsonObject = {}
    state: DeliveryState = "waiting"
    owner: str = ""
    tries: int = 0
    next_try_at: float = 0.0
    error: str = ""


class TickerLease(Struct, frozen=True, kw_only=True):
    """Who keeps the time. `seen_at` is the latest time that a ticker has seen: a clock before it was put back."""

    fence: int
    owner: str
    since: float
    renewed_at: float
    seen_at: float


class ScheduleTx(Protocol):
    """The rows, inside one transaction."""

    def job(self, job_id: str) -> Job | None: ...
    def jobs(self) -> list[Job]:
        """All of them, the oldest first."""

    def put_job(self, job: Job) -> None: ...
    def drop_job(self, job_id: str) -> None: ...

    def due(self, now: float, limit: int) -> list[DueMoment]:
        """Planned ones whose start has come, the longest overdue first."""

    def next_start(self) -> float | None: ...

    def moment(self, moment_id: int) -> DueMoment | None: ...
    def of_job(self, job_id: str, *states: MomentState) -> list[DueMoment]:
        """Its rows in these states, in the order of their moments."""

    def last_before(self, job_id: str, due_at: float) -> DueMoment | None:
        """The newest row of its schedule, folded ones apart, whose moments come before this one."""

    def in_state(self, state: MomentState) -> list[DueMoment]: ...
    def history(self, job_id: str | None, limit: int) -> list[DueMoment]:
        """What is no longer planned, the newest first."""

    def ended_before(self, at: float, limit: int) -> list[DueMoment]:
        """Done and skipped ones whose last moment is older."""

    def add_moment(self, moment: DueMoment) -> int:
        """Its id. `ValueError` where the job has a row of this kind for this moment already."""

    def put_moment(self, moment: DueMoment) -> None: ...
    def drop_moment(self, moment_id: int) -> None: ...
    def cost_since(self, job_id: str, at: float) -> float: ...

    def delivery(self, delivery_id: int) -> Delivery | None: ...
    def deliveries(self, state: DeliveryState, now: float, limit: int) -> list[Delivery]:
        """Those in this state whose time has come, the oldest first."""

    def add_delivery(self, delivery: Delivery) -> int: ...
    def put_delivery(self, delivery: Delivery) -> None: ...
    def drop_deliveries(self, before: float) -> int:
        """Forget those that have ended before this time; how many."""

    def lease(self) -> TickerLease | None: ...
    def put_lease(self, lease: TickerLease | None) -> None: ...


class ScheduleRows(Protocol):
    """The schedule of a store, as plain calls from any thread. A write is all or nothing, also between processes, and
    durable when it returns; its work may be run twice, so it changes nothing but the rows.
    """

    def read(self, work: Callable[[ScheduleTx], Answer]) -> Answer: ...
    def write(self, work: Callable[[ScheduleTx], Answer]) -> Answer: ...


def by_moment(rows: Sequence[DueMoment]) -> list[DueMoment]:
    """Rows in the order of their moments."""
    return sorted(rows, key=lambda row: (row.due_at, row.id))
