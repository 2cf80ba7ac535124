"""What a call costs beyond its server's answer: no commit of its own, and nothing looked at twice."""

from pathlib import Path

import pytest

from hermes.ops import ApprovalRecorded, CallClosed
from hermes.testing.memory_store import MemoryStore
from hermes.testing.replies import calls, says
from hermes.tools.mcp.manifest import ToolRecord
from tests.tools.mcp.mcp_room import bare, body, mcp_room

DONE = says("Done.")


def _with_records(store: MemoryStore) -> list[set[type]]:
    """What was written together with each decision of the gate."""
    kinds = [{type(op) for op in ops} for ops in store.commits]
    return [one for one in kinds if ApprovalRecorded in one]


async def test_that_nothing_was_asked_is_stored_with_the_result(hermes_home: Path) -> None:
    store = MemoryStore()
    script = (calls("mcp__bare__echo", text="one"), calls("mcp__bare__echo", text="two"), DONE)
    async with mcp_room(hermes_home, {"bare": bare()}, *script, store=store) as room:
        assert [body(one)["result"] for one in await room.ask()] == ["one", "two"]
    written = _with_records(store)
    assert len(written) == 2, "a row for each call, the first and the one that was decided like it"
    assert all(CallClosed in kinds for kinds in written), "and none has a commit of its own"


async def test_what_somebody_must_decide_is_stored_before_it_happens(hermes_home: Path) -> None:
    store = MemoryStore()
    async with mcp_room(hermes_home, {"bare": bare()}, calls("mcp__bare__destroy"), DONE, store=store) as room:
        await room.ask()
    written = _with_records(store)
    assert written
    assert all(CallClosed not in kinds for kinds in written)


async def test_a_call_looks_at_its_own_tool_alone_and_once(hermes_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    digest = ToolRecord.digest.fget  # type: ignore[attr-defined]  # a property
    async with mcp_room(
        hermes_home, {"bare": bare()}, calls("mcp__bare__echo", text="a"), calls("mcp__bare__echo", text="b"), DONE
    ) as room:

        def counted(record: ToolRecord) -> str:
            looked.append(record.name)
            return str(digest(record))

        monkeypatch.setattr(ToolRecord, "digest", property(counted))
        await room.ask()
    assert looked == ["echo"]


async def test_a_call_that_was_allowed_looks_at_no_file_again(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (calls("mcp__bare__echo", text="a"), says("One."), calls("mcp__bare__echo", text="b"), DONE)
    async with mcp_room(hermes_home, {"bare": bare()}, *script) as room:
        assert body((await room.ask())[0])["result"] == "a"
        looked: list[Path] = []
        monkeypatch.setattr("hermes.tools.approval.grants.stamp_of", looked.append)
        assert body((await room.ask())[0])["result"] == "b"
    assert looked == []


async def test_a_rule_that_comes_later_counts_for_a_call_that_was_allowed(hermes_home: Path) -> None:
    script = (calls("mcp__bare__echo", text="a"), says("One."), calls("mcp__bare__echo", text="b"), DONE)
    async with mcp_room(hermes_home, {"bare": bare()}, *script) as room:
        assert body((await room.ask())[0])["result"] == "a"
        (await room.agent._assembled()).options.tools.work_mode.change("plan")
        assert "result" not in body((await room.ask())[0])
