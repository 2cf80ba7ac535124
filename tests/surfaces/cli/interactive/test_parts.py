"""The parts that need no terminal: blocks of Markdown, references, pastes, painting, the status line."""

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import UserError
from hermes.host.references import Surroundings, opened, pictures_in
from hermes.host.session_figures import SessionFigures
from hermes.runtime.setup.process import shared
from hermes.surfaces.cli.chat.events import printed
from hermes.surfaces.cli.interactive.answers import AnswerList
from hermes.surfaces.cli.interactive.clipboard import Pastes
from hermes.surfaces.cli.interactive.command_view import section_rows
from hermes.surfaces.cli.interactive.markdown_blocks import CODE_LINES, Block, Blocks, Code, Prose
from hermes.surfaces.cli.interactive.markup import Painter, folded
from hermes.surfaces.cli.interactive.question_view import question_rows
from hermes.surfaces.cli.interactive.recent_messages import _cut_off
from hermes.surfaces.cli.interactive.status import status_line
from hermes.surfaces.cli.output import Output, width_of
from hermes.tools.results.tool_result import fence
from hermes.types import Question

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
TEXT = st.text(alphabet="ab `\n~#-中", max_size=200)


def cut_up(text: str, size: int) -> list[Block]:
    blocks = Blocks()
    found = [block for place in range(0, len(text), size) for block in blocks.feed(text[place : place + size])]
    return [*found, *blocks.finish()]


@given(text=TEXT, size=st.integers(1, 9))
def test_blocks_do_not_depend_on_how_the_text_arrives(text: str, size: int) -> None:
    assert cut_up(text, size) == cut_up(text, max(1, len(text)))


@given(text=st.text(alphabet="ab \n#-中", max_size=200))
def test_no_word_is_lost_outside_of_fences(text: str) -> None:
    assert "".join("".join(block.text.split()) for block in cut_up(text, 7)) == "".join(text.split())


def test_code_is_cut_out_and_long_code_comes_in_pieces() -> None:
    code = [f"x{number}" for number in range(CODE_LINES + 2)]
    found = cut_up("Look:\n```py\n" + "\n".join(code) + "\n```\nDone.", 4)
    assert found == [
        Prose("Look:"),
        Code("\n".join(code[:CODE_LINES]), "py"),
        Code("\n".join(code[CODE_LINES:]), "py"),
        Prose("Done."),
    ]


