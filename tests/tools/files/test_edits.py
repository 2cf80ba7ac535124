"""An edit goes where its text is, once, and touches nothing else."""

import os

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hermes.tools.files.edits import AmbiguousError, Edited, EditError, NotFoundError, replace
from hermes.tools.files.encoding import UTF8, Encoding, UnencodableError, encode
from hermes.tools.files.reencode import stored
from hermes.tools.files.tokens import Level

EXAMPLES = 3000 if os.environ.get("HERMES_TEST_FULL") else 300

ENDINGS = st.sampled_from(["\n", "\r\n", "\r", "\n", "\n"])
WORDS = st.text(alphabet="abcxyz (){}\t\"'\\\u2013“é.=", max_size=12)
LINES = st.lists(st.tuples(WORDS, ENDINGS), max_size=8)
ENCODINGS = [UTF8, Encoding("utf-8", b"\xef\xbb\xbf"), Encoding("latin-1"), Encoding("utf-16-le", b"\xff\xfe")]
TEXTS = st.builds(
    lambda lines, tail: "".join(line + end for line, end in lines) + tail, LINES, st.sampled_from(["", "end", "}"])
)


@pytest.mark.parametrize(
    ("text", "old", "new", "expected", "level"),
    [
        ("a\nb\nc\n", "b", "X\nY", "a\nX\nY\nc\n", Level.EXACT),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n", Level.EXACT),
        ("a\r\nb\r\nc\r\n", "a\nb\n", "a\nX\nb\n", "a\r\nX\r\nb\r\nc\r\n", Level.LINE_ENDINGS),
        ("a  \nb\t\nc\n", "a\nb\nc", "a\nB\nc", "a  \nB\t\nc\n", Level.LINE_ENDINGS),
        ("foo\nbar", "bar\n", "baz\nqux\n", "foo\nbaz\nqux", Level.LINE_ENDINGS),
        ("x\n\ny\n", "x\n  \ny", "x\n\nz", "x\n\nz\n", Level.LINE_ENDINGS),
        (
            "def f():\n\tif x:\n\t\treturn 1\n",
            "    if x:\n        return 1\n",
            "    if x:\n        if y:\n            return 2\n        return 1\n",
            "def f():\n\tif x:\n\t\tif y:\n\t\t\treturn 2\n\t\treturn 1\n",
            Level.INDENTATION,
        ),
        (
            "class A:\n    def f(self):\n        return 1\n",
            "def f(self):\n    return 1",
            "def f(self):\n    x = 1\n    return x",
            "class A:\n    def f(self):\n        x = 1\n        return x\n",
            Level.INDENTATION,
        ),
        (
            "if a:\n  b()\n  c()\n",
            "if a:\n    b()\n    c()\n",
            "if a:\n    b()\n    for d in e:\n        d()\n",
            "if a:\n  b()\n  for d in e:\n    d()\n",
            Level.INDENTATION,
        ),
        ("say “hi” to her\n", 'say "hi" to', 'say "hello" to', "say “hello” to her\n", Level.LOOKALIKES),
        (
            "it\u2019s 3\u20134 o\u2019clock\n",
            "it's 3-4",
            "it's 5-6",
            "it\u2019s 5\u20136 o\u2019clock\n",
            Level.LOOKALIKES,
        ),
        ("a\u00a0b c\n", "a b c", "a b d", "a\u00a0b d\n", Level.LOOKALIKES),
        ('print("a\\nb")\n', 'print("a\nb")', 'print("a\nc")', 'print("a\\nc")\n', Level.LOOKALIKES),
        ('x = "q"\n', 'x = \\"q\\"', 'x = \\"z\\" + \\"y\\"', 'x = "z" + "y"\n', Level.LOOKALIKES),
        ("caf\u00e9 x\n", "cafe\u0301 x", "cafe\u0301 y", "caf\u00e9 y\n", Level.LOOKALIKES),
        ("wait… now\n", "wait... now", "wait... then", "wait… then\n", Level.LOOKALIKES),
    ],
)
def test_level_and_result(text: str, old: str, new: str, expected: str, level: Level) -> None:
    edited = replace(text, old, new)

    assert (edited.text, edited.level) == (expected, level)


def test_nesting_that_differs_is_no_match_of_indentation() -> None:
    with pytest.raises(NotFoundError):
        replace("if x:\n    a()\nb()\n", "  if x:\n    a()\n    b()\n", "pass\n")


