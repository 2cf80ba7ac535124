"""A turn whose session is compressed under it goes on in the one that took its place."""

import re
from typing import NamedTuple

from msgspec.structs import replace

from hermes.dicts import from_dict
from hermes.errors import ProviderError
from hermes.runtime.session.compression import Compressed, Compression, CompressionRequest
from hermes.runtime.session.context_watch import MIN_WORTH
from hermes.runtime.session.history import from_record
from hermes.runtime.turn import Turn
from hermes.types import Content, Message, text_of

MIN_WINDOW = 1_000  # a smaller number in an error is not the size of a window
_NUMBER = r"(?<![\w.-])\d[\d,]{2,}(?![\w-])"  # by itself: names of models hold numbers, too


class CallerWords(NamedTuple):
    """`sent` is what the model read in place of the stored question; `is_given` says the caller brought the history."""

    sent: Content | None
    is_given: bool


async def compress_turn(
    compression: Compression, turn: Turn, refused: ProviderError | None, said: CallerWords
) -> Compressed | None:
    """Compress the session of `turn`; everything it had to store must be stored.

    What was refused did not fit, whatever the window is.
    """
    history = turn.history
    if len(history.dicts) < MIN_WORTH:
        return None
    tokens = turn.watch.tokens(turn)
    done = await compression.run(
        CompressionRequest(
            session_id=turn.session_id,
            sink=turn.ctx.sink,
            scope=turn.ctx.scope,
            tokens=tokens,
            force=refused is not None,
            past=[from_dict(one) for one in history.dicts] if said.is_given else None,
            window=None if refused is None else min(turn.client.window.tokens, max(tokens, MIN_WINDOW)),
            model_config=turn.model_config,
        )
    )
    if done is not None:
        _go_on(turn, done, said.sent)
    return done


def named_window(refused: ProviderError) -> int | None:
    """The window that a refusal names: the smallest number in it that can be one."""
    if refused.reason != "context_overflow":
        return None
    numbers = [int(found.replace(",", "")) for found in re.findall(_NUMBER, str(refused))]
    return min((number for number in numbers if number >= MIN_WINDOW), default=None)


def _go_on(turn: Turn, done: Compressed, sent: Content | None) -> None:
    record = done.record
    if sent is not None:
        record = replace(record, messages=_as_sent(record.messages, sent))
    turn.ctx = replace(turn.ctx, session_id=record.session_id)
    turn.earlier = record.earlier
    turn.history, _ = from_record(record)
    if sent is not None:
        _show_stored(turn, done.record.messages)
    turn.outcome.last_prompt_tokens = 0


def _as_sent(messages: tuple[Message, ...], sent: Content) -> tuple[Message, ...]:
    place = _question(messages)
    if place is None:
        return messages
    return (*messages[:place], replace(messages[place], content=sent), *messages[place + 1 :])


def _show_stored(turn: Turn, messages: tuple[Message, ...]) -> None:
    place = _question(messages)
    if place is not None:
        turn.history.dicts[place]["content"] = text_of(messages[place].content)


def _question(messages: tuple[Message, ...]) -> int | None:
    return next((place for place in range(len(messages) - 1, -1, -1) if messages[place].role == "user"), None)
