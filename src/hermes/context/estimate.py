"""About how many tokens messages are; no tokenizer is asked."""

from collections.abc import Iterable, Sequence

from hermes.context.limits import CHARS_PER_TOKEN
from hermes.types import Message, OpaquePart, TextPart

MESSAGE_TOKENS = 10  # for the role and what is around the words
PICTURE_TOKENS = 1_600


def tokens_of(messages: Iterable[Message]) -> int:
    """All of them together."""
    return sum(map(message_tokens, messages))


def message_tokens(message: Message) -> int:
    """One message: its words, calls, pictures and stored thoughts."""
    size = _size(message.reasoning_content or message.reasoning or "")
    size += sum(_size(call.name) + _size(call.arguments) for call in message.tool_calls)
    pictures = 0
    if isinstance(message.content, str):
        size += _size(message.content)
    for part in message.content if isinstance(message.content, tuple) else ():
        if isinstance(part, TextPart):
            size += _size(part.text)
        elif isinstance(part, OpaquePart):
            size += len(str(part.raw))
        else:
            pictures += 1
    return MESSAGE_TOKENS + size // CHARS_PER_TOKEN + pictures * PICTURE_TOKENS


def fitting_from(messages: Sequence[Message], budget: int) -> int:
    """The place from which on messages fit into `budget` tokens, counted from the end."""
    left, place = budget, len(messages)
    while place and (left := left - message_tokens(messages[place - 1])) >= 0:
        place -= 1
    return place


def _size(text: str) -> int:
    """Bytes: a character of most other scripts is about a token by itself."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