@given(line=st.text(alphabet="ab 中文", max_size=120), width=st.integers(2, 40))
def test_folded_rows_fit_and_keep_every_word(line: str, width: int) -> None:
    rows = folded(line, width)
    assert all(width_of(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == line.replace(" ", "")


def test_a_long_diff_says_what_it_leaves_out() -> None:
    painter = Painter(Output(io.StringIO(), io.StringIO(), {}))
    drawn = painter.diff("".join(f"+line {number}\n" for number in range(100)))
    assert drawn.count("\n") == 61
    assert "… 40 more lines" in drawn


def test_pastes_of_the_same_length_are_kept_apart() -> None:
    pastes = Pastes()
    one, two = "a\n" * 9, "b\n" * 9
    marks = pastes.shortened(one), pastes.shortened(two)
    assert marks == ("[pasted 10 lines]", "[pasted 10 lines #2]")
    assert pastes.expanded(f"{marks[1]} {marks[0]} [pasted 3 lines]") == f"{two} {one} [pasted 3 lines]"
    assert pastes.shortened("short") == "short"


def around(folder: Path) -> Surroundings:
    def hide(text: str) -> str:
        return text.replace("hunter2", "[hidden]")

    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return Surroundings(cwd=str(folder), environ=environ, hide=hide, skill="the skill {}".format)


async def test_files_and_folders_are_put_below_the_message(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("first\nsecond\n")
    sent = await opened("see @file:a.txt and @folder:.", around(tmp_path))
    assert sent.startswith("see @file:a.txt and @folder:.\n\n<file path")
    assert "1|first\n2|second" in sent
    assert '<folder path=".">\na.txt\n' in sent


@pytest.mark.parametrize("name", ["gone.txt", "/dev/zero", "pipe"])
async def test_what_read_file_refuses_is_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="cannot be opened"):
        await opened(f"@file:{name}", around(tmp_path))


async def test_an_address_or_a_mail_is_no_reference(tmp_path: Path) -> None:
    text = "write to ada@file:x or me@diff.org, @difference and @stagedive"
    assert await opened(text, around(tmp_path)) == text


async def test_a_folder_without_git_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"@diff cannot be opened: .*git"):
        await opened("what is @diff", around(tmp_path))
    await shared.close()


async def test_pictures_named_in_a_message_go_with_it(tmp_path: Path) -> None:
    (tmp_path / "my dot.png").write_bytes(PNG)
    (tmp_path / "b.png").write_bytes(PNG)
    text = "compare 'my dot.png' with b.png and none.png"
    assert [path.name for path in pictures_in(text, str(tmp_path))] == ["my dot.png", "b.png"]
    sent = await opened(text, around(tmp_path))
    assert [part["type"] for part in sent] == ["text", "image_url", "image_url"]


def test_the_status_line_keeps_to_its_width() -> None:
    spent = SessionFigures(model="a-model", window=1000, read=12_345, written=9, in_context=250, cost_usd=None)
    assert status_line(spent, "/w", 80, show_cost=True) == "a-model · /w · context 25% · cost unknown"
    for width in range(10, 80):
        assert width_of(status_line(spent, "/work/中文", width, show_cost=True)) < width


def test_what_an_approval_would_do_is_shown_whole() -> None:
    why = "the command says that it could not write the file, which the border keeps as it is; a yes runs it outside"
    question = Question(
        id="1", kind="approval", text="outside", details={"tool": "terminal", "command": "make", "effects": [why]}
    )
    painter = Painter(Output(io.StringIO(), io.StringIO(), {}))

    rows = question_rows(question, painter).splitlines()

    assert max(map(len, rows)) < painter.width
    assert " ".join(row.strip(" •") for row in rows[2:]) == why


def test_every_answer_to_an_approval_is_whole_in_a_narrow_terminal() -> None:
    answers = AnswerList.of(("once", "task", "session", "always", "deny"), is_edit=False)
    rows = [row for _, row in answers.rows(39, 20)]
    assert max(map(len, rows)) <= 39
    assert all(row.startswith(("> ", "  ")) for row in rows)
    assert all(label in " ".join(" ".join(rows).split()) for label in answers.labels)
    low = answers.rows(39, 8)
    assert len(low) == 7, "where rows are few, each answer has one"
    assert max(width_of(row) for _, row in low) <= 39


@pytest.mark.parametrize("width", [20, 40, 44, 80])
def test_what_a_command_tells_of_a_name_keeps_to_the_width_with_its_indent(width: int) -> None:
    told = "Copy the last answer to the terminal's clipboard, or to that of the editor."
    rows = section_rows("/copy", told, width)
    assert max(map(width_of, rows)) <= width
    assert all(row.startswith("  ") for row in rows)
    assert " ".join(" ".join(rows).split()) == f"/copy {told}"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"result": "12 lamps"}', "12 lamps"),
        ('{"result": {"lamps": 12}}', '{"result": {"lamps": 12}}'),
        ('{"error": "no lamps"}', "no lamps"),
    ],
)
def test_a_result_from_outside_is_shown_without_the_marks_for_the_model(content: str, words: str) -> None:
    assert printed(str(fence(content, "mcp__a__b", "mcp"))) == words


def test_a_table_has_no_empty_rows_around_it_in_colours_either() -> None:
    out = Output(io.StringIO(), io.StringIO(), {})
    out.colours = True
    drawn = Painter(out).block(Prose("| a | b |\n|---|---|\n| 1 | 2 |"))
    assert [bool(line) for line in drawn.splitlines()] == [True] * 3


@pytest.mark.parametrize("is_call", [True, False])
def test_a_turn_cut_off_is_told_whole_in_a_narrow_terminal(is_call: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Painter, "width", 40)
    told = _cut_off(Painter(Output(io.StringIO(), io.StringIO(), {})), is_call=is_call)
    assert " ".join(told.split()).endswith("Say what should become of it, or: continue")
    assert max(map(len, told.splitlines())) <= 40
