"""A history that is kept between turns is the stored one, whoever has written to the session meanwhile."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.ops import MessageAppended, SessionChanged, SessionRecord
from hermes.state import SqliteStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import says
from hermes.types import Message


class Counting(SqliteStore):
    """The real store, with a count of what was read."""

    loads = 0

    async def load(self, session_id: str, after: int = 0) -> SessionRecord | None:
        self.loads += 1
        return await super().load(session_id, after)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Counting]:
    made = Counting(tmp_path / "state.db")
    yield made
    made.close_sync()


def _agent(store: SqliteStore, **keywords: Any) -> AIAgent:
    return AIAgent(model=ScriptedModel(*(says(f"answer {n}") for n in range(9))), store=store, cwd="/tmp", **keywords)


def _stored(store: SqliteStore, session_id: str) -> list[object]:
    record = store.load_sync(session_id)
    assert record is not None
    return [message.content for message in record.messages]


async def test_a_session_that_nobody_else_wrote_to_is_not_read_again(store: Counting) -> None:
    agent = _agent(store)
    for text in ("one", "two"):
        await agent.arun_conversation(text)
    reads = []
    for number in range(6):
        before = store.loads
        result = await agent.arun_conversation(f"again {number}")
        reads.append(store.loads - before)
    assert 0 in reads  # not each time: the store may be busy with its index just then
    assert [message["content"] for message in result["messages"]] == _stored(store, agent.session_id)
    await agent.aclose()


@pytest.mark.parametrize("route", ["another process", "another agent", "the same store"])
async def test_what_others_say_between_two_turns_is_heard(store: Counting, route: str) -> None:
    agent = _agent(store)
    for text in ("one", "two"):
        await agent.arun_conversation(text)
    if route == "another agent":
        other = _agent(store, session_id=agent.session_id)
        await other.arun_conversation("by the way")
        await other.aclose()
    else:
        there = SqliteStore(store.path) if route == "another process" else store
        there.commit_sync(MessageAppended(agent.session_id, Message(role="user", content="by the way")))
        if there is not store:
            there.close_sync()
    result = await agent.arun_conversation("three")
    said = [message["content"] for message in result["messages"]]
    assert "by the way" in said
    assert said == _stored(store, agent.session_id)
    await agent.aclose()


async def test_a_prompt_that_was_changed_meanwhile_is_the_one_that_is_sent(store: Counting) -> None:
    model = ScriptedModel(says("a"), says("b"), says("c"))
    agent = AIAgent(model=model, store=store, cwd="/tmp")
    for text in ("one", "two"):
        await agent.arun_conversation(text)
    store.commit_sync(SessionChanged(agent.session_id, {"system_prompt": "Be brief."}))
    await agent.arun_conversation("three")
    assert model.full_requests[-1].system == "Be brief."
    await agent.aclose()


async def test_a_history_that_the_caller_brings_is_stored_once_also_after_turns_without_one(store: Counting) -> None:
    agent = _agent(store)
    first = await agent.arun_conversation("one")
    await agent.arun_conversation("two", conversation_history=first["messages"])
    assert _stored(store, agent.session_id) == ["one", "answer 0", "two", "answer 1"]
    await agent.aclose()
