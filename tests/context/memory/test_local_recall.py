"""Recall on this machine, with the real weights and a real store."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.memory import filled, scores
from bench.recall_set import RecallSet, recall_set
from hermes.context.memory.entries import Operation
from hermes.context.memory.local.local_provider import LocalProvider
from hermes.context.memory.local.sentence_model import missing_parts
from hermes.context.memory.memory_files import MemoryFiles
from hermes.context.memory.memory_history import MemoryWriter
from hermes.context.memory.provider import ProviderHome
from hermes.state import SessionDB

FULL = bool(os.environ.get("HERMES_TEST_FULL"))
pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def root() -> Path:
    """A home that has the weights; ./check names it."""
    named = os.environ.get("HERMES_TEST_BOX", "")
    homes = [Path(named)] if named else []
    homes += [Path(user) / ".hermes" for name in ("HERMES_CHECK_USER_HOME", "HOME") if (user := os.environ.get(name))]
    for home in homes:
        if not missing_parts(home):
            return home
    pytest.skip("the weights for recall are not installed: ./hermes --install-extra memory")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as opened:
        yield opened


def provider_of(root: Path, home: Path, db: SessionDB) -> LocalProvider:
    made = LocalProvider(ProviderHome(home, root, {"recall_lines": 5}, db.store))
    made.rests = False
    return made


def index(provider: LocalProvider) -> None:
    while provider.index_some():
        pass


def said(db: SessionDB, session: str, at: float, *texts: str) -> None:
    db.create_session(session, source="cli")
    for place, text in enumerate(texts):
        db.append_message(session, role="user", content=text, timestamp=at + place)
        db.append_message(session, role="assistant", content="Understood.", timestamp=at + place)


DAY = 86_400.0
SMALL = ("Please rename the helper.", "The linter is unhappy again.", "Thanks, that is all for today.")


def test_lines_have_their_day_and_the_newer_comes_first(root: Path, tmp_path: Path, db: SessionDB) -> None:
    said(db, "a", 100 * DAY, "We ship Heron every Tuesday.", *SMALL)
    said(db, "b", 200 * DAY, "From now on customers receive Heron on Fridays instead.", *SMALL)
    provider = provider_of(root, tmp_path, db)
    index(provider)

    lines = provider.prefetch("On which weekday does a new version of Heron go out?", session_id="c").splitlines()
    assert lines[0] == "- 1970-07-20: From now on customers receive Heron on Fridays instead."
    assert "- 1970-04-11: We ship Heron every Tuesday." in lines


def test_what_the_memory_replaced_is_never_shown(root: Path, tmp_path: Path, db: SessionDB) -> None:
    said(db, "a", 100 * DAY, "We ship Heron every Tuesday.", *SMALL)
    files = MemoryFiles(tmp_path)
    agent = MemoryWriter(by="agent", at=100 * DAY)
    files.write("memory", [Operation(action="add", content="Heron is shipped every Tuesday")], agent)
    later = MemoryWriter(by="agent", at=200 * DAY)
    change = Operation(action="replace", old_text="Tuesday", content="Heron is shipped every Friday")
    files.write("memory", [change], later)
    provider = provider_of(root, tmp_path, db)
    index(provider)

    assert "Tuesday" not in provider.prefetch("When do we ship Heron?", session_id="c")


def test_what_was_deleted_is_not_recalled_nor_the_own_session(root: Path, tmp_path: Path, db: SessionDB) -> None:
    said(db, "a", 100 * DAY, "Our staging server is called otter.", *SMALL)
    said(db, "b", 101 * DAY, "The staging server of Marlin is lynx.", *SMALL)
    provider = provider_of(root, tmp_path, db)
    index(provider)
    question = "What is the name of the staging server?"

    assert "otter" in provider.prefetch(question, session_id="c")
    assert "otter" not in provider.prefetch(question, session_id="a")
    db.delete_session("a")
    assert "otter" not in provider.prefetch(question, session_id="c")


def test_an_index_cut_off_by_a_kill_goes_on_where_it_is_whole(root: Path, tmp_path: Path, db: SessionDB) -> None:
    said(db, "a", 100 * DAY, "Ines lives in Lisbon.", *SMALL)
    provider = provider_of(root, tmp_path, db)
    index(provider)
    with (provider.index.folder / "sentences.f32").open("ab") as out:
        out.write(b"torn")
    (provider.index.folder / "watermark").unlink()
    said(db, "b", 101 * DAY, "Tobias lives in Ghent.", *SMALL)
    again = provider_of(root, tmp_path, db)
    index(again)

    assert again.index.count == 2 * (1 + len(SMALL))
    assert "Ghent" in again.prefetch("Where is Tobias based?", session_id="c")


def test_recall_holds_its_figures(root: Path, tmp_path: Path, db: SessionDB) -> None:
    whole = recall_set()
    told = whole if FULL else _tenth(whole)
    ids = filled(db, told)
    provider = provider_of(root, tmp_path, db)
    index(provider)

    first, old = scores(told, ids, lambda fact: [one.turn.message_id for one in provider.recall(fact.question)])
    assert first >= 0.80
    assert old <= 0.20


def _tenth(whole: RecallSet) -> RecallSet:
    """The facts of every eighth place, with all turns of the subjects that they are about left as they are."""
    facts = whole.facts[::8]
    wanted = sorted({turn for fact in facts for turn in (fact.turn, fact.old_turn) if turn >= 0})
    turns = [*wanted, *range(0, len(whole.turns), 8)]
    kept = sorted(set(turns))
    place = {turn: number for number, turn in enumerate(kept)}
    for fact in facts:
        fact.turn, fact.old_turn = place[fact.turn], place.get(fact.old_turn, -1)
    return RecallSet([whole.turns[turn] for turn in kept], facts)
