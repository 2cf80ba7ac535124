"""Another store is one folder: a throw-away kind, chosen by `state.dsn`, that keeps everything in one pickled file.

It has no durability worth the name and stands on the in-memory store; it shows what a real one, such as PostgreSQL,
has to bring, and that nothing else in the house has to know of it.
"""

import inspect
import pickle
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import TypeVar

import pytest

from hermes import AIAgent
from hermes.config.load import bound_settings, load_settings
from hermes.errors import StoreUnavailable
from hermes.host.session_select import open_sessions
from hermes.runtime.setup.process import shared
from hermes.state import SessionDB, stores
from hermes.state.stores import Durability, has_sessions, open_store, place_of
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.output import Output
from hermes.testing.memory_store import MemoryState
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import says
from tests.state import test_session_db as contract
from tests.state.memory_queries import MemorySessionStore

Answer = TypeVar("Answer")


# -- what the folder would hold ------------------------------------------------------------------------------------


class PickleStore(MemorySessionStore):
    """The state of a `MemorySessionStore`, written to a file after every change."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.path = file
        if file.exists():
            self.state = pickle.loads(file.read_bytes())

    def write(self, work: Callable[[MemoryState], Answer]) -> Answer:
        answer = super().write(work)
        assert self.path is not None
        self.path.write_bytes(pickle.dumps(self.state))
        return answer


def open_pickle(place: Path | str, _durability: Durability) -> PickleStore:
    """What the folder's `open_store` is."""
    return PickleStore(Path(str(place).removeprefix("pickle://")))


# -- what proves it ------------------------------------------------------------------------------------------------


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setitem(stores.added, "pickle", open_pickle)  # a folder of hermes.state needs no such line
    return f"pickle://{tmp_path}/everything"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(f"state:\n  dsn: {address}\n", encoding="utf-8")
    monkeypatch.setenv("HERMES_HOME", str(home))
    return home


async def test_agents_and_surfaces_use_the_store_that_the_settings_name(home: Path, tmp_path: Path) -> None:
    agent = AIAgent(model=ScriptedModel(says("Hello.")), cwd=str(tmp_path))
    first = await agent.arun_conversation("Hi.")
    await agent.aclose()
    await shared.close()  # as at the end of a process
    model = ScriptedModel(says("Again."))
    agent = AIAgent(model=model, session_id=str(agent.session_id), cwd=str(tmp_path))
    await agent.arun_conversation("And again?")
    heard = [message.content for message in model.requests[0] if message.role != "system"]
    assert heard == ["Hi.", "Hello.", "And again?"]
    assert first["final_response"] == "Hello."
    with open_sessions(Cli(home=home, environ={}, out=Output(StringIO(), StringIO(), {}))) as db:
        assert db is not None
        said = [row["content"] for row in db.get_messages(str(agent.session_id))]
        assert said == ["Hi.", "Hello.", "And again?", "Again."]
        assert [row["preview"] for row in db.list_sessions_rich()] == ["Hi."]
        assert len(db.list_attempts(agent.session_id)) == 2
    assert not (home / "state.db").exists()
    await agent.aclose()
    await shared.close()


async def test_an_agent_that_ignores_the_settings_keeps_its_session_where_the_others_are(
    home: Path, tmp_path: Path
) -> None:
    with bound_settings(load_settings(home, ignore_file=True)):
        agent = AIAgent(model=ScriptedModel(says("Hello.")), cwd=str(tmp_path))
        await agent.arun_conversation("Hi.")
        await agent.aclose()
    await shared.close()
    assert not (home / "state.db").exists()
    with SessionDB(place_of(home)) as db:
        assert [row["preview"] for row in db.list_sessions_rich()] == ["Hi."]


def test_without_a_folder_of_its_kind_an_address_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("state:\n  dsn: postgresql://db/hermes\n", encoding="utf-8")
    assert place_of(tmp_path) == tmp_path / "state.db"
    assert not has_sessions(place_of(tmp_path))
    with pytest.raises(StoreUnavailable, match="no store for postgresql:// addresses; there are: sqlite"):
        open_store("postgresql://db/hermes")


# The whole suite of the named queries but for the tests that need something beside a store of their own.
CONTRACT = {
    name: test
    for name, test in vars(contract).items()
    if name.startswith("test_") and list(inspect.signature(test).parameters) == ["db"]
}


@pytest.fixture
def db(address: str) -> Iterator[SessionDB]:
    with SessionDB(address) as opened:
        yield opened


@pytest.mark.parametrize("name", sorted(CONTRACT))
def test_it_keeps_the_contract_of_sessions(db: SessionDB, name: str) -> None:
    CONTRACT[name](db)


def test_what_was_said_is_there_after_a_restart(address: str) -> None:
    with SessionDB(address) as db:
        contract.talk(db, "s", "one", "two", title="T")
        before = db.export_all()
    with SessionDB(address) as db:
        assert db.export_all() == before
        assert [row["session_id"] for row in db.search_messages("two")] == ["s"]
