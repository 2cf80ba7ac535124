"""How much is too much, and how much of it may stay: all of it arithmetic."""

from collections.abc import Iterable, Sequence

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


NEVER = 1 << 62  # more tokens, or characters, than any conversation has
CHARS_PER_TOKEN = 4
MIN_THRESHOLD_TOKENS = 64_000
MOST_OF_WINDOW = 0.85  # the floor above must not lie beyond a small window
MIN_SUMMARY_TOKENS = 2_000
MAX_SUMMARY_TOKENS = 12_000
SUMMARY_SHARE = 0.20  # of what it stands for
SUMMARY_WINDOW_SHARE = 0.05
SUMMARISER_SHARE = 0.6  # of the summariser's window that one request fills


def threshold_tokens(window: int, share: float) -> int:
    """The size of a prompt at which it is compressed; never, when the window is not known."""
    if window <= 0:
        return NEVER
    return min(max(int(window * share), MIN_THRESHOLD_TOKENS), int(window * MOST_OF_WINDOW))


def tail_tokens(threshold: int, ratio: float) -> int:
    """What the newest messages may keep of a threshold, word for word."""
    return int(threshold * min(max(ratio, 0.10), 0.80))


def summary_tokens(summarised: int, window: int) -> int:
    """How long a summary of that many tokens may be."""
    most = min(int(window * SUMMARY_WINDOW_SHARE), MAX_SUMMARY_TOKENS)
    least = min(MIN_SUMMARY_TOKENS, window // 8)
    return max(min(int(summarised * SUMMARY_SHARE), most), least)


def piece_chars(window: int) -> int:
    """How much of a conversation a summariser with that window is handed at once."""
    return max(4_000, int(window * SUMMARISER_SHARE) * CHARS_PER_TOKEN)
