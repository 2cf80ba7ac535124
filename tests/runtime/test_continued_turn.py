"""`acontinue_turn`: a turn that was cut off goes on from its last commit, and nothing is said anew."""

import json
from pathlib import Path

import pytest

from hermes import AIAgent
from hermes.errors import ProviderError
from hermes.ops import MessageAppended, SessionCreated
from hermes.state import SqliteStore
from hermes.testing import ScriptedModel, calls, says, thinks
from hermes.types import Message


async def test_a_turn_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    model = ScriptedModel(calls("todo", todos=[]), ProviderError("gone", reason="auth"))  # the call is never answered
    agent = AIAgent(model=model, store=store, session_id="s", enabled_toolsets=["todo"], max_iterations=9)
    await agent.arun_conversation("Count to three.")
    await agent.aclose()

    model = ScriptedModel(says("Three."))
    agent = AIAgent(model=model, store=store, session_id="s", enabled_toolsets=["todo"], max_iterations=9)
    result = await agent.acontinue_turn()
    await agent.aclose()

    assert [one["role"] for one in result["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert (result["final_response"], result["api_calls"], result["completed"]) == ("Three.", 2, True)
    assert [one.role for one in model.requests[0]] == ["user", "assistant", "tool"]
    await store.close()


async def test_a_turn_that_goes_on_has_used_the_calls_it_made_before(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    said = (
        Message(role="user", content="Go."),
        Message(role="assistant", content="A"),
        Message(role="user", content="x"),
    )
    await store.commit(SessionCreated(session_id="s"), *(MessageAppended("s", one) for one in said))
    answered = [Message(role="assistant", content="thinking", finish_reason="length")] * 2
    await store.commit(*(MessageAppended("s", one) for one in answered))
    model = ScriptedModel(says("In short: no."))
    agent = AIAgent(model=model, store=store, session_id="s", enabled_toolsets=["todo"], max_iterations=2)

    result = await agent.acontinue_turn()
    await agent.aclose()

    assert result["turn_exit_reason"] == "max_iterations_reached(2/2)"
    await store.close()


async def test_the_agent_saves_each_turn_as_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = ScriptedModel(thinks("Hm.") + says("Yes."), says(""), says(""), says(""), says(""))
    agent = AIAgent(model=model, enabled_toolsets=["todo"], save_trajectories=True)

    await agent.arun_conversation("Is it?")
    await agent.arun_conversation("Really?")
    await agent.aclose()

    (line,) = (tmp_path / "trajectory_samples.jsonl").read_text().splitlines()
    entry = json.loads(line)
    assert set(entry) == {"conversations", "timestamp", "model", "completed"}
    assert entry["conversations"][1:] == [
        {"from": "human", "value": "Is it?"},
        {"from": "gpt", "value": "<think>\nHm.\n</think>\nYes."},
    ]
    failed = json.loads((tmp_path / "failed_trajectories.jsonl").read_text())
    assert failed["completed"] is False
    assert [one["value"] for one in failed["conversations"] if one["from"] == "human"] == ["Is it?", "Really?"]
