"""todo: replace, merge, read, and come back from a history."""

import json
from pathlib import Path
from typing import Any

from hermes.tools.builtin.todo import open_items, restore
from hermes.tools.registry import registry
from hermes.types import Message, text_of
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


def test_the_list_is_rebuilt_from_the_newest_result() -> None:
    def result(items: list[dict[str, str]]) -> Message:
        return Message(role="tool", tool_name="todo", tool_call_id="x", content=json.dumps({"todos": items}))

    history = [
        result([{"id": "1", "content": "old", "status": "pending"}]),
        result(
            [{"id": "1", "content": "new", "status": "completed"}, {"id": "2", "content": "b", "status": "pending"}]
        ),
        Message(role="assistant", content="so"),
    ]
    items = restore(history)
    assert [item["content"] for item in items] == ["new", "b"]
    assert [item["id"] for item in open_items(items)] == ["2"]
    assert restore([]) == []
