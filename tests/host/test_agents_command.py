"""/agents: which children are at work, a look into one, and an end for one; and how late listeners hear of them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hermes.errors import UserError
from hermes.host.command import CommandCall
from hermes.host.commands.agents import COMMAND
from hermes.host.event_log import read_events
from hermes.host.events import LiveEvent, TurnEnded
from hermes.state import SessionDB
from hermes.surfaces.cli.child_lines import ChildLines
from hermes.testing.replies import Reply, calls, says
from hermes.testing.server import ServerThread
from hermes.types import ChildProgress
from tests.host.conftest import WAIT_S, Ear, Hosting, Starting
from tests.surfaces.cli.interactive.terminal import answering


class AtWork:
    """Hears when a child calls its tool."""

    can_answer = False

    def __init__(self) -> None:
        self.is_set = asyncio.Event()

    def emit(self, event: LiveEvent) -> None:
        if isinstance(event, ChildProgress) and event.stage == "tool":
            self.is_set.set()

    def offer(self, _text: str) -> bool:
        return False


def script() -> Callable[..., Reply]:
    tasks = [{"goal": "Wait."}, {"goal": "Answer."}]
    return answering(
        {
            "Go": [calls("delegate_task", tasks=tasks), says("Both are back.")],
            "Wait.": [calls("terminal", command="sleep 60"), says("Waited.")],
            "Answer.": [says("Answered.")],
        }
    )


async def test_children_are_listed_looked_into_and_stopped(hosting: Hosting, starting: Starting) -> None:
    with ServerThread(script()) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear, at_work = Ear(live), AtWork()
            live.listen(at_work)
            assert (await COMMAND.run(CommandCall(live, ""))).text == "No children are at work."
            await live.submit("Go")
            async with asyncio.timeout(WAIT_S):
                await at_work.is_set.wait()
            waiting = next(child for child in live.agent.children if child.record.task.goal == "Wait.")
            listed = await COMMAND.run(CommandCall(live, ""))
            assert waiting.record.name in listed.text
            assert "Wait." in listed.text
            close_up = (await COMMAND.run(CommandCall(live, waiting.record.name))).text
            assert waiting.record.session_id in close_up
            assert 'now   terminal {"command":"sleep 60"}' in close_up
            with pytest.raises(UserError, match="no single child is named"):
                await COMMAND.run(CommandCall(live, "stop nobody"))
            stopped = await COMMAND.run(CommandCall(live, f"stop {waiting.record.name}"))
            assert "the others go on" in stopped.text
            ended = await ear.turn_end()
            stored = [item.event for item in read_events(SessionDB(store=live.db.store), live.session_id, 0)]
    assert isinstance(ended, TurnEnded)
    assert ended.answer == "Both are back."
    children = [event for event in stored if isinstance(event, ChildProgress)]
    assert sorted((event.goal, event.stage) for event in children) == [
        ("Answer.", "complete"),
        ("Answer.", "start"),
        ("Wait.", "complete"),
        ("Wait.", "start"),
    ]
    statuses: dict[str, Any] = {event.goal: event.outcome["status"] for event in children if event.outcome}
    assert statuses == {"Answer.": "completed", "Wait.": "interrupted"}


def test_a_child_has_a_live_line_that_folds_to_what_it_came_to() -> None:
    now = [0.0]
    lines = ChildLines(lambda: now[0])
    about: dict[str, Any] = {"child_session_id": "c", "task_index": 0, "task_count": 1, "goal": "Dig a\nhole."}
    lines.see(ChildProgress(stage="start", path=("sa-0-a",), **about))
    lines.see(ChildProgress(stage="tool", path=("sa-0-a",), tool_name="terminal", tool_count=1, tokens=120, **about))
    lines.see(ChildProgress(stage="start", path=("sa-0-a", "sa-0-b"), **{**about, "goal": "Deeper."}))
    now[0] = 3.0
    assert lines.live(79) == [
        "  ◦ Dig a hole. · terminal · 1 call · 120 tokens · 3 s",
        "    ◦ Deeper. · starting · 0 calls · 0 tokens · 3 s",
    ]
    told = {"status": "timeout", "summary": "Half a hole.", "duration_seconds": 3.0, "input_tokens": 100}
    ended = lines.see(ChildProgress(stage="complete", path=("sa-0-a",), outcome=told, **about))
    assert ended == "  ✗ Dig a hole. (3.0 s, 100 tokens): timeout: Half a hole."
    told = {"status": "failed", "summary": "", "error": "the model is broken", "duration_seconds": 1.0}
    ended = lines.see(ChildProgress(stage="complete", path=("sa-1-c",), outcome=told, **about))
    assert ended == "  ✗ Dig a hole. (1.0 s, 0 tokens): failed: the model is broken"
    assert len(lines.live(79)) == 1


def test_of_a_live_line_the_words_of_the_task_are_cut_first() -> None:
    lines = ChildLines(lambda: 0.0)
    about: dict[str, Any] = {"child_session_id": "c", "task_index": 0, "task_count": 1, "goal": "Dig a hole. " * 20}
    lines.see(ChildProgress(stage="tool", path=("sa-0-a",), tool_name="terminal", tokens=12_345, **about))
    for width in (200, 79, 60):
        (line,) = lines.live(width)
        assert len(line) <= width
        assert line.endswith("… · terminal · 0 calls · 12k tokens · 0 s")