def test_two_blank_lines_are_not_one_crlf() -> None:
    with pytest.raises(NotFoundError):
        replace("a\r\nb\r\n", "a\n\nb\n", "c\n")


def test_several_places_are_named_and_none_is_changed() -> None:
    with pytest.raises(AmbiguousError, match=r"in 3 places \(lines 1, 3, 4, level exact\)") as caught:
        replace("x\ny\nx\nx\n", "x", "z")

    assert caught.value.lines == (1, 3, 4)
    assert replace("x\ny\nx\nx\n", "x", "z", replace_all=True).text == "z\ny\nz\nz\n"


def test_overlapping_places_are_ambiguous() -> None:
    with pytest.raises(AmbiguousError):
        replace("aaa", "aa", "b")


def test_likeness_is_only_suggested() -> None:
    text = "import os\n\n\ndef total(items, tax):\n    return sum(items) * (1 + tax)\n"

    with pytest.raises(NotFoundError) as caught:
        replace(text, "def total(items, rate):\n    return sum(items) * (1 + rate)\n", "pass\n")

    region = caught.value.regions[0]
    assert (region.first_line, region.last_line) == (4, 5)
    assert region.text.startswith("def total(items, tax)")
    assert "lines 4-5" in str(caught.value)


@pytest.mark.parametrize(("old", "new", "said"), [("", "x", "old_string is empty"), ("b", "b", "identical")])
def test_edit_without_sense_is_an_error(old: str, new: str, said: str) -> None:
    with pytest.raises(EditError, match=said):
        replace("a\nb\n", old, new)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("import os\n", "import os", "import os\nimport sys"),
        ("a = 1\n", "a = 1", "a = 2"),
        ("f(x)\n", "f(x)", "g(f(x))"),
        ("one\n", "one", "one and one"),
        ("\tif x:\n\t\ty()\n", "    if x:\n        y()\n", "    if x:\n        y()\n        z()\n"),
        ("first\r\nlast\r\n", "first\nlast\n", "first\nmiddle\nlast\n"),
    ],
)
def test_same_edit_again_changes_nothing_and_says_so(text: str, old: str, new: str) -> None:
    first = replace(text, old, new)
    second = replace(first.text, old, new)

    assert second.text == first.text
    assert second.is_noop
    assert "already" in second.note


def test_wrongly_written_edit_is_not_taken_for_one_that_was_made() -> None:
    text = "def f(a):\n    return a\n\n\ndef g(b):\n    raise ValueError(b)\n"

    with pytest.raises(NotFoundError, match="lines 6-6"):
        replace(text, "    raise ValueErorr(b)", "    return a")
    with pytest.raises(NotFoundError):
        replace(text, "nothing like it", "b")


def test_rename_leaves_names_that_are_already_new() -> None:
    assert replace("get_user get\n", "get", "get_user", replace_all=True).text == "get_user get_user\n"


def test_line_endings_can_be_the_edit_itself() -> None:
    assert replace("a\r\nb\r\n", "a\r\n", "a\n").text == "a\nb\r\n"


def test_spans_give_lines_of_the_new_text() -> None:
    edited = replace("a\nb\na\n", "a\n", "x\ny\n", replace_all=True)

    assert [(span.first_line, span.last_line) for span in edited.spans] == [(1, 2), (4, 5)]


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("foo " * 500_000, "foo  \nbar"),  # one line of 2 MB, with the anchor everywhere
        ("word(“x”) " * 200_000 + "needle", 'needle "y"'),
        (" " * 2_000_000 + "x\n", "  x  \n y"),
        ("a\n" * 500_000, "a \nb"),
        ("x\n", " " * 200_000 + "x y"),
    ],
    ids=["anchor everywhere", "long line", "spaces", "short lines", "long pattern"],
)
def test_search_that_finds_nothing_ends(text: str, old: str) -> None:
    with pytest.raises(NotFoundError):
        replace(text, old, "z")


@settings(max_examples=EXAMPLES, deadline=None)
@given(TEXTS, st.data(), st.text(alphabet="abqZ \n\t", max_size=20))
def test_nothing_outside_the_span_changes(text: str, data: st.DataObject, new: str) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    try:
        edited = replace(text, text[start:end], new)
    except EditError:
        return
    for span in edited.spans:
        assert edited.text[: span.new_start] == text[: span.start]
        assert edited.text[span.new_end :] == text[span.end :]
        assert (span.start, span.end) == (start, end) or text[span.start : span.end] == text[start:end]


