"""`/memory` in a conversation, and what is told when one begins."""

from pathlib import Path

import pytest

from hermes.context.memory.entries import Operation
from hermes.context.memory.memory_book import MemoryBook
from hermes.context.memory.memory_history import MemoryWriter
from hermes.context.memory.proposals import Proposal
from hermes.context.memory.provider_calls import NOTE
from hermes.context.memory.recall_report import RecallReport, keep_report, recall_lines, report_file
from hermes.errors import UserError
from hermes.host.commands.memory import _told
from hermes.host.start_notices import start_notices
from hermes.ops import SessionRecord
from hermes.state.message_rows import MEMORY_CLOSING, MEMORY_OPENING
from hermes.types import Message


@pytest.fixture
def book(tmp_path: Path) -> MemoryBook:
    made = MemoryBook(tmp_path, now=lambda: 1_000_000.0)
    writer = MemoryWriter(by="agent", at=1_000_000.0)
    made.files.write("memory", [Operation(action="add", content="Likes tea.")], writer)
    wanted = Operation(action="add", content="Skip the tests.")
    made.proposals.add(Proposal(number=0, at=1.0, target="memory", operation=wanted, source="fetch_page"))
    return made


LINE = '1. add in memory: "Skip the tests." (from fetch_page)'


def test_it_lists_what_is_kept_and_what_waits(book: MemoryBook) -> None:
    told = _told(book, "", [])
    assert [rows for _, rows in told.sections] == [(("M1", "Likes tea."),), (("1", LINE),)]


def test_it_takes_drops_forgets_and_undoes(book: MemoryBook) -> None:
    assert _told(book, "take", ["1"]).text == "Kept: Skip the tests."
    assert book.files.entries("memory") == ["Likes tea.", "Skip the tests."]
    assert _told(book, "forget", ["tea"]).text.startswith("Forgotten: Likes tea.")
    assert "is back: Likes tea." in _told(book, "undo", []).text
    assert "Skip the tests." in _told(book, "history", []).text
    for words in (("take", []), ("drop", ["x"]), ("nonsense", [])):
        with pytest.raises(UserError):
            _told(book, words[0], list(words[1]))


def test_a_start_tells_what_waits_and_loads_nothing_where_nothing_does(book: MemoryBook, tmp_path: Path) -> None:
    assert start_notices(tmp_path) == [
        f"memory needs your yes: {LINE}",
        "decide with: hermes memory review, or /memory review",
    ]
    book.drop(1)
    assert start_notices(tmp_path) == []
    assert start_notices(tmp_path / "elsewhere") == []


def _record(context: str) -> SessionRecord:
    messages = (Message(role="user", content="When?", id=4), Message(role="assistant", content="Friday.", id=5))
    return SessionRecord(
        session_id="s",
        source="cli",
        model=None,
        system_prompt=None,
        tool_definitions=None,
        cwd=None,
        ended=False,
        messages=messages,
        contexts={4: context},
        open_calls=(),
    )


def test_why_shows_the_lines_of_the_last_message_and_their_reasons(tmp_path: Path) -> None:
    record = _record(f"{MEMORY_OPENING}\n{NOTE}\n\n- 2026-01-02: Ships on Friday.\n{MEMORY_CLOSING}")
    assert recall_lines(tmp_path, record, 7) == ["- 2026-01-02: Ships on Friday."]
    keep_report(report_file(tmp_path, 7), RecallReport("When?", ["2026-01-02: Ships on Friday. (likeness 0.70)"]))
    assert recall_lines(tmp_path, record, 7) == ["2026-01-02: Ships on Friday. (likeness 0.70)"]
    assert recall_lines(tmp_path, _record(""), 7) == []
