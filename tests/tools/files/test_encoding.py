"""Text keeps its bytes, whatever it is stored as."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.tools.files.encoding import (
    Encoding,
    Endings,
    LineEndings,
    NotTextError,
    UnencodableError,
    decode,
    detect,
    encode,
    line_endings,
)

EXAMPLES = 3000 if os.environ.get("HERMES_TEST_FULL") else 300
STORED_TEXT = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda text, codec, bom: (
            (bom if codec.startswith(("utf-8", "utf-16")) else b"") + text.encode(codec, "replace")
        ),
        st.text(max_size=200),
        st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "latin-1", "cp1252"]),
        st.sampled_from([b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]),
    ),
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(STORED_TEXT)
def test_bytes_taken_for_text_come_back_the_same(data: bytes) -> None:
    try:
        decoded = decode(data)
    except NotTextError:
        return
    assert encode(decoded.text, decoded.encoding) == data


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"", Encoding("utf-8")),
        (b"plain\n", Encoding("utf-8")),
        ("naïve café\n".encode(), Encoding("utf-8")),
        (b"\xef\xbb\xbfwith mark\n", Encoding("utf-8", b"\xef\xbb\xbf")),
        ("a\nü\n".encode("utf-16"), Encoding("utf-16-le", b"\xff\xfe")),
        (b"\xfe\xff" + "a\nü\n".encode("utf-16-be"), Encoding("utf-16-be", b"\xfe\xff")),
        ("plain words\n".encode("utf-16-le"), Encoding("utf-16-le")),
        ("plain words\n".encode("utf-16-be"), Encoding("utf-16-be")),
        (b"caf\xe9 na\xefve\n", Encoding("latin-1")),
        (b"it\x92s \x93quoted\x94 caf\xe9\n", Encoding("cp1252")),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0", None),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", None),
        (bytes(range(1, 256)), None),
        (b"\xff\xfe\0\0a\0\0\0", None),
    ],
)
def test_encodings_are_told_apart(data: bytes, encoding: Encoding | None) -> None:
    assert detect(data) == encoding


def test_head_may_stop_inside_a_character() -> None:
    whole = "ab€".encode()

    assert detect(whole[:-1], is_whole=False) == Encoding("utf-8")
    assert detect(whole[:-1]) == Encoding("cp1252")
    assert detect("ab€".encode("utf-16")[:-1], is_whole=False) == Encoding("utf-16-le", b"\xff\xfe")


def test_character_that_the_encoding_lacks_is_named_with_its_line() -> None:
    with pytest.raises(UnencodableError, match=r"line 2: this file is latin-1, which cannot hold '→'"):
        encode("a\nb → c\n", Encoding("latin-1"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", LineEndings(Endings.LF, is_mixed=False)),
        ("a\nb\n", LineEndings(Endings.LF, is_mixed=False)),
        ("a\r\nb\r\n", LineEndings(Endings.CRLF, is_mixed=False)),
        ("a\rb\r", LineEndings(Endings.CR, is_mixed=False)),
        ("a\r\nb\r\nc\n", LineEndings(Endings.CRLF, is_mixed=True)),
    ],
)
def test_line_endings_are_counted(text: str, expected: LineEndings) -> None:
    assert line_endings(text) == expected
