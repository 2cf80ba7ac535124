"""Approval as a caller of `AIAgent` meets it: threads, interrupts, timeouts, grants and rows."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.runtime.facade import background
from hermes.runtime.setup.process import shared
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.tools import approval
from hermes.tools.hooks import Hooks

MakeAgent = Callable[..., AIAgent]


@pytest.fixture
def make_agent(tmp_path: Path) -> Iterator[MakeAgent]:
    made: list[AIAgent] = []
    work = tmp_path / "work"
    for name in ("build", "src"):
        (work / name).mkdir(parents=True)

    def make(*script: Any, store: MemoryStore | None = None, **keywords: Any) -> AIAgent:
        agent = AIAgent(model=ScriptedModel(*script), store=store or MemoryStore(), cwd=str(work), **keywords)
        made.append(agent)
        return agent

    yield make
    for agent in made:
        agent.close()
    asyncio.run_coroutine_threadsafe(shared.close(), background.get()).result(20)


def delete(name: str = "build") -> Any:
    return calls("terminal", command=f"rm -rf {name}")


def results(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [json.loads(message["content"]) for message in answer["messages"] if message["role"] == "tool"]


def test_the_callback_has_the_callers_context_and_its_yes_counts(make_agent: MakeAgent, tmp_path: Path) -> None:
    seen: list[str] = []

    def ask(command: str, description: str) -> str:
        seen.append(approval.get_current_session_key())
        return "once"

    token = approval.set_current_session_key("of-the-caller")
    try:
        answer = make_agent(delete(), says("Done."), approval_callback=ask).run_conversation("Clean up.")
    finally:
        approval.reset_current_session_key(token)
    assert seen == ["of-the-caller"]
    assert results(answer)[0]["exit_code"] == 0
    assert not (tmp_path / "work" / "build").exists()


def test_every_decision_is_a_row_with_reason_rule_and_who(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    script = (calls("terminal", command="echo hi"), delete(), calls("terminal", command="rm -rf /"), says("Done."))
    make_agent(*script, store=store, approval_callback=lambda asked: False).run_conversation("Go.")
    rows = [(row.verdict, row.rule, row.decided_by) for row in store.approvals]
    assert rows == [("allow", "effects", "policy"), ("deny", "effects", "person"), ("deny", "hardline", "policy")]
    assert "recursive delete" in store.approvals[1].reason


def test_nobody_to_ask_denies_with_words_that_lead_elsewhere(make_agent: MakeAgent, tmp_path: Path) -> None:
    answer = make_agent(delete(), says("I cannot.")).run_conversation("Clean up.")
    (result,) = results(answer)
    assert result["status"] == "blocked"
    assert "nobody is here" in result["error"]
    assert (tmp_path / "work" / "build").exists()


async def test_an_async_callback_is_awaited_and_a_session_yes_lasts(make_agent: MakeAgent) -> None:
    asked: list[str] = []

    async def ask(question: Any) -> str:
        asked.append(question.command)
        return "session"

    agent = make_agent(delete(), delete("dist"), says("Done."), approval_callback=ask)
    await agent.arun_conversation("Clean up.")
    assert asked == ["rm -rf build"]


async def test_a_session_yes_is_there_after_a_restart_and_can_be_taken_back(make_agent: MakeAgent) -> None:
    store, session = MemoryStore(), "20260101_000000_abcdef"
    yes = make_agent(delete(), says("1"), store=store, session_id=session, approval_callback=lambda asked: "session")
    await yes.arun_conversation("Go.")
    later = make_agent(delete(), says("2"), store=store, session_id=session)
    assert results(await later.arun_conversation("Again."))[-1]["exit_code"] == 0
    approval.clear_session(session)
    after = make_agent(delete("src"), says("3"), store=store, session_id=session)
    assert results(await after.arun_conversation("Again."))[-1]["status"] == "blocked"


async def test_an_interrupt_while_asking_ends_the_turn_and_the_late_yes_is_ignored(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    asking, answer_now, answered = threading.Event(), threading.Event(), threading.Event()

    def ask(question: Any) -> str:
        asking.set()
        answer_now.wait(20)
        answered.set()
        return "always"

    agent = make_agent(delete(), says("Never."), approval_callback=ask)
    turn = asyncio.get_running_loop().create_task(agent.arun_conversation("Clean up."))
    await asyncio.to_thread(asking.wait, 10)
    agent.interrupt()
    result = await asyncio.wait_for(turn, 5)
    assert result["interrupted"]
    answer_now.set()
    assert await asyncio.to_thread(answered.wait, 10)
    assert (tmp_path / "work" / "build").exists()
    assert approval.load_permanent_allowlist() == set()


def test_a_callback_that_never_answers_does_not_hold_the_caller_past_an_interrupt(make_agent: MakeAgent) -> None:
    asking, release = threading.Event(), threading.Event()

    def ask(question: Any) -> str:
        asking.set()
        release.wait(60)
        return "once"

    agent = make_agent(delete(), says("Never."), approval_callback=ask)

    def interrupt() -> None:
        asking.wait(20)
        agent.interrupt()

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        result = agent.run_conversation("Clean up.")
        assert not release.is_set()
    finally:
        release.set()
    assert result["interrupted"]


def test_hooks_are_told_of_the_question_and_of_its_answer(make_agent: MakeAgent) -> None:
    told: list[tuple[str, Any]] = []
    agent = make_agent(delete(), says("Done."), approval_callback=lambda asked: "session")

    async def turn() -> None:
        hooks = (await agent._assembled()).services.hooks
        assert isinstance(hooks, Hooks)
        for name in ("pre_approval_request", "post_approval_response"):
            hooks.add(name, lambda name=name, **facts: told.append((name, facts)), owner="test", kind="observer")
        await agent.arun_conversation("Clean up.")
        await agent.aclose()

    asyncio.run(turn())
    assert [name for name, _ in told] == ["pre_approval_request", "post_approval_response"]
    assert told[0][1]["command"] == "rm -rf build"
    assert told[0][1]["pattern_keys"] == ["recursive delete"]
    assert told[1][1]["choice"] == "session"


def test_control_c_in_the_callers_own_prompt_ends_the_turn(make_agent: MakeAgent, tmp_path: Path) -> None:
    def ask(question: Any) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_agent(delete(), says("Never."), approval_callback=ask).run_conversation("Clean up.")
    assert (tmp_path / "work" / "build").exists()


async def test_silence_is_a_no(make_agent: MakeAgent, hermes_home: Path, tmp_path: Path) -> None:
    (hermes_home / "config.yaml").write_text("approvals: {timeout: 0.05}\n")

    async def ask(question: Any) -> str:
        await asyncio.Event().wait()
        return "once"

    store = MemoryStore()
    agent = make_agent(delete(), says("Not done."), store=store, approval_callback=ask)
    assert results(await agent.arun_conversation("Clean up."))[0]["status"] == "blocked"
    assert [(row.scope, row.decided_by) for row in store.approvals] == [("timeout", "nobody")]
    assert (tmp_path / "work" / "build").exists()


async def test_a_chat_session_is_asked_through_its_queue(make_agent: MakeAgent, tmp_path: Path) -> None:
    def notify(facts: dict[str, Any]) -> None:
        assert facts["choices"][0] == "once"
        approval.resolve_gateway_approval("chat-7", "once")

    approval.register_gateway_notify("chat-7", lambda facts: threading.Thread(target=notify, args=(facts,)).start())
    try:
        agent = make_agent(delete(), says("Done."), gateway_session_key="chat-7", platform="telegram")
        await agent.arun_conversation("Clean up.")
    finally:
        approval.unregister_gateway_notify("chat-7")
    assert not (tmp_path / "work" / "build").exists()


@pytest.mark.parametrize(
    ("verdict", "runs", "asks"),
    [
        ('{"verdict": "approve", "reason": "build output"}', True, 0),
        ('{"verdict": "deny"}', False, 0),
        ('{"verdict": "escalate"}', False, 1),
        ("Sure, go ahead: approve", False, 1),
    ],
)
async def test_smart_mode_settles_clear_cases_and_fails_closed(
    make_agent: MakeAgent, hermes_home: Path, tmp_path: Path, verdict: str, *, runs: bool, asks: int
) -> None:
    (hermes_home / "config.yaml").write_text("approvals: {mode: smart}\n")
    asked: list[Any] = []
    store = MemoryStore()
    agent = make_agent(delete(), says(verdict), says("Done."), store=store, approval_callback=asked.append)
    await agent.arun_conversation("Clean up.")
    assert (not (tmp_path / "work" / "build").exists(), len(asked)) == (runs, asks)
    assert [opened.purpose for opened, _ in store.attempts.values()][:3] == ["turn", "approval", "turn"]
    assert store.approvals[0].decided_by == ("person" if asks else "model")
