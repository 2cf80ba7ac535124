"""Trajectories made to fit: the middle of each that is too long becomes one summary. Works without a model hub."""

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from hermes.batch.compress_config import CompressConfig
from hermes.disk_trouble import reason_of
from hermes.errors import HermesError, UserError
from hermes.runtime.trajectory import dumped
from hermes.types import JsonObject

SUMMARY_MARK = "[CONTEXT SUMMARY]:"
SYSTEM = (
    "You shorten the record of an agent's work. Say what was done, what was found, which files and values matter and "
    "what is still open, in about {tokens} tokens. Write plain sentences, and nothing else."
)
Ask = Callable[[str, str], Any]  # system, text -> awaitable text
Turn = dict[str, str]


class TurnCut(Struct, frozen=True):
    """The turns of a trajectory that a summary takes the place of: from `start` up to `end`."""

    start: int
    end: int
    tokens: int


class CompressMetrics(Struct):
    """What came of a file."""

    trajectories: int = 0
    compressed: int = 0
    copied: int = 0  # at or under the target
    still_over: int = 0  # longer than the target, also without all that may be taken
    failed: int = 0
    bad_lines: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    turns_removed: int = 0
    summary_calls: int = 0
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)


def plan_cut(sizes: Sequence[int], kinds: Sequence[str], config: CompressConfig) -> TurnCut | None:
    """Which turns to take so that the rest and a summary fit; None when it fits already or nothing may be taken.

    Oldest first after the protected head, never into the protected tail, and never a call without its result.
    """
    target, summary = config.compression.target_max_tokens, config.compression.summary_target_tokens
    total = sum(sizes)
    if total <= target:
        return None
    guarded = config.protected_turns
    wanted = {kind for kind in ("system", "human", "gpt", "tool") if getattr(guarded, f"first_{kind}")}
    heads = [kinds.index(kind) for kind in wanted if kind in kinds]
    start, last = (max(heads) + 1 if heads else 0), len(kinds) - guarded.last_n_turns
    while start < last and kinds[start] == "tool":  # the result of a call that stays
        start += 1
    end, taken = start, 0
    while end < last and total - taken + summary > target:
        taken += sizes[end]
        end += 1
    while end < last and kinds[end] == "tool":  # the result of a call that goes
        taken += sizes[end]
        end += 1
    while end > start and end < len(kinds) and kinds[end] == "tool":  # protected, so its call stays, too
        end -= 1
        taken -= sizes[end]
    return TurnCut(start, end, taken) if end > start else None


def with_summary(turns: Sequence[Turn], cut: TurnCut, summary: str, config: CompressConfig) -> list[Turn]:
    """The trajectory with `summary` in the place of what is cut."""
    told: Turn = {"from": "human", "value": f"{SUMMARY_MARK} {summary.strip()}"}
    made = [dict(one) for one in (*turns[: cut.start], told, *turns[cut.end :])]
    if config.output.add_summary_notice and made[0]["from"] == "system":
        made[0]["value"] = f"{made[0]['value']}\n\n{config.output.summary_notice_text}"
    return made


