"""What is particular to Claude models, wherever they are served: output caps, thinking, names."""

import re

from hermes.models.wires.content import effort_of
from hermes.types import JsonObject

BUDGETS = {"xhigh": 32_000, "high": 16_000, "medium": 8_000, "low": 4_000, "minimal": 1_024}
ROOM_AFTER_THINKING = 4_096
DEFAULT_MAX_OUTPUT = 128_000

# The first that is contained in the name decides.
_CAPS = (
    ("opus-4-7", 128_000),
    ("opus-4-6", 128_000),
    ("sonnet-4-6", 64_000),
    ("sonnet-4-5", 64_000),
    ("opus-4-5", 64_000),
    ("haiku-4-5", 64_000),
    ("sonnet-4", 64_000),
    ("opus-4", 32_000),
    ("3-7", 128_000),
    ("3-5", 8_192),
    ("claude-3", 4_096),
)
_VERSION = re.compile(r"claude-(?:\w+-)?(\d+)(?:-(\d{1,2}))?(?!\d)")


def plain_name(model: str) -> str:
    """The id as Anthropic spells it: no vendor prefix, hyphens in the version."""
    return re.sub(r"(\d)\.(\d)", r"\1-\2", model.rpartition("/")[2])


def max_output(model: str) -> int:
    """Tokens the model can write in one answer."""
    name = plain_name(model)
    return next((cap for part, cap in _CAPS if part in name), DEFAULT_MAX_OUTPUT)


def version(model: str) -> tuple[int, int]:
    """(4, 6) for `claude-sonnet-4-6`; (0, 0) when the name says none."""
    found = _VERSION.search(plain_name(model))
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def thinking_fields(model: str, reasoning: JsonObject | None, max_tokens: int) -> JsonObject:
    """The fields that ask for reasoning, `max_tokens` among them; from 4.6 on the model chooses how long it thinks."""
    effort = effort_of(reasoning)
    fields: JsonObject = {"max_tokens": max_tokens}
    if effort is None:
        return fields
    if effort == "none" or "haiku" in model:
        return fields
    if version(model) >= (4, 6):
        shown = "low" if effort == "minimal" else effort
        if shown == "xhigh" and version(model) < (4, 7):
            shown = "max"
        return fields | {"thinking": {"type": "adaptive"}, "output_config": {"effort": shown}}
    budget = BUDGETS.get(effort, BUDGETS["medium"])
    return {
        "max_tokens": max(max_tokens, budget + ROOM_AFTER_THINKING),
        "thinking": {"type": "enabled", "budget_tokens": budget},
        "temperature": 1,
    }
