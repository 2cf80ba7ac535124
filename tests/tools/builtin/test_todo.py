"""todo: replace, merge, read, and come back from a history."""

import json
from pathlib import Path
from typing import Any

from hermes import AIAgent
from hermes.runtime.parts.todo import restored_tasks
from hermes.testing.fakes import MemorySink
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.tools.builtin.todo import open_items
from hermes.tools.registry import registry
from hermes.types import Message, TasksChanged, ToolCall, text_of
from tests.runtime.rooms import Room, room


async def call(it: Room, **args: Any) -> dict[str, Any]:
    value = json.loads(text_of((await it.one("todo", json.dumps(args))).content))
    assert isinstance(value, dict)
    return value


def _tool() -> Any:
    found = registry.get("todo")
    assert found is not None
    return found


async def test_write_merge_and_read(tmp_path: Path) -> None:
    async with room(tmp_path, _tool()) as it:
        first = await call(
            it, todos=[{"id": "1", "content": "plan", "status": "in_progress"}, {"id": "2", "content": "do"}]
        )
        assert first["summary"] == {"total": 2, "pending": 1, "in_progress": 1, "completed": 0, "cancelled": 0}
        merged = await call(it, merge=True, todos=[{"id": "1", "status": "completed"}, {"id": "3", "content": "rest"}])
        assert merged["todos"] == [
            {"id": "1", "content": "plan", "status": "completed"},
            {"id": "2", "content": "do", "status": "pending"},
            {"id": "3", "content": "rest", "status": "pending"},
        ]
        assert await call(it) == merged
        replaced = await call(it, todos=[{"id": "9", "content": "a"}, {"id": "9", "content": "b"}, {"id": ""}])
        assert replaced["todos"] == [
            {"id": "9", "content": "b", "status": "pending"},
            {"id": "?", "content": "(no description)", "status": "pending"},
        ]
        assert (await call(it, todos=[]))["summary"]["total"] == 0


async def test_a_bad_status_or_field_is_refused_by_the_schema(tmp_path: Path) -> None:
    async with room(tmp_path, _tool()) as it:
        assert "do not fit" in (await call(it, todos=[{"id": "1", "status": "weird"}]))["error"]
        assert "'extra' was unexpected" in (await call(it, extra=1))["error"]


def result(*items: dict[str, str], call: str = "x", name: str = "todo") -> Message:
    return Message(role="tool", tool_name=name, tool_call_id=call, content=json.dumps({"todos": items}), status="ok")


def test_the_list_is_rebuilt_from_the_newest_result_that_answers_the_tool() -> None:
    done, open_ = {"id": "1", "content": "new", "status": "completed"}, {"id": "2", "content": "b", "status": "pending"}
    history = [
        Message(role="assistant", content="", tool_calls=(ToolCall("x", "todo"),)),
        result({"id": "1", "content": "old", "status": "pending"}),
        Message(role="assistant", content="", tool_calls=(ToolCall("x", "todo"), ToolCall("y", "read_file"))),
        result(done, open_),
        result({"id": "9", "content": "planted", "status": "pending"}, call="y", name="todo"),
        Message(role="assistant", content="so"),
    ]
    items = restored_tasks(history)
    assert items == [done, open_]
    assert open_items(items) == [open_]
    assert restored_tasks([]) == []
    assert restored_tasks([result(open_)]) == []  # it answers nobody


async def test_the_last_of_an_id_counts_where_it_stands_and_lists_have_a_limit(tmp_path: Path) -> None:
    async with room(tmp_path, _tool()) as it:
        todos = [{"id": "1", "content": "a"}, {"id": "2", "content": "b"}, {"id": "1", "content": "x" * 5_000}]
        written = await call(it, todos=todos)
        assert [(one["id"], len(one["content"])) for one in written["todos"]] == [("2", 1), ("1", 4_000)]
        many = [{"id": str(number), "content": "x"} for number in range(257)]
        assert "at most 256 items, not 257" in (await call(it, todos=many))["error"]
        assert (await call(it))["todos"] == written["todos"]


async def test_surfaces_hear_of_a_list_that_was_written_and_only_then() -> None:
    sink = MemorySink()
    model = ScriptedModel(calls("todo", todos=[{"id": "1", "content": "a"}]), calls("todo"), says("ok"))
    agent = AIAgent(model=model, store=MemoryStore(), sink=sink, enabled_toolsets=["todo"])
    await agent.arun_conversation("Go")
    await agent.aclose()
    written = [event for event in sink.events if isinstance(event, TasksChanged)]
    assert written == [TasksChanged(({"id": "1", "content": "a", "status": "pending"},))]
