"""The fast ways to find a text find what going through everything finds."""

import os
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.tools.files.text_match import SHAPES, WantedText, indents_of
from hermes.tools.files.tokens import Shape, lines_of, pattern_of

EXAMPLES = 5000 if os.environ.get("HERMES_TEST_FULL") else 500
LINE = st.text(alphabet='ab \t"\u201c\\n', max_size=5)
TEXT = st.lists(st.tuples(LINE, st.sampled_from(["\n", "\r\n", "\n"])), max_size=10).map(
    lambda lines: "".join(line + end for line, end in lines)
)
SHAPE = st.sampled_from([shape for shapes in SHAPES.values() for shape in shapes])


@settings(max_examples=EXAMPLES, deadline=None)
@given(TEXT, TEXT, st.data(), SHAPE)
def test_search_finds_what_a_full_scan_finds(text: str, other: str, data: st.DataObject, shape: Shape) -> None:
    start = data.draw(st.integers(0, len(text)))
    wanted = WantedText(data.draw(st.sampled_from([text[start : data.draw(st.integers(start, len(text)))], other])))
    if wanted.is_blank:
        return
    found = wanted.matches(text, shape)

    pattern = re.compile(pattern_of(wanted.lines, shape))
    scanned = [match.span() for match in pattern.finditer(text)]
    spans = [(match.start, match.end) for match in found]
    if shape.indent:
        assert set(spans) <= set(scanned)
        assert all(indents_of(wanted.lines, match) is not None for match in found)
    else:
        assert spans == scanned


@settings(max_examples=EXAMPLES, deadline=None)
@given(TEXT)
def test_tokens_make_up_the_text(text: str) -> None:
    assert "".join(token.text for line in lines_of(text) for token in line) == text