@settings(max_examples=EXAMPLES, deadline=None)
@given(TEXTS, st.data(), st.text(alphabet="abqZ \n\t", max_size=20))
def test_loosely_written_edit_changes_nothing_outside_its_span(text: str, data: st.DataObject, new: str) -> None:
    lines = text.split("\n")
    first = data.draw(st.integers(0, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    indent = data.draw(st.sampled_from(["", "  ", "\t"]))
    asked = "\n".join(indent + line.rstrip() for line in lines[first:last])
    loose = asked.replace("“", '"').replace("\u2013", "-").replace("\r", "\n")
    try:
        edited = replace(text, loose, new)
    except EditError:
        return
    at = new_at = 0
    for span in edited.spans:
        assert edited.text[new_at : span.new_start] == text[at : span.start]
        at, new_at = span.end, span.new_end
    assert edited.text[new_at:] == text[at:]


@settings(max_examples=EXAMPLES, deadline=None)
@given(TEXTS, st.data(), st.text(alphabet="abqZ \n\t", max_size=20), st.booleans())
def test_second_application_is_no_change(text: str, data: st.DataObject, new: str, replace_all: bool) -> None:
    start = data.draw(st.integers(0, len(text)))
    old = text[start : data.draw(st.integers(start, len(text)))]
    try:
        edited = replace(text, old, new, replace_all=replace_all)
    except EditError:
        return
    # Where the new text and its surroundings make up the old text anew, it is another edit.
    assume(all(text_between.count(old) == 0 for text_between in _outside(edited)))
    again = replace(edited.text, old, new, replace_all=replace_all, made_before=edited.level)
    assert again.text == edited.text
    assert again.is_noop


def _outside(edited: Edited) -> list[str]:
    """Every part of the text that is not wholly inside one replacement."""
    edges = [0, *(edge for span in edited.spans for edge in (span.new_start, span.new_end)), len(edited.text)]
    width = 40
    around = [
        edited.text[max(0, edge - width) : edge] + "\0" + edited.text[edge : edge + width] for edge in edges[1:-1]
    ]
    gaps = [edited.text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return [*gaps, *(part.replace("\0", "") for part in around)]


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.text(alphabet="ab\né“😀\r", max_size=60),
    st.text(alphabet="aé\n", min_size=1, max_size=2),
    st.text(alphabet="xü\n", max_size=4),
    st.sampled_from(
        [UTF8, Encoding("utf-8", b"\xef\xbb\xbf"), Encoding("latin-1"), Encoding("utf-16-le", b"\xff\xfe")]
    ),
)
def test_stored_bytes_are_those_of_the_new_text(text: str, old: str, new: str, encoding: Encoding) -> None:
    try:
        data = encode(text, encoding)
        edited = replace(text, old, new, replace_all=True)
    except (EditError, UnencodableError):
        return
    assert stored(edited, data, encoding) == encode(edited.text, encoding)


def test_stored_bytes_of_a_long_text_are_those_of_the_new_text() -> None:
    text = "ein Wört und noch eins\n" * 10_000 + "needle\n" + "“x”\n" * 50_000 + "needle"
    edited = replace(text, "needle", "nädel", replace_all=True)

    assert stored(edited, text.encode(), UTF8) == edited.text.encode()


def test_a_character_that_the_encoding_lacks_is_told_with_its_line() -> None:
    edited = replace("é\né\nb\n", "b", "c\n→")

    with pytest.raises(UnencodableError, match="line 4"):
        stored(edited, "é\né\nb\n".encode("latin-1"), Encoding("latin-1"))


def test_what_comes_near_is_found_in_a_large_text_too() -> None:
    filler = "a line of the usual length, as it stands in many files\n" * 30_000
    text = f"{filler}def needle(a):\n    return a\n{filler}def needle(b):\n    return b\n"

    with pytest.raises(NotFoundError) as caught:
        replace(text, "def needle(bb):\n    return b\n", "never")

    first, *_ = caught.value.regions
    assert (first.first_line, first.last_line) == (60_003, 60_004)
    assert first.text == "def needle(b):\n    return b"
