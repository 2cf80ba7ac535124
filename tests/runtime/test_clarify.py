"""clarify: the model asks, and a person answers; where nobody does, it is told to decide for itself."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config import paths
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says

ASKED = calls("clarify", question=" Which colour? ", choices=["red ", " blue"])


def agent_with(callback: Any, *script: Any) -> AIAgent:
    model = ScriptedModel(*(script or (ASKED, says("Done."))))
    return AIAgent(model=model, store=MemoryStore(), enabled_toolsets=["clarify", "todo"], clarify_callback=callback)


def results(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [json.loads(one["content"]) for one in result["messages"] if one["role"] == "tool"]


def test_a_plain_callback_is_asked_in_the_thread_that_waits() -> None:
    asked: list[Any] = []

    def answer(question: str, choices: list[str] | None) -> str:
        asked.append((threading.current_thread(), question, choices))
        return " blue "

    done = agent_with(answer).run_conversation("Paint.")
    assert asked == [(threading.current_thread(), "Which colour?", ["red", "blue"])]
    assert results(done) == [{"question": "Which colour?", "choices_offered": ["red", "blue"], "user_response": "blue"}]


async def test_an_async_callback_is_awaited_and_an_open_question_has_no_choices() -> None:
    async def answer(question: str, choices: list[str] | None) -> str:
        await asyncio.sleep(0)
        return f"{question} {choices}"

    agent = agent_with(answer, calls("clarify", question="Why?", choices=[]), says("Done."))
    done = await agent.arun_conversation("Go.")
    assert results(done) == [{"question": "Why?", "choices_offered": None, "user_response": "Why? None"}]


async def test_where_nobody_can_answer_the_model_is_told_at_once_to_decide() -> None:
    done = await agent_with(None).arun_conversation("Paint.")
    assert "nobody can be asked here; decide for yourself" in results(done)[0]["error"]
    assert done["final_response"] == "Done."


async def test_a_callback_that_fails_or_has_no_answer_costs_only_the_question() -> None:
    def broken(_question: str, _choices: object) -> str:
        raise ValueError("no screen")

    assert "no screen; decide" in results(await agent_with(broken).arun_conversation("Paint."))[0]["error"]
    silent = await agent_with(lambda _question, _choices: None).arun_conversation("Paint.")
    assert results(silent)[0]["error"].startswith("nobody answered; decide")


async def test_nobody_answers_in_time(hermes_home: Path) -> None:
    (paths.made(hermes_home) / "config.yaml").write_text("agent:\n  clarify_timeout: 0.05\n")

    async def never(_question: str, _choices: object) -> str:
        await asyncio.Event().wait()
        return ""

    done = await agent_with(never).arun_conversation("Paint.")
    assert results(done)[0]["error"].startswith("nobody answered within 0.05 s; decide for yourself")
    assert done["completed"]


async def test_an_interrupt_ends_the_question_and_the_turn() -> None:
    agent: AIAgent

    async def interrupting(_question: str, _choices: object) -> str:
        agent.interrupt()
        await asyncio.Event().wait()
        return ""

    agent = agent_with(interrupting)
    async with asyncio.timeout(10):
        done = await agent.arun_conversation("Paint.")
    assert (done["interrupted"], done["final_response"]) == (True, "")


async def test_nothing_runs_beside_a_question() -> None:
    inside: list[str] = []

    async def answer(question: str, _choices: object) -> str:
        inside.append(question)
        await asyncio.sleep(0)
        assert inside == [question]
        inside.clear()
        return "yes"

    both = calls("clarify", question="One?") + calls("clarify", question="Two?") + calls("todo")
    done = await agent_with(answer, both, says("Done.")).arun_conversation("Go.")
    assert [one.get("user_response") for one in results(done)] == ["yes", "yes", None]


@pytest.mark.parametrize("bad", [{"question": ""}, {"question": "  "}, {"question": "x", "choices": list("abcde")}, {}])
async def test_a_question_that_is_none_is_refused(bad: dict[str, Any]) -> None:
    def never(_question: str, _choices: object) -> str:
        raise AssertionError

    done = await agent_with(never, calls("clarify", **bad), says("Done.")).arun_conversation("Go.")
    assert results(done)[0]["error"]
