"""The two files: what operations do, what is refused, what the history says, and what a person's editor may do."""

from pathlib import Path

import pytest

from hermes.context.memory.entries import EntryRefusal, Operation, block, parsed, size_of
from hermes.context.memory.memory_files import MemoryFiles
from hermes.context.memory.memory_history import MemoryWriter

AGENT = MemoryWriter(by="agent", at=1000.0, session_id="s1")
PERSON = MemoryWriter(by="person", at=2000.0)


@pytest.fixture
def files(tmp_path: Path) -> MemoryFiles:
    return MemoryFiles(tmp_path)


def add(content: str) -> Operation:
    return Operation(action="add", content=content)


def test_entries_are_joined_by_a_line_of_their_own_and_read_back(files: MemoryFiles) -> None:
    files.write("memory", [add("  first fact "), add("second\nline")], AGENT)

    assert files.path("memory").read_text() == "first fact\n§\nsecond\nline"
    assert parsed("a\n§\nb § c\n§\na") == ["a", "b § c"]
    assert files.usage("memory") == "1% — 24/2,200 chars"


def test_the_block_of_the_prompt_has_its_form() -> None:
    told = block("memory", ["first fact", "second\nline"], 2200)
    bar = "═" * 46
    assert told == (f"{bar}\nMEMORY (your personal notes) [1% — 24/2,200 chars]\n{bar}\nfirst fact\n§\nsecond\nline")
    assert block("user", [], 1375) == ""


def test_replace_and_remove_find_an_entry_by_a_part_of_it(files: MemoryFiles) -> None:
    files.write("memory", [add("likes green tea"), add("lives in Lisbon"), add("green door")], AGENT)
    files.write("memory", [Operation(action="replace", old_text="Lisbon", content="lives in Ghent")], AGENT)
    files.write("memory", [Operation(action="remove", old_text="door")], AGENT)

    assert files.entries("memory") == ["likes green tea", "lives in Ghent"]


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (add("  "), "nothing to add"),
        (Operation(action="replace", content="x"), "old_text"),
        (Operation(action="remove"), "old_text"),
        (Operation(action="replace", old_text="tea"), "replace needs `content`"),
        (Operation(action="remove", old_text="wine"), "'wine'"),
        (Operation(action="remove", old_text="e"), "3 entries have 'e'"),
        (add("x" * 2200), "limit is 2,200"),
    ],
)
def test_what_cannot_be_done_says_why_and_changes_nothing(files: MemoryFiles, operation: Operation, why: str) -> None:
    files.write("memory", [add("likes tea"), add("hates noise")], AGENT)
    before = files.path("memory").read_bytes()

    with pytest.raises(EntryRefusal) as refused:
        files.write("memory", [add("one more"), operation], AGENT)

    assert why in refused.value.text
    assert files.path("memory").read_bytes() == before


def test_a_batch_is_measured_at_its_end(files: MemoryFiles) -> None:
    files.write("memory", [add("x" * 2000)], AGENT)
    files.write("memory", [add("y" * 1000), Operation(action="remove", old_text="xxx")], AGENT)

    assert files.entries("memory") == ["y" * 1000]


def test_a_full_file_tells_what_is_oldest_and_least_used(files: MemoryFiles) -> None:
    for at, entry in ((10.0, "prefers tabs over spaces"), (20.0, "deploys happen on Tuesday"), (30.0, "z" * 2100)):
        files.write("memory", [add(entry)], MemoryWriter(by="agent", at=at))
    files.use.note(files.entries("memory"), "Please use tabs, since I prefer them over spaces.")

    with pytest.raises(EntryRefusal) as refused:
        files.write("memory", [add("w" * 200)], AGENT)

    facts = refused.value.facts
    assert facts["oldest"] == ["prefers tabs over spaces", "deploys happen on Tuesday", "z" * 2100]
    assert facts["least_used"] == ["deploys happen on Tuesday", "z" * 2100, "prefers tabs over spaces"]
    assert facts["usage"] == "2,155/2,200"
    assert facts["current_entries"] == files.entries("memory")


