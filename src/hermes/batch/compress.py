"""One trajectory made to fit: the middle of what is too long becomes one summary. Works without a model hub."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from hermes.batch.compress_config import CompressConfig
from hermes.errors import ProviderError, ProviderReason
from hermes.runtime.trajectory import dumped
from hermes.types import JsonObject

SUMMARY_MARK = "[CONTEXT SUMMARY]:"
SYSTEM = (
    "You shorten the record of an agent's work. Say what was done, what was found, which files and values matter and "
    "what is still open, in about {tokens} tokens. Write plain sentences, and nothing else."
)
# What no trajectory is to blame for: the next one would fare no better, so the run stops and nothing is given up.
_OF_THE_SERVER: frozenset[ProviderReason] = frozenset({"auth", "billing", "model_not_found"})

Ask: TypeAlias = Callable[[str, str], Awaitable[str]]  # system, text -> summary
Turn: TypeAlias = dict[str, str]


class TurnCut(Struct, frozen=True):
    """The turns of a trajectory that a summary takes the place of: from `start` up to `end`."""

    start: int
    end: int
    tokens: int


class LineFigures(Struct, omit_defaults=True):
    """What came of one line, as figures that add up."""

    trajectories: int = 0
    compressed: int = 0
    copied: int = 0  # at or under the target
    still_over: int = 0  # longer than the target, also without all that may be taken
    failed: int = 0  # its summary could not be made, so it is as it was
    bad_lines: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    turns_removed: int = 0
    summary_calls: int = 0


class CompressMetrics(LineFigures, omit_defaults=False):
    """What came of all lines."""

    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)  # lines that failed, and those that are no trajectory
    over: list[str] = field(default_factory=list)  # lines that are still over the target

    def add(self, made: "MadeLine", where: str) -> None:
        """Count a line; `where` names it."""
        figures = made.figures
        for name in LineFigures.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(figures, name))
        if made.problem:
            self.errors.append(f"{where}: {made.problem}")
        if figures.still_over:
            self.over.append(f"{where}: {figures.tokens_after:,} tokens")


class MadeLine(Struct, frozen=True, omit_defaults=True):
    """What a line became. Without a `text` it stays as it was, or is left out where it is no trajectory."""

    figures: LineFigures
    text: str | None = None
    problem: str = ""


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
    """The trajectory with `summary` in the place of what is cut; the system turn tells of it, once."""
    told: Turn = {"from": "human", "value": f"{SUMMARY_MARK} {summary.strip()}"}
    made = [dict(one) for one in (*turns[: cut.start], told, *turns[cut.end :])]
    notice = config.output.summary_notice_text
    if config.output.add_summary_notice and made[0]["from"] == "system" and notice not in made[0]["value"]:
        made[0]["value"] = f"{made[0]['value']}\n\n{notice}"
    return made


class Compressor:
    """Makes lines fit, one at a time; counts the summaries, and the calls whose connection failed."""

    def __init__(self, config: CompressConfig, count: Callable[[str], int], ask: Ask) -> None:
        self._config = config
        self._count = count
        self._ask = ask
        self.summaries = 0
        self.cut_off: list[ProviderError] = []

    def plan(self, line: bytes) -> MadeLine:
        """What would become of the line if its summary is as long as it should be."""
        entry = _entry(line)
        if entry is None:
            return _no_trajectory()
        total, cut = self._cut(entry)
        if cut is None:
            return MadeLine(self._as_it_is(total))
        after = total - cut.tokens + self._config.compression.summary_target_tokens
        return MadeLine(self._shortened(total, cut, after))

    async def make(self, line: bytes) -> MadeLine:
        """Make the line fit. `HermesError` for what stops the whole run; a summary that fails alone is counted."""
        entry = _entry(line)
        if entry is None:
            return _no_trajectory()
        total, cut = self._cut(entry)
        if cut is None:
            return MadeLine(self._as_it_is(total))
        turns = entry["conversations"]
        words = "\n\n".join(f"[{one['from']}]\n{one['value']}" for one in turns[cut.start : cut.end])
        try:
            summary = await self._ask(SYSTEM.format(tokens=self._config.compression.summary_target_tokens), words)
        except ProviderError as error:
            if error.reason in _OF_THE_SERVER:
                raise
            if error.reason == "connection":
                self.cut_off.append(error)
            figures = LineFigures(trajectories=1, failed=1, tokens_before=total, tokens_after=total, summary_calls=1)
            return MadeLine(figures, problem=str(error))
        self.summaries += 1
        entry["conversations"] = made = with_summary(turns, cut, summary, self._config)
        after = sum(self._count(one["value"]) for one in made)
        return MadeLine(self._shortened(total, cut, after), text=dumped(entry))

    def _cut(self, entry: JsonObject) -> tuple[int, TurnCut | None]:
        turns = entry["conversations"]
        sizes = [self._count(one["value"]) for one in turns]
        return sum(sizes), plan_cut(sizes, [one["from"] for one in turns], self._config)

    def _as_it_is(self, total: int) -> LineFigures:
        made = LineFigures(trajectories=1, tokens_before=total, tokens_after=total)
        made.still_over = int(total > self._config.compression.target_max_tokens)
        made.copied = 1 - made.still_over
        return made

    def _shortened(self, total: int, cut: TurnCut, after: int) -> LineFigures:
        made = LineFigures(trajectories=1, compressed=1, tokens_before=total, tokens_after=after, summary_calls=1)
        made.turns_removed = cut.end - cut.start
        made.still_over = int(after > self._config.compression.target_max_tokens)
        return made


def _entry(line: bytes) -> JsonObject | None:
    try:
        entry = json.loads(line)
        turns = entry["conversations"]
        is_good = bool(turns) and all(isinstance(one["from"], str) and isinstance(one["value"], str) for one in turns)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return entry if is_good else None


def _no_trajectory() -> MadeLine:
    return MadeLine(LineFigures(bad_lines=1), problem="it is no trajectory, and is left out")
