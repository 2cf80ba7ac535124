"""Syntax checks that blame a write only for what it broke."""

import pytest

from hermes.tools.files.lint_report import check, new_problem


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.py", "x = 1\ndef f(:\n", 2),
        ("a.json", '{\n "a": 1,\n}', 3),
        ("a.yaml", "a: 1\nb: [1, 2\nc: 3\n", 3),
        ("a.toml", "a = 1\nb = \n", 2),
    ],
)
def test_first_error_is_found_with_its_line(path: str, text: str, line: int) -> None:
    problem = check(path, text)

    assert problem is not None
    assert problem.line == line


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "x = '\\d'\nmatch x:\n    case _:\n        pass\n"),
        ("a.json", "[1, 2]"),
        ("a.yaml", "a: !custom {b: 1}\n---\nc: 2\n"),
        ("a.toml", "a = 1979-05-27\n"),
        ("tsconfig.json", "// comments are usual here\n{}"),
        ("a.txt", "def f(:"),
        ("a.py", "(" * 5000 + ")" * 5000),
    ],
)
def test_text_that_is_right_or_cannot_be_judged_has_no_problem(path: str, text: str) -> None:
    problem = check(path, text)

    assert problem is None or "too many nested" in problem.message


def test_error_that_was_there_before_is_not_reported() -> None:
    before = "def f(:\n    pass\n"

    assert new_problem("a.py", before, "import os\n" + before) is None
    assert new_problem("a.py", before, "x = (\n") is not None
    assert new_problem("a.py", None, before) is not None
    assert new_problem("a.py", before, "x = 1\n") is None
