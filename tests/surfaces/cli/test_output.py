"""Words on the screen: aligned also with wide characters, plain in a pipe, without colour where none is wanted."""

import io

import pytest

from hermes.surfaces.cli.output import Output, cut, padded, width_of


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def output(stdout: io.StringIO, **environ: str) -> Output:
    return Output(stdout, io.StringIO(), environ)


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("hello", 5, "hello"),
        ("hello!", 5, "hell…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
    ],
)
def test_text_is_cut_by_columns(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown
    assert width_of(padded(shown, width)) == width


def test_a_table_in_a_pipe_is_plain_and_whole() -> None:
    stdout = io.StringIO()
    output(stdout).table(["A", "TITLE"], [["1", "x" * 300], ["日本", "line\nbreak"]], flexible=1)
    assert stdout.getvalue() == f"A     TITLE\n1     {'x' * 300}\n日本  line break\n"


def test_a_table_in_a_terminal_fits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    stdout = Screen()
    output(stdout, NO_COLOR="1").table(["A", "TITLE"], [["1", "x" * 300]], flexible=1)
    assert [width_of(line) for line in stdout.getvalue().splitlines()] == [8, 30]


@pytest.mark.parametrize(
    ("environ", "colours"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
def test_colours_are_shown_only_where_they_are_wanted(environ: dict[str, str], colours: bool) -> None:
    assert (output(Screen(), **environ).style("x", "red") != "x") == colours
    assert output(io.StringIO(), **environ).style("x", "red") == "x"


def test_a_table_that_does_not_fit_is_stacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    screen, pipe = Screen(), io.StringIO()
    for out in (output(screen, NO_COLOR="1"), output(pipe)):
        out.table(["NAME", "MODEL", "FOR", "COST"], [["custom", "a-long-model", "模型的标题", "unknown"]])
    assert screen.getvalue() == "custom\n  model: a-long-model\n  for: 模型的标题\n  cost: unknown\n"
    assert pipe.getvalue().splitlines()[1].split() == ["custom", "a-long-model", "模型的标题", "unknown"]
