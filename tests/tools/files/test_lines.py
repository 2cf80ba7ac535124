"""Pages of lines, however the bytes arrive."""

import os
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.tools.files.encoding import UTF8, detect
from hermes.tools.files.lines import MAX_LINE_CHARS, LinePage, Pager, PageRequest

EXAMPLES = 2000 if os.environ.get("HERMES_TEST_FULL") else 200


def page_of(data: bytes, request: PageRequest) -> LinePage:
    """The page of a file that is in memory already."""
    pager = Pager(request, detect(data) or UTF8)
    pager.feed(data)
    return pager.finish(is_end=True)


def numbered_lines(page: LinePage) -> str:
    return "\n".join(f"{number}|{line}" for number, line in enumerate(page.lines, page.first_line))


@pytest.mark.parametrize(
    ("data", "request_", "numbered", "newlines", "has_more"),
    [
        (b"a\nb\n", PageRequest(), "1|a\n2|b\n3|", 2, False),
        (b"a\nb", PageRequest(), "1|a\n2|b", 1, False),
        (b"a\r\nb\r", PageRequest(), "1|a\n2|b\r", 1, False),
        (b"a\nb\nc\n", PageRequest(offset=2, limit=1), "2|b", 3, True),
        (b"a\nb\n", PageRequest(limit=2), "1|a\n2|b", 2, False),
        (b"a\nb\n", PageRequest(offset=9), "", 2, False),
        ("ü\nb\n".encode("utf-16"), PageRequest(offset=2), "2|b\n3|", 2, False),
    ],
)
def test_page(data: bytes, request_: PageRequest, numbered: str, newlines: int, has_more: bool) -> None:
    page = page_of(data, request_)

    assert (numbered_lines(page), page.newlines, page.has_more) == (numbered, newlines, has_more)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(st.text(alphabet="ab\ré€\U0001f600", max_size=6), max_size=12),
    st.integers(1, 14),
    st.integers(1, 14),
    st.integers(1, 9),
)
def test_chunks_make_no_difference(lines: list[str], offset: int, limit: int, size: int) -> None:
    data = "\n".join(lines).encode()
    request = PageRequest(offset=offset, limit=limit)
    pager = Pager(request, UTF8)
    for start in range(0, len(data), size):
        pager.feed(data[start : start + size])

    page = pager.finish(is_end=True)

    split = data.decode().split("\n")
    ended = [line.removesuffix("\r") for line in split[:-1]] + split[-1:]
    assert page.lines == tuple(ended[offset - 1 : offset - 1 + limit])
    assert page.newlines == data.count(b"\n")


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(alphabet="aé€\U0001f600\n", max_size=40), st.integers(1, 50))
def test_folded_lines_hold_every_character(text: str, repeat: int) -> None:
    data = (text * repeat * 40).encode()

    page = page_of(data, PageRequest(limit=10**9, fold=True))

    assert "".join(page.lines) == (text * repeat * 40).replace("\n", "")
    assert all(len(line) <= MAX_LINE_CHARS for line in page.lines)


def test_memory_follows_the_page_and_not_the_file() -> None:
    pager = Pager(PageRequest(offset=1000, limit=10), UTF8)
    chunk = b"x" * (1 << 20)
    tracemalloc.start()
    try:
        for _ in range(64):
            pager.feed(chunk)  # one line of 64 MB
        pager.feed(b"\n" * 2000)
        page = pager.finish(is_end=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert page.lines == ("",) * 10
    assert peak < 1 << 20


def test_counting_stops_at_its_bound() -> None:
    pager = Pager(PageRequest(limit=1, count_bytes=100), UTF8)
    fed = 0
    while not pager.is_satisfied:
        pager.feed(b"line\n" * 4)
        fed += 20

    page = pager.finish(is_end=False)

    assert fed == 100
    assert (page.newlines, page.is_counted, page.has_more) == (20, False, True)


def test_stray_byte_far_into_a_file_is_shown_as_latin_1() -> None:
    pager = Pager(PageRequest(), UTF8)
    pager.feed("ü\n".encode() + b"caf\xe9\n")

    assert pager.finish(is_end=True).lines == ("ü", "café", "")
