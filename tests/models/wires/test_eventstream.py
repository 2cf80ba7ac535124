"""AWS event streams: read however their bytes are cut, refused when they are damaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.models.http.errors import HttpBodyError
from hermes.models.wires.eventstream import EventMessage, EventStreamParser
from hermes.testing.server.bedrock import event_message

payloads = st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3), min_size=1, max_size=5)


def headers(event: str) -> dict[str, str]:
    return {":event-type": event, ":content-type": "application/json", ":message-type": "event"}


@given(payloads, st.lists(st.integers(1, 60), max_size=20))
def test_messages_are_the_same_wherever_the_bytes_are_cut(sent: list[dict[str, str]], sizes: list[int]) -> None:
    whole = b"".join(event_message("delta", payload) for payload in sent)
    parser, found, at = EventStreamParser(), [], 0
    for size in [*sizes, len(whole)]:
        found += parser.feed(whole[at : at + size])
        at += size
    assert found == EventStreamParser().feed(whole)
    assert [message.headers for message in found] == [headers("delta")] * len(sent)
    assert parser.rest() == b""


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_byte_is_never_taken_for_a_message(place: int, flip: int) -> None:
    whole = bytearray(event_message("delta", {"text": "hello"}))
    whole[place % len(whole)] ^= flip
    parser = EventStreamParser()
    try:
        found = parser.feed(bytes(whole))
    except HttpBodyError:
        return
    assert found == []  # the length was made longer: it waits for more, and the end of the stream tells


def test_something_else_is_told_at_once() -> None:
    with pytest.raises(HttpBodyError, match="not an AWS event stream"):
        EventStreamParser().feed(b"<html>It works, or does it?</html>")


def test_the_rest_of_a_cut_message_is_kept() -> None:
    parser = EventStreamParser()
    whole = event_message("delta", {"text": "hello"})
    assert parser.feed(whole[:-1]) == []
    assert parser.rest() == whole[:-1]
    assert parser.feed(whole[-1:]) == [EventMessage(headers("delta"), b'{"text":"hello"}')]
