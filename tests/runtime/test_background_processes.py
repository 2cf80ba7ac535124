"""Background processes and the agent that started them: they end with its session, and its turns hear of them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.runtime.setup.process import shared
from hermes.testing import ScriptedModel, calls, says


@pytest.fixture(autouse=True)
async def _close_shared() -> Any:
    yield
    await shared.close()


def agent_with(model: ScriptedModel, work: Path, **keywords: Any) -> AIAgent:
    work.mkdir(exist_ok=True)
    return AIAgent(model=model, cwd=str(work), enabled_toolsets=["terminal"], skip_context_files=True, **keywords)


def configure(home: Path, text: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(text)


def pid_in(home: Path) -> int:
    (folder,) = (home / "processes").iterdir()
    return int((folder / "pid").read_text())


async def gone(pid: int) -> None:
    async with asyncio.timeout(20):
        while Path(f"/proc/{pid}").exists():  # noqa: ASYNC110, ASYNC240 - a process that is no child of ours
            await asyncio.sleep(0.02)


START = calls("terminal", command="sleep 7611", background=True)


async def test_a_background_process_ends_with_the_session(hermes_home: Path, tmp_path: Path) -> None:
    agent = agent_with(ScriptedModel(START, says("Started.")), tmp_path / "work")
    await agent.arun_conversation("start it")
    pid = pid_in(hermes_home)
    assert Path(f"/proc/{pid}").exists()  # noqa: ASYNC240
    await agent.aclose()
    await gone(pid)


async def test_it_stays_when_the_setting_says_so_and_the_next_agent_ends_it(hermes_home: Path, tmp_path: Path) -> None:
    configure(hermes_home, "terminal:\n  keep_background: true\n")
    agent = agent_with(ScriptedModel(START, says("Started.")), tmp_path / "work")
    await agent.arun_conversation("start it")
    pid, session = pid_in(hermes_home), agent.session_id
    await agent.aclose()
    await shared.close()
    assert Path(f"/proc/{pid}").exists()  # noqa: ASYNC240
    configure(hermes_home, "{}")
    ident = next((hermes_home / "processes").iterdir()).name
    model = ScriptedModel(calls("process", action="poll", session_id=ident), says("It runs."))
    later = agent_with(model, tmp_path / "work", session_id=session)
    await later.arun_conversation("does it run?")
    assert json.loads(str(model.requests[1][-1].content))["status"] == "running"
    await later.aclose()
    await gone(pid)


async def test_an_end_is_told_between_two_rounds_of_the_same_turn(hermes_home: Path, tmp_path: Path) -> None:
    work, until = tmp_path / "work", "while [ ! -f {} ]; do sleep 0.02; done"
    model = ScriptedModel(
        calls("terminal", command=f"{until.format('go')}; exit 3", background=True, notify_on_complete=True),
        calls("terminal", command=f"touch go; {until.format('../hermes-home/processes/*/exit')}", timeout=30),
        says("It failed."),
    )
    configure(hermes_home, "terminal:\n  sandbox: 'off'\n")
    agent = agent_with(model, work)
    await agent.arun_conversation("build it")
    heard = ["ended with exit code 3" in str([unit.context for unit in each.units]) for each in model.full_requests]
    assert heard == [False, False, True]
    await agent.aclose()
