"""One working directory per session: what the model is told, what `pwd` says and what files are read from agree."""

import json
from pathlib import Path
from typing import Any

from hermes import AIAgent
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.types import text_of


async def turn(model: ScriptedModel, store: MemoryStore, **keywords: Any) -> list[dict[str, Any]]:
    """The results of the tool calls of one turn, as the model read them."""
    agent = AIAgent(model=model, store=store, session_id="s", **keywords)
    await agent.arun_conversation("Go")
    await agent.aclose()
    return [json.loads(text_of(m.content)) for m in model.requests[-1] if m.role == "tool"]


async def test_a_session_stands_where_its_last_command_left_it(tmp_path: Path, monkeypatch: Any) -> None:
    inner = tmp_path / "project" / "inner"
    inner.mkdir(parents=True)
    (inner / "note.txt").write_text("here\n")
    store = MemoryStore()
    first = ScriptedModel(calls("terminal", command="cd inner"), says("moved"))
    moved = await turn(first, store, cwd=str(tmp_path / "project"))
    assert moved[0]["exit_code"] == 0, moved

    monkeypatch.chdir(tmp_path)  # resumed from elsewhere
    again = ScriptedModel(calls("terminal", command="pwd"), calls("read_file", path="note.txt"), says("ok"))
    results = await turn(again, store)
    assert results[-2]["output"] == str(inner)
    assert "here" in results[-1]["content"]
    assert store.columns("s")["cwd"] == str(inner)


async def test_a_folder_given_by_the_caller_wins(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    store = MemoryStore()
    await turn(ScriptedModel(says("ok")), store, cwd=str(tmp_path / "one"))
    model = ScriptedModel(calls("terminal", command="pwd"), says("ok"))
    assert (await turn(model, store, cwd=str(tmp_path / "two")))[0]["output"] == str(tmp_path / "two")
