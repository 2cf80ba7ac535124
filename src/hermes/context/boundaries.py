"""Where a conversation is cut: head and tail stay, the middle is summed up, and no call loses its result."""

from collections.abc import Sequence

from msgspec import Struct

from hermes.context.estimate import message_tokens
from hermes.context.summary import is_summary
from hermes.types import Message

TAIL_SLACK = 1.5  # a tail may exceed its budget by half, so that it need not end inside a thought
MIN_TAIL = 3


class Cut(Struct, frozen=True, kw_only=True):
    """`head` messages stay in front, those from `tail` on at the end. `asked` is the newest question of the person:
    when it lies in between, it is kept by itself, in front of the tail."""

    head: int
    tail: int
    asked: int | None

    def middle(self, messages: Sequence[Message]) -> list[Message]:
        """What is to be summed up, earlier summaries left out."""
        places = range(self.head, self.tail)
        return [messages[place] for place in places if place != self.asked and not is_summary(messages[place])]


def cut(messages: Sequence[Message], *, protect_first: int, tail_budget: int) -> Cut:
    """The cut through `messages`."""
    head = _head(messages, protect_first)
    tail = max(head, _tail(messages, tail_budget))
    asked = newest_question(messages)
    if asked is not None and asked < head:
        head = asked  # it is what the agent works on: it belongs behind the summary, not in front of it
    return Cut(head=head, tail=tail, asked=asked if asked is not None and asked < tail else None)


def _head(messages: Sequence[Message], protect_first: int) -> int:
    place = 0
    while place < len(messages) and messages[place].role == "system":
        place += 1
    for _ in range(protect_first):
        if place >= len(messages) or is_summary(messages[place]):
            return place
        place += 1
    while place < len(messages) and messages[place].role == "tool":
        place += 1
    return place


def _tail(messages: Sequence[Message], budget: int) -> int:
    left, place = int(budget * TAIL_SLACK), len(messages)
    while place:
        left -= message_tokens(messages[place - 1])
        if left < 0 and len(messages) - place >= MIN_TAIL:
            break
        place -= 1
    while 0 < place < len(messages) and messages[place].role == "tool":
        place -= 1  # the calls of these results come along
    return place


def newest_question(messages: Sequence[Message]) -> int | None:
    """Where the person spoke last."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "user" and not is_summary(messages[place]):
            return place
    return None