def test_the_history_says_when_where_by_whom_and_what_was_replaced(files: MemoryFiles) -> None:
    files.write("memory", [add("deploys on Tuesday")], AGENT)
    files.write("memory", [Operation(action="replace", old_text="Tuesday", content="deploys on Friday")], AGENT)

    told = [(one.number, one.at, one.by, one.session_id, one.action, one.new, one.old) for one in files.history.read()]
    assert told == [
        (1, 1000.0, "agent", "s1", "add", "deploys on Tuesday", ""),
        (2, 1000.0, "agent", "s1", "replace", "deploys on Friday", "deploys on Tuesday"),
    ]


def test_what_a_person_edits_is_taken_as_it_is_and_becomes_history(files: MemoryFiles) -> None:
    files.write("memory", [add("deploys on Tuesday"), add("likes tea")], AGENT)
    files.path("memory").write_text("\ndeploys on Wednesday\n§\nwritten by hand\n\n")
    files.write("memory", [add("one more")], AGENT)

    assert files.entries("memory") == ["deploys on Wednesday", "written by hand", "one more"]
    by_hand = [(one.action, one.new, one.old) for one in files.history.read() if one.by == "person"]
    assert by_hand == [
        ("replace", "deploys on Wednesday", "deploys on Tuesday"),
        ("add", "written by hand", ""),
        ("remove", "", "likes tea"),
    ]


def test_an_odd_file_is_never_rewritten_but_can_be_added_to(files: MemoryFiles) -> None:
    files.folder.mkdir()
    files.path("memory").write_text("one\n § \ntwo\n§\nthree")

    with pytest.raises(EntryRefusal) as refused:
        files.write("memory", [Operation(action="remove", old_text="three")], AGENT)
    assert Path(str(refused.value.facts["drift_backup"])).read_text() == "one\n § \ntwo\n§\nthree"
    assert "remediation" in refused.value.facts

    files.write("memory", [add("four")], AGENT)
    assert files.path("memory").read_text() == "one\n § \ntwo\n§\nthree\n§\nfour"


def test_undo_takes_changes_back_one_by_one_and_by_number(files: MemoryFiles) -> None:
    files.write("memory", [add("tea")], AGENT)
    files.write("memory", [Operation(action="replace", old_text="tea", content="coffee")], AGENT)
    files.write("user", [add("is called Ada")], AGENT)

    assert files.undo(None, PERSON).new == "is called Ada"
    assert files.entries("user") == []
    assert files.undo(2, PERSON).old == "tea"
    assert files.entries("memory") == ["tea"]
    assert files.undo(None, PERSON).number == 1
    assert files.entries("memory") == []
    with pytest.raises(EntryRefusal, match="nothing to undo"):
        files.undo(None, PERSON)


def test_a_write_cut_off_before_its_rename_is_finished_by_the_next(files: MemoryFiles) -> None:
    files.write("memory", [add("one")], AGENT)
    path, fresh = files.path("memory"), files.folder / "MEMORY.md.new"
    before = path.read_bytes()
    files.write("memory", [add("two")], AGENT)
    path.replace(fresh)
    path.write_bytes(before)  # as a kill between the history and the rename leaves it

    files.write("memory", [add("three")], AGENT)

    assert files.entries("memory") == ["one", "two", "three"]
    assert [one.by for one in files.history.read()] == ["agent"] * 3


def test_a_write_cut_off_before_the_history_leaves_nothing(files: MemoryFiles) -> None:
    files.write("memory", [add("one")], AGENT)
    (files.folder / "MEMORY.md.new").write_text("one\n§\nhal")
    with files.history.file.open("ab") as history:
        history.write(b'{"number": 2, "at": 1.0, "tar')

    files.write("memory", [add("three")], AGENT)

    assert files.entries("memory") == ["one", "three"]
    assert [one.number for one in files.history.read()] == [1, 2]


def test_an_entry_that_is_there_is_added_once(files: MemoryFiles) -> None:
    files.write("memory", [add("tea")], AGENT)
    assert files.write("memory", [add("tea")], AGENT).changes == []
    assert size_of(files.entries("memory")) == 3
