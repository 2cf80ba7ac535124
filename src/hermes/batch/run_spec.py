"""What a run is asked for, and what it came to."""

import hashlib
import math
from pathlib import Path
from typing import Any

from msgspec import Struct, field, to_builtins

from hermes.errors import UserError
from hermes.types import JsonObject

DATA = "data"  # the folder of runs, in the folder where they are started
# What every sample of a run has in common: with another, its output would be two runs in one.
LASTING = (
    *("batch_size", "distribution", "model", "max_turns", "ephemeral_system_prompt", "max_tokens", "reasoning_effort"),
    *("reasoning_disabled", "prefill_messages", "seed", "sends_seed", "logprobs", "keeps_unreasoned"),
)
NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class RunSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A run. What is empty comes from the settings. `api_key` is never stored."""

    dataset: str
    run_name: str
    batch_size: int = 10
    distribution: str = "default"
    model: str = ""
    base_url: str = ""
    provider: str = ""
    api_key: str = ""
    max_turns: int = 10
    num_workers: int = 4  # samples at once
    processes: int = 1
    max_samples: int | None = None
    ephemeral_system_prompt: str = ""
    max_tokens: int | None = None
    reasoning_effort: str = ""
    reasoning_disabled: bool = False
    prefill_messages: list[JsonObject] = field(default_factory=list)
    providers_allowed: list[str] = field(default_factory=list)
    providers_ignored: list[str] = field(default_factory=list)
    providers_order: list[str] = field(default_factory=list)
    provider_sort: str = ""
    seed: int = 0  # of the toolsets that are drawn
    sends_seed: bool = False  # also to the server, another one for each sample
    logprobs: bool = False
    sample_usd: float | None = None
    sample_tokens: int | None = None
    sample_seconds: float | None = None
    run_usd: float | None = None
    run_tokens: int | None = None
    keeps_unreasoned: bool = False
    keeps_workspaces: bool = False
    folder: str = ""  # of the run's files; empty is ./data/<run_name>

    def checked(self) -> "RunSpec":
        """The same with an absolute folder; `UserError` for what cannot be."""
        if not self.run_name or not set(self.run_name) <= NAME_CHARS or self.run_name.startswith("."):
            raise UserError(
                f"a run's name has letters, digits, '.', '_' and '-', and begins with no dot: {self.run_name!r}"
            )
        for name in ("batch_size", "max_turns", "num_workers", "processes"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is at least 1, not {getattr(self, name)}")
        for name in ("sample_usd", "sample_tokens", "sample_seconds", "run_usd", "run_tokens"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UserError(f"{name} is a number above 0, not {value}")
        folder = Path(self.folder) if self.folder else Path.cwd() / DATA / self.run_name
        dataset = Path(self.dataset).expanduser().absolute()
        return replace_spec(self, folder=str(folder.expanduser().absolute()), dataset=str(dataset))

    @property
    def run_id(self) -> str:
        """Of the run in the store: its name, and where it is."""
        return f"{self.run_name}-{hashlib.sha256(self.folder.encode()).hexdigest()[:8]}"

    def stored(self) -> JsonObject:
        """What is kept of it: no key."""
        kept: JsonObject = to_builtins(replace_spec(self, api_key=""))
        return kept

    def batch_of(self, index: int) -> int:
        return index // self.batch_size


def replace_spec(spec: RunSpec, **changes: Any) -> RunSpec:
    """`spec` with these fields."""
    return RunSpec(**{**{name: getattr(spec, name) for name in spec.__struct_fields__}, **changes})


class RunProgress(Struct, kw_only=True):
    """How far a run is."""

    total: int = 0
    done: int = 0
    dropped: int = 0
    failed: int = 0
    running: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0  # samples whose price nobody knows
    elapsed_s: float = 0.0
    here: int = 0  # that ended in this process, of which the rate is told
    notes: list[str] = field(default_factory=list)  # what a person should know of the run before it begins

    @property
    def ended(self) -> int:
        return self.done + self.dropped + self.failed

    @property
    def rate(self) -> float:
        """Samples a second."""
        return self.here / self.elapsed_s if self.elapsed_s else 0.0

    @property
    def left_s(self) -> float | None:
        """About how long the rest will take; None when nobody can tell yet."""
        return (self.total - self.ended) / self.rate if self.here else None

    def as_dict(self) -> JsonObject:
        """For programs."""
        told: JsonObject = to_builtins(self)
        told.pop("here")
        if self.unpriced and self.unpriced >= self.ended:
            told["cost_usd"] = None  # not known, which is not nothing
        told |= {"elapsed_s": round(self.elapsed_s, 3), "rate": round(self.rate, 3)}
        return {**told, "left_s": None if self.left_s is None else round(self.left_s, 1)}


class RunReport(Struct, frozen=True, kw_only=True):
    """What a run has come to when `run_batch` returns."""

    run_id: str
    folder: Path
    progress: RunProgress
    bad_lines: list[tuple[int, str]]
    bad_line_count: int = 0
    stopped: str = ""  # why it ended before all samples had, if it did
    held: str = ""  # who may be at work on samples that this run did not get
    reasons: dict[str, int] = field(default_factory=dict)  # why samples were dropped or failed

    @property
    def is_complete(self) -> bool:
        return self.progress.ended >= self.progress.total
