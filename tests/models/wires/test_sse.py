"""The event-stream parser: the same events however the bytes are cut, and nothing without bounds."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.models.http.errors import HttpBodyError
from hermes.models.wires.sse import SseEvent, SseParser

EXAMPLES = 3000 if os.environ.get("HERMES_TEST_FULL") else 300


def parse(*chunks: bytes) -> tuple[list[SseEvent], bytes]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)], parser.rest()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_all_line_ends_are_read(end: bytes) -> None:
    text = end.join([b"event: delta", b"data: one", b"data: two", b"", b"data:three", b"", b""])
    assert parse(text) == ([SseEvent(b"one\ntwo", "delta"), SseEvent(b"three")], b"")


def test_an_event_is_handed_out_with_its_last_byte() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\r\r") == [SseEvent(b"a")]
    assert parser.feed(b"\ndata: b\r\n\r") == [SseEvent(b"b")]
    assert parser.feed(b"\n") == []


def test_comments_retry_and_unknown_fields_are_passed_over() -> None:
    assert parse(b": keep-alive\n\nretry: 5\nwhat: ever\nnothing\ndata: x\n\n: bye\n\n") == ([SseEvent(b"x")], b"")


def test_only_one_space_after_the_colon_is_removed() -> None:
    assert parse(b"data:  x \n\n")[0] == [SseEvent(b" x ")]


def test_an_event_without_data_is_none_and_its_name_does_not_stick() -> None:
    assert parse(b"event: ping\n\ndata: x\n\n")[0] == [SseEvent(b"x")]


def test_empty_data_is_an_event() -> None:
    assert parse(b"data\n\ndata:\n\n")[0] == [SseEvent(b""), SseEvent(b"")]


def test_the_id_lasts_and_one_with_nul_is_ignored() -> None:
    events, _ = parse(b"id: 7\ndata: a\n\ndata: b\n\nid: 8\0\ndata: c\n\n")
    assert [event.id for event in events] == ["7", "7", "7"]


def test_done_is_recognised() -> None:
    events, _ = parse(b"data: {}\n\ndata: [DONE]\n\n")
    assert [event.is_done for event in events] == [False, True]


@pytest.mark.parametrize("cut", range(5))
def test_a_byte_order_mark_is_removed_wherever_it_is_cut(cut: int) -> None:
    text = b"\xef\xbb\xbfdata: x\n\n"
    assert parse(text[:cut], text[cut:])[0] == [SseEvent(b"x")]


def test_split_utf8_is_whole_again() -> None:
    text = "data: grün 🌲\n\n".encode()
    assert parse(*(text[i : i + 1] for i in range(len(text))))[0] == [SseEvent("grün 🌲".encode())]


def test_an_event_cut_off_at_the_end_is_the_rest() -> None:
    assert parse(b"data: a\n\ndata: b\ndata: c") == ([SseEvent(b"a")], b"b\nc")
    assert parse(b"data: [DO") == ([], b"[DO")


@pytest.mark.parametrize("body", [b'{"id": 1}', b'{\n  "id": 1\n}\n', b"\n\n[1,\n2]", b"<html>\ndata: no\n\n</html>"])
def test_a_body_that_is_no_event_stream_is_the_rest(body: bytes) -> None:
    assert parse(body) == ([], body.lstrip(b"\n"))


def test_events_before_an_over_long_one_are_handed_out_first() -> None:
    parser = SseParser(max_event_bytes=100)
    assert parser.feed(b"data: a\n\ndata: " + b"x" * 200) == [SseEvent(b"a")]
    with pytest.raises(HttpBodyError, match="more than 100 bytes"):
        parser.feed(b"y")


@pytest.mark.parametrize("piece", [b"x" * 60, b"data: " + b"x" * 40 + b"\n"])
def test_neither_a_line_nor_an_event_grows_without_bound(piece: bytes) -> None:
    parser = SseParser(max_event_bytes=1000)
    with pytest.raises(HttpBodyError):
        list(map(parser.feed, [piece] * 40))


def test_a_long_stream_of_short_events_is_no_overflow() -> None:
    parser = SseParser(max_event_bytes=100)
    assert len(parser.feed(b"data: 0123456789\n\n" * 1000)) == 1000


lines = st.one_of(
    st.sampled_from([b"", b"data: [DONE]", b"data", b"event: x", b"id: 1", b": c", b"{", b"  {", b" ", b"retry: 1"]),
    st.text(max_size=6).map(lambda text: b"data: " + text.encode("utf-8", "replace")),
    st.binary(max_size=6),
)
streams = st.tuples(
    st.sampled_from([b"", b"\xef\xbb\xbf"]), st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r\n", b"\r"])))
).map(lambda parts: parts[0] + b"".join(line + end for line, end in parts[1]))


@settings(max_examples=EXAMPLES, deadline=None)
@given(streams, st.data())
def test_any_chunking_gives_the_same_events(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    whole = parse(stream)
    assert parse(*chunks) == whole
    assert parse(*(stream[i : i + 1] for i in range(len(stream)))) == whole
