"""Keep results small enough to send: what is too long becomes head, tail, counts and a handle to the whole."""

from collections.abc import Awaitable, Mapping
from typing import Any

from msgspec import Struct

from hermes.disk_trouble import reason_of
from hermes.seams import ResultShelf, ToolRules
from hermes.tools.registry import DEFAULT_RESULT_CHARS, tool_result
from hermes.types import Content, TextPart, text_of

NO_LIMIT = float("inf")
_BATCH_CHARS = 200_000
_LEAST_RESULT = 8_000
_LEAST_BATCH = 16_000
_CHARS_PER_TOKEN = 4
_SHOWN = 3_000
_LEAST_SHOWN = 300


class ResultLimits(Struct, frozen=True):
    """How long results may be in a session."""

    batch: float  # those of one assistant message together: at most three tenths of the model's window
    result: float  # one of them
    configured: Mapping[str, float]  # one of such a tool, whatever else is said

    @classmethod
    def of(cls, settings: Mapping[str, Any], window_tokens: int | None) -> "ResultLimits":
        return cls(
            _share(window_tokens, 0.3, _LEAST_BATCH, _BATCH_CHARS),
            _share(window_tokens, 0.15, _LEAST_RESULT, DEFAULT_RESULT_CHARS),
            (settings.get("tool_output") or {}).get("max_result_chars") or {},
        )

    def one(self, name: str, rules: ToolRules) -> float:
        """How long one result may be: what the configuration says of the tool, else what it registered and fits."""
        if not rules.spill or rules.max_result_chars == NO_LIMIT:
            return NO_LIMIT
        return self.configured.get(name) or min(rules.max_result_chars, self.result)


def _share(window_tokens: int | None, part: float, least: float, most: float) -> float:
    return most if window_tokens is None else min(most, max(least, window_tokens * _CHARS_PER_TOKEN * part))


async def fit(name: str, content: Content, limit: float, shelf: ResultShelf) -> Content:
    """`content`, or its ends with a handle when it is longer than `limit`."""
    if not isinstance(content, str):
        return tuple(
            [
                TextPart(str(await fit(name, part.text, limit, shelf))) if isinstance(part, TextPart) else part
                for part in content
            ]
        )
    return content if len(content) <= limit else await _kept(name, content, shelf)


async def spill(contents: Mapping[str, tuple[str, Content]], left: float, shelf: ResultShelf) -> dict[str, str]:
    """Which of `contents` (a tool's name and its result, by call) give way until all fit into `left`, largest first.

    The digests that take their place, by call. What a digest would not make shorter stays.
    """
    spilled: dict[str, str] = {}
    total = sum(len(text_of(content)) for _, content in contents.values())
    shown = int(min(_SHOWN, max(_LEAST_SHOWN, left / (2 * len(contents) + 1))))
    texts = {call: (name, text) for call, (name, text) in contents.items() if isinstance(text, str)}
    for call, (name, text) in sorted(texts.items(), key=lambda item: len(item[1][1]), reverse=True):
        if total <= left or len(text) <= 2 * shown:
            break
        spilled[call] = await _kept(name, text, shelf, shown)
        total -= len(text) - len(spilled[call])
    return spilled


async def _kept(name: str, text: str, shelf: ResultShelf, shown: int = _SHOWN) -> str:
    data = text.encode()
    handle, loss = await handle_or_loss(shelf.put(name, data))
    return digest(text, handle, len(data), shown, loss)


async def handle_or_loss(putting: Awaitable[str]) -> tuple[str, str]:
    """The handle of what goes on the shelf, or why the disk did not take it: what can be shown is shown anyway."""
    try:
        return await putting, ""
    except OSError as error:
        return "", reason_of(error)


async def kept_output(putting: Awaitable[str]) -> dict[str, str]:
    """The same as a part of a result that shows the ends of an output."""
    handle, loss = await handle_or_loss(putting)
    return {"full_output_lost": f"the whole output could not be kept: {loss}"} if loss else {"full_output": handle}


def digest(text: str, handle: str, size_bytes: int, shown: int = _SHOWN, loss: str = "") -> str:
    """The ends of `text`, `shown` characters of it, and how to get at the rest, or why it could not be kept."""
    tail_chars = shown // 3
    head, tail = _cut_head(text[: shown - tail_chars]), text[-tail_chars:]
    newline = tail.find("\n")
    if 0 <= newline < tail_chars // 2:
        tail = tail[newline + 1 :]
    hint = (
        f"The whole result could not be kept ({loss}); ask for less at once."
        if loss
        else f"The whole result is kept. read_file(path={handle!r}) pages through it by line; "
        f"search_files(path={handle!r}, pattern=…) searches in it."
    )
    return tool_result(
        truncated=True,
        handle=handle or None,
        chars=len(text),
        bytes=size_bytes,
        lines=text.count("\n") + (not text.endswith("\n")),
        head=head,
        tail=tail,
        _hint=hint,
    )


def _cut_head(head: str) -> str:
    newline = head.rfind("\n")
    return head[: newline + 1] if newline > len(head) // 2 else head
