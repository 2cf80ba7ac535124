"""Many sessions at once in one process: what is in the folder, rules, user and shell of one never reaches another."""

import asyncio
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.runtime.setup.process import shared
from hermes.state import SqliteStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.types import text_of

SESSIONS = 200 if os.environ.get("HERMES_TEST_FULL") == "1" else 20


def canary(kind: str, number: int) -> str:
    return f"canary-{kind}-{number:03}-end"


async def session(number: int, folder: Path, store: SqliteStore, at_once: asyncio.Barrier) -> tuple[Any, list[str]]:
    """One session of two turns: its model, and all that it was told or found."""
    place = folder / canary("cwd", number)
    (place / "sub").mkdir(parents=True)
    (place / "AGENTS.md").write_text(f"Rules: {canary('rules', number)}")
    (place / "sub" / "AGENTS.md").write_text(f"More rules: {canary('nested', number)}")
    (place / "sub" / "x.txt").write_text(canary("file", number))
    model = ScriptedModel(
        calls("terminal", command=f"export BIRD={canary('env', number)}"),
        calls("terminal", command='echo "$BIRD"; pwd') + calls("read_file", path="sub/x.txt"),
        calls("todo", todos=[{"id": "1", "content": canary("todo", number)}]),
        says(canary("said", number)),
        calls("todo") + calls("session_search", query="canary"),
        says("Done."),
    )
    agent = AIAgent(
        model=model,
        store=store,
        cwd=str(place),
        session_id=f"s{number:03}",
        user_id=canary("user", number),
        user_name=canary("name", number),
        ephemeral_system_prompt=canary("ephemeral", number),
        enabled_toolsets=["file", "terminal", "todo", "session_search"],
        approval_callback=lambda _: "once",
    )
    await at_once.wait()
    for words in ("asked", "again"):
        await agent.arun_conversation(canary(words, number), system_message=canary("system", number))
    await agent.aclose()
    requests = [
        request.system + "".join(text_of(message.content) for unit in request.units for message in unit.messages)
        for request in model.full_requests
    ]
    return model, requests


async def test_no_canary_of_one_session_is_in_another(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    store = SqliteStore(tmp_path / "state.db")
    at_once = asyncio.Barrier(SESSIONS)
    folder = tmp_path / "work"
    before = dict(os.environ), Path.cwd()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(session(number, folder, store, at_once)) for number in range(SESSIONS)]
    for number, task in enumerate(tasks):
        model, requests = task.result()
        model.assert_finished()
        own, whole = f"-{number:03}-end", "\n".join(requests)
        for kind in ("cwd", "rules", "nested", "file", "env", "todo", "said", "asked", "system", "ephemeral"):
            assert canary(kind, number) in whole, f"{kind} did not reach its own session"
        assert whole.count("-end") == whole.count(own), "a canary of another session"
        record = await store.load(f"s{number:03}")
        assert record is not None
        stored = json.dumps([text_of(message.content) for message in record.messages]) + str(record.system_prompt)
        assert stored.count("-end") == stored.count(own)
        assert canary("ephemeral", number) not in stored
        for file in (folder / canary("cwd", number)).rglob("*"):
            text = file.read_text() if file.is_file() else ""
            assert text.count("-end") == text.count(own)
    assert (dict(os.environ), Path.cwd()) == before
    for record_ in caplog.records:
        found = {part.partition("-end")[0][-3:] for part in record_.getMessage().split("canary-")[1:]}
        assert len(found) <= 1, f"two sessions in one line: {record_.getMessage()}"
    await store.close()
    await shared.close()
