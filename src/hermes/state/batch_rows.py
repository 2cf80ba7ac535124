"""The seam for batch runs: one row for each run and each of its samples, so that a run goes on exactly where it was."""

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, TypeAlias, get_args

from msgspec import Struct, field

from hermes.types import JsonObject

SampleState: TypeAlias = Literal["waiting", "running", "done", "dropped", "failed"]
ENDED: tuple[SampleState, ...] = ("done", "dropped", "failed")
SAMPLE_STATES: tuple[SampleState, ...] = get_args(SampleState)


class BatchRun(Struct, frozen=True, kw_only=True):
    """One run. `spec` is what it was asked for, as JSON."""

    run_id: str
    name: str
    folder: str  # where its files are
    spec: JsonObject = field(default_factory=dict)
    started_at: float = 0.0
    ended_at: float | None = None

    def session_of(self, index: int, attempt: int) -> str:
        """The session of a sample's attempt. A run that is forgotten and begun again has other sessions."""
        return f"{self.session_prefix}{index:06d}_{attempt}"

    @property
    def session_prefix(self) -> str:
        return f"batch_{self.run_id}_{int(self.started_at * 1000):x}_"


class SampleKey(Struct, frozen=True):
    """Which sample of a dataset: its place and the digest of what it asks. Two equal prompts are two samples."""

    index: int
    digest: str


class SampleRow(Struct, frozen=True, kw_only=True):
    """One sample as it stands. `facts` are its figures, once it has ended; `attempt` counts from 1 once it began."""

    index: int
    digest: str
    state: SampleState = "waiting"
    attempt: int = 0
    session_id: str = ""
    owner: str = ""  # the process that works on it
    reason: str = ""  # why it was dropped or failed
    facts: JsonObject = field(default_factory=dict)


class RunSpending(Struct, frozen=True, kw_only=True):
    """What all model calls of a run have come to, also those of samples that were cut off or begun anew."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0  # calls whose price nobody knows


class BatchRows(Protocol):
    """The runs of a store, as plain calls that are durable when they return, each all or nothing."""

    def begin(self, run: BatchRun, samples: Sequence[SampleKey]) -> int:
        """Keep the run and those of its samples that are not there yet; how many were added.

        A place that now holds other words is a new sample, whose attempts go on counting. Earlier figures of the run,
        and when it was started, stay.
        """

    def find(self, run_id: str) -> BatchRun | None: ...
    def runs(self) -> list[BatchRun]:
        """All, newest first."""

    def ended(self, run_id: str, at: float | None) -> None:
        """The run has come to its end, or begins to work again."""

    def rows(self, run_id: str) -> Iterator[SampleRow]:
        """All samples in order, read piece by piece."""

    def counts(self, run_id: str) -> dict[SampleState, int]: ...
    def take(self, run_id: str, most: int, below: int | None = None) -> list[SampleRow]:
        """The next that wait, of those before index `below`, for this process; none is given to two.

        What a process had that is gone waits again, and what one had elsewhere that none of its sessions has been heard
        from for a while. They come as they were. One that nobody had begun is kept as begun, in the session of its
        first attempt.
        """

    def hold(self, run_id: str, index: int, attempt: int, session_id: str) -> None:
        """This process begins it once more, as this attempt and in this session: kept before the session begins."""

    def put_back(self, run_id: str, index: int) -> None:
        """It was not brought to an end; it waits for whoever goes on."""

    def again(self, run_id: str) -> int:
        """Those that failed wait again; how many."""

    def finish(self, run_id: str, *ended: tuple[SampleRow, bytes | None]) -> list[bool]:
        """Samples have ended as their rows say, each with what it gives. False for one that had ended before."""

    def bodies(self, run_id: str, after: int = -1) -> Iterator[tuple[int, SampleState, bytes]]:
        """What samples gave, in order, those above index `after`, read piece by piece."""

    def spending(self, run_id: str) -> RunSpending:
        """By the ledger, since the run was started."""

    def sample(self, run_id: str, index: int) -> tuple[SampleRow, bytes | None] | None:
        """One sample and what it gave."""

    def forget(self, run_id: str) -> bool:
        """Remove the run and its samples; the sessions stay. False when there is none."""
