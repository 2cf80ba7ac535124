"""What a finished conversation comes to: the line of its trajectory, its figures, and whether it is kept."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from hermes.runtime.trajectory import calls_of, has_reasoning, result_of, said
from hermes.types import JsonObject

NO_REASONING, UNKNOWN_TOOL, NOT_VERIFIED = "no_reasoning", "unknown_tool", "not_verified"


class ToolFigures(Struct, frozen=True):
    """Calls by tool. Both maps name every known tool, so that all lines have the same columns."""

    stats: dict[str, dict[str, int]]
    errors: dict[str, int]
    unknown: list[str]  # tools that were called and do not exist


def tool_figures(messages: Sequence[Mapping[str, Any]], known: Collection[str]) -> ToolFigures:
    """Count the calls of a conversation, and those that failed."""
    stats = {name: {"count": 0, "success": 0, "failure": 0} for name in sorted(known)}
    unknown: list[str] = []
    results = {str(one.get("tool_call_id")): said(one) for one in messages if one["role"] == "tool"}
    for call_id, name in calls_of(messages):
        if name not in stats:
            unknown.append(name)
            continue
        counted = stats[name]
        counted["count"] += 1
        counted["failure" if has_failed(results.get(call_id, "")) else "success"] += 1
    return ToolFigures(stats, {name: one["failure"] for name, one in stats.items()}, unknown)


def has_failed(text: str) -> bool:
    """Whether a result tells of a failure; the exit code of a command is none."""
    value = result_of(text)
    if isinstance(value, Mapping):
        return value.get("error") is not None or value.get("success") is False
    return isinstance(value, str) and (not value.strip() or value.lstrip().lower().startswith("error:"))


def reasoning_figures(messages: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many answers show how the model came to them."""
    answers = [one for one in messages if one["role"] == "assistant"]
    shown = sum(has_reasoning(one) for one in answers)
    return {
        "total_assistant_turns": len(answers),
        "turns_with_reasoning": shown,
        "turns_without_reasoning": len(answers) - shown,
    }


class Totals:
    """The figures of a run, added up sample by sample; it holds a few numbers, however many samples there are."""

    def __init__(self) -> None:
        self.tools: dict[str, dict[str, int]] = {}
        self.reasoning = reasoning_figures(())
        self.tokens = 0
        self.cost_usd = 0.0
        self.unpriced = 0
        self.api_calls = 0
        self.incomplete = 0  # samples that are kept though their turn was not brought to its end

    def add(self, facts: Mapping[str, Any]) -> None:
        """Take the facts of one sample's row."""
        for name, counted in facts.get("tools", {}).items():
            mine = self.tools.setdefault(name, {"count": 0, "success": 0, "failure": 0})
            for key in mine:
                mine[key] += counted.get(key, 0)
        for key in self.reasoning:
            self.reasoning[key] += facts.get("reasoning", {}).get(key, 0)
        self.tokens += facts.get("tokens", 0)
        self.api_calls += facts.get("api_calls", 0)
        cost = facts.get("cost_usd")
        self.cost_usd += cost or 0.0
        self.unpriced += cost is None

    def tool_statistics(self) -> JsonObject:
        """By tool, with the shares that worked and failed in percent."""
        return {name: {**one, **_rates(one)} for name, one in sorted(self.tools.items())}


def _rates(one: Mapping[str, int]) -> dict[str, float]:
    count = one["count"]
    return {f"{kind}_rate": round(100 * one[kind] / count, 2) if count else 0.0 for kind in ("success", "failure")}
