"""Keep results small enough to send: what is too long becomes head, tail, counts and a handle to the whole."""

from collections.abc import Mapping
from typing import Any

from hermes.seams import ResultShelf, ToolRules
from hermes.tools.registry import tool_result
from hermes.types import Content, TextPart

BATCH_CHARS = 200_000
_HEAD = 2_000
_TAIL = 1_000


class BatchBudget:
    """The characters that the results of one assistant message may take together."""

    def __init__(self, chars: float = BATCH_CHARS) -> None:
        self.left = chars

    def take(self, chars: int) -> None:
        self.left -= chars


def threshold(name: str, rules: ToolRules, settings: Mapping[str, Any]) -> float:
    """How long one result of a tool may be: what the configuration says of it, else what the tool registered."""
    if not rules.spill:
        return float("inf")
    section = settings.get("tool_output")
    configured = section.get("max_result_chars") if isinstance(section, Mapping) else None
    if isinstance(configured, Mapping) and isinstance(configured.get(name), int | float):
        return float(configured[name])
    return rules.max_result_chars


async def fit(name: str, content: Content, limit: float, shelf: ResultShelf, budget: BatchBudget) -> Content:
    """`content`, or its ends with a handle when it is longer than `limit` or than what is left of the batch."""
    if not isinstance(content, str):
        parts = [
            TextPart(await _fit_text(name, part.text, limit, shelf, budget)) if isinstance(part, TextPart) else part
            for part in content
        ]
        return tuple(parts)
    return await _fit_text(name, content, limit, shelf, budget)


async def _fit_text(name: str, text: str, limit: float, shelf: ResultShelf, budget: BatchBudget) -> str:
    if len(text) > limit or (len(text) > budget.left and len(text) > _HEAD + _TAIL and limit != float("inf")):
        data = text.encode()
        text = digest(text, await shelf.put(name, data), len(data))
    budget.take(len(text))
    return text


def digest(text: str, handle: str, size_bytes: int) -> str:
    """The ends of `text` and how to get at the rest."""
    head, tail = _cut_head(text[:_HEAD]), text[-_TAIL:]
    newline = tail.find("\n")
    if 0 <= newline < _TAIL // 2:
        tail = tail[newline + 1 :]
    return tool_result(
        truncated=True,
        handle=handle,
        chars=len(text),
        bytes=size_bytes,
        lines=text.count("\n") + (not text.endswith("\n")),
        head=head,
        tail=tail,
        _hint=f"The whole result is kept. read_file(path={handle!r}) pages through it by line; "
        f"search_files(path={handle!r}, pattern=…) searches in it.",
    )


def _cut_head(head: str) -> str:
    newline = head.rfind("\n")
    return head[: newline + 1] if newline > len(head) // 2 else head