class Compressor:
    """Compresses files line by line; what is done is kept beside the output until all of it is."""

    def __init__(
        self, config: CompressConfig, count: Callable[[str], int], ask: Ask, *, percent: float, seed: int
    ) -> None:
        self._config = config
        self._count = count
        self._ask = ask
        self._percent = percent
        self._seed = seed
        self.metrics = CompressMetrics()

    async def run(self, source: Path, output: Path, *, is_dry: bool = False) -> None:
        """Write `output`; `UserError` when lines failed, which are tried again by the next run."""
        began = time.monotonic()
        lines = self._chosen(source)
        beside = output.with_name(f"{output.name}.partial")
        mark = self._mark(source)
        done = {} if is_dry else _kept(beside, mark)
        limit = asyncio.Semaphore(self._config.processing.max_concurrent_requests)
        if is_dry:
            for number, line in lines:
                self._plan(number, line)
            self.metrics.seconds += time.monotonic() - began
            return
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("a", encoding="utf-8") as kept:
                if not done:
                    kept.truncate(0)
                    kept.write(json.dumps({"mark": mark}) + "\n")

                async def one(number: int, line: bytes) -> None:
                    async with limit:
                        made = await self._line(number, line)
                    if made is not None:
                        kept.write(json.dumps({"n": number, "line": made}) + "\n")
                        kept.flush()
                        done[number] = made

                async with asyncio.TaskGroup() as group:
                    for number, line in lines:
                        if number not in done:
                            group.create_task(one(number, line))
                        else:
                            self.metrics.trajectories += 1
            self.metrics.seconds += time.monotonic() - began
            if self.metrics.failed:
                raise UserError(
                    f"{self.metrics.failed} of {len(lines)} trajectories of {source.name} could not be summarized "
                    f"({self.metrics.errors[0]}); run the same command again to go on with them"
                )
            text = "".join(f"{done[number]}\n" for number, _ in lines if number in done)
            ready = output.with_name(f".{output.name}.ready")
            ready.write_text(text, encoding="utf-8")
            ready.replace(output)
            beside.unlink()
        except OSError as error:
            raise UserError(f"cannot write {str(output)!r}: {reason_of(error)}") from error

    def _chosen(self, source: Path) -> list[tuple[int, bytes]]:
        try:
            lines = [(n, line) for n, line in enumerate(source.read_bytes().splitlines(), 1) if line.strip()]
        except OSError as error:
            raise UserError(f"cannot read {str(source)!r}: {reason_of(error)}") from error
        if self._percent >= 100:
            return lines
        chosen = random.Random(self._seed).sample(lines, round(len(lines) * self._percent / 100))
        return sorted(chosen)

    def _plan(self, number: int, line: bytes) -> "tuple[JsonObject, TurnCut | None] | None":
        entry = _entry(line)
        if entry is None:
            self.metrics.bad_lines += 1
            self.metrics.errors.append(f"line {number} is no trajectory")
            return None
        turns = entry["conversations"]
        sizes = [self._count(one["value"]) for one in turns]
        cut = plan_cut(sizes, [one["from"] for one in turns], self._config)
        metrics, total = self.metrics, sum(sizes)
        metrics.trajectories += 1
        metrics.tokens_before += total
        if cut is None:
            metrics.copied += total <= self._config.compression.target_max_tokens
            metrics.still_over += total > self._config.compression.target_max_tokens
            metrics.tokens_after += total
        return entry, cut

    async def _line(self, number: int, line: bytes) -> str | None:
        planned = self._plan(number, line)
        if planned is None:
            return None
        entry, cut = planned
        if cut is None:
            return line.decode("utf-8", "replace")
        turns = entry["conversations"]
        words = "\n\n".join(f"[{one['from']}]\n{one['value']}" for one in turns[cut.start : cut.end])
        try:
            summary = await self._ask(SYSTEM.format(tokens=self._config.compression.summary_target_tokens), words)
        except HermesError as error:
            self.metrics.failed += 1
            self.metrics.errors.append(f"line {number}: {error}")
            return None
        finally:
            self.metrics.summary_calls += 1
        entry["conversations"] = made = with_summary(turns, cut, summary, self._config)
        after = sum(self._count(one["value"]) for one in made)
        self.metrics.compressed += 1
        self.metrics.tokens_after += after
        self.metrics.turns_removed += cut.end - cut.start
        self.metrics.still_over += after > self._config.compression.target_max_tokens
        return dumped(entry)

    def _mark(self, source: Path) -> str:
        """Names the work: another input or other settings begin anew."""
        config = self._config
        parts = (config.compression, config.protected_turns, config.output, config.summarization.model)
        settings = msgspec.json.encode((parts, self._percent, self._seed))
        return hashlib.sha256(source.read_bytes() + settings).hexdigest()


def _entry(line: bytes) -> JsonObject | None:
    try:
        entry = json.loads(line)
        turns = entry["conversations"]
        is_good = bool(turns) and all(isinstance(one["from"], str) and isinstance(one["value"], str) for one in turns)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return entry if is_good else None


def _kept(beside: Path, mark: str) -> dict[int, str]:
    """The lines that an earlier run of the same work has made."""
    found: dict[int, str] = {}
    try:
        lines = beside.read_text(encoding="utf-8").splitlines()
        if not lines or json.loads(lines[0]).get("mark") != mark:
            return {}
    except (OSError, ValueError):
        return {}
    for line in lines[1:]:
        try:
            one = json.loads(line)
            found[one["n"]] = one["line"]
        except (ValueError, KeyError):  # the last one, which a kill has cut
            continue
    return found
