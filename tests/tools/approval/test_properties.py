"""Whatever text comes in: no exception, bounded work, and hiding a command never makes it safer."""

import os
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.tools.approval import Severity, analyse, detect_dangerous_command
from hermes.tools.approval.command_text import clean

_EXAMPLES = 2000 if os.environ.get("HERMES_TEST_FULL") else 200
_PARTS = st.sampled_from(
    [
        "rm",
        " ",
        "-rf",
        "/",
        "$(",
        ")",
        "`",
        "'",
        '"',
        "\\",
        "\n",
        ";",
        "|",
        "&",
        "&&",
        "||",
        "{",
        "}",
        "(",
        "<<E",
        "<<<",
        ">",
        "<(",
        "$x",
        "${x",
        "x=",
        "if",
        "then",
        "fi",
        "for",
        "do",
        "done",
        "case",
        "esac",
        "in",
        "*",
        "[",
        "]]",
        "$((",
        "))",
        "\0",
        "é",
        "\u200b",
        "eval",
        "bash -c",
        "python -c",
        "xargs",
        "find",
        "-exec",
        "sudo",
        "echo",
        "#",
        "$'",
        "~",
        "!",
        "=",
        "+=",
        "[[",
        "function f",
        "f()",
        "\ud800",
        "\ue0ff1\ue0ff",
        "base64 -d",
        "printf",
        "%s",
        "psql -c",
        "awk",
        "sed -i",
    ]
)


@settings(max_examples=_EXAMPLES, deadline=None)
@given(st.text(max_size=300))
def test_any_text_gets_an_answer(text: str) -> None:
    assert detect_dangerous_command(text)[0] in (True, False)


@settings(max_examples=_EXAMPLES, deadline=None)
@given(st.lists(_PARTS, max_size=60).map("".join))
def test_any_heap_of_shell_tokens_gets_an_answer(text: str) -> None:
    assert analyse(text).severity in tuple(Severity)


@settings(max_examples=_EXAMPLES, deadline=None)
@given(st.lists(_PARTS, max_size=20).map("".join))
def test_a_line_before_never_hides_a_command(text: str) -> None:
    analysis = analyse(f"{text}\nrm -rf /")
    assert analysis.severity > Severity.NOTE or "rm -rf /" in text or _swallows(text)


def _swallows(text: str) -> bool:
    """Text that keeps the next line from being a command: an open quote or here-document is a parse error elsewhere."""
    return any(mark in text for mark in ("'", '"', "<<", "#", "`", "$(", "\\", "$'", "[", "(", "case", "=", "<", "{"))


@settings(max_examples=_EXAMPLES, deadline=None)
@given(st.integers(0, 8), st.sampled_from(["\0", "\u200b", "\u2060", "\ufeff", "\u00ad"]))
def test_invisible_characters_do_not_hide_a_command(position: int, mark: str) -> None:
    command = "rm -rf /"
    assert analyse(command[:position] + mark + command[position:]).severity is Severity.HARDLINE


@pytest.mark.parametrize("mark", ["\u200b", "\u2060", "\ufeff", "\u00ad", "\x1b[0m", "\x1b]0;x\x07", "\x1b]"])
@pytest.mark.parametrize("text", ["echo a {}#; rm -rf ~/x", "echo a \\{}\nrm -rf ~/x", "echo a # {}\nrm -rf ~/x"])
def test_what_nobody_sees_hides_no_command_behind_it(text: str, mark: str) -> None:
    assert analyse(text.format(mark)).severity > Severity.NOTE


@pytest.mark.parametrize(
    "text",
    [
        "mapfile -t a <<'E'\n" + "x\n" * 64 + "rm -rf ~/x\nE\n${a[64]}",
        "a=(" + "x " * 64 + "rm); ${a[64]} -rf ~/x",
        "{ " + f"echo '{'#' * 9000}'; " * 2 + "echo 'rm -rf ~/x'; } | bash",
        "printf '%s\\n' " + "ls " * 70 + "'rm -rf ~/x' | bash",
        "printf 'ls\\nrm -rf ~/x\\n' | xargs -I{} bash -c {}",
        "printf '%s\\0' ls 'rm -rf ~/x' | xargs -0 -n1 bash -c",
        "parallel {} ::: " + " ".join(f"true{number}" for number in range(13)) + " 'rm -rf ~/x'",
        "".join(f"bash ./{number}.sh; " for number in range(51)),
        "true; " * 501 + "git status",
        'python3 -c \'import os; os.system("""' + "#" * 20_000 + '\nrm -rf ~/x""")\'',
        "find " + "a " * 5 + "~ -exec rm {} +",
    ],
)
def test_what_lies_beyond_what_is_looked_at_is_asked_about(text: str) -> None:
    assert analyse(text).severity > Severity.NOTE


def test_a_flood_of_effects_washes_away_no_hardline() -> None:
    flood = "".join(f"rm -rf ~/d{number}; " for number in range(250))
    assert analyse(f"{flood} rm -rf /; {flood}").severity is Severity.HARDLINE


@pytest.mark.parametrize("noise", ["x", "\0", "\ud800", "é", "$(", "'", "\n", "|", "a;"])
def test_a_megabyte_of_garbage_is_unknown_and_not_parsed(noise: str) -> None:
    text = (noise * 1_000_000)[:1_000_000]
    analysis = analyse(text)
    assert analysis.unknown or len(clean(text)) <= 64 * 1024


@pytest.mark.parametrize(
    "unit",
    [
        "$(",
        "a|",
        "a;",
        "\n",
        " ",
        "'",
        '"',
        "`",
        "({",
        "<<A ",
        "if a; then ",
        "x=$x$x;",
        "{a,b}",
        ")",
        "a[;",
        "bash -c '",
    ],
)
def test_work_is_bounded_by_length(unit: str) -> None:
    text = (unit * 20_000)[:20_000]
    analysis = analyse(text)
    assert len(analysis.commands) <= 500
    assert len(analysis.effects) <= 200


def test_a_secret_growth_of_variables_is_cut() -> None:
    doubling = "x=aaaaaaaa;" + "x=$x$x;" * 60 + "echo $x"
    assert max((len(word) for command in analyse(doubling).commands for word in command.argv), default=0) <= 20_000


@pytest.mark.parametrize(
    "unit", ["\n", "a\n", "ls -la\n", " ", "a;", "'a' ", "$(a) ", "$(", "cat <<A\nx\nA\n", "x=1\n", "a \\\n"]
)
def test_twice_the_text_is_at_most_twice_the_work(unit: str) -> None:
    def calls(size: int) -> int:
        count = 0

        def counted(_frame: object, event: str, _arg: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        text = (unit * size)[:size]
        before = sys.getprofile()
        sys.setprofile(counted)
        try:
            analyse(text)
        finally:
            sys.setprofile(before)
        return count

    calls(4_000)  # what is made once is not counted
    assert calls(16_000) <= 2.1 * calls(8_000) + 500
