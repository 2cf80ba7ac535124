"""delegate_task: what children are given, what they come to, and what is refused before anything starts."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hermes import AIAgent
from hermes.config import paths
from hermes.runtime.delegation.child_options import NEVER
from hermes.scope import TurnScope
from hermes.seams import ModelRequest
from hermes.state.queries import SessionFilter
from hermes.testing.replies import calls, fault, says
from hermes.types import ChildProgress, Event, ModelEvent
from tests.runtime.delegation.scripts import PARENT, FamilyModel, answer, breaks, results

DONE = says("All done.")


def configured(home: Path, text: str) -> None:
    (paths.made(home) / "config.yaml").write_text(text)


def agent_of(model: FamilyModel, store: Any, **keywords: Any) -> AIAgent:
    return AIAgent(model=model, store=store, **keywords)


async def test_a_child_does_its_task_and_its_parent_reads_what_came_of_it(store: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    model = FamilyModel(
        [calls("delegate_task", goal="Write b.", context="The folder is small."), DONE],
        {"Write b.": [calls("write_file", path="b.txt", content="two\n"), says("I wrote b.txt.")]},
    )
    agent = agent_of(model, store, cwd=str(tmp_path), enabled_toolsets=["file", "delegation"])
    done = await agent.arun_conversation("Have b written.")
    (one,) = results(done)
    assert done["final_response"] == "All done."
    assert (one["status"], one["summary"], one["exit_reason"]) == ("completed", "I wrote b.txt.", "completed")
    assert (one["task_index"], one["api_calls"], one["model"]) == (0, 2, "scripted")
    assert one["tokens"] == {"input": 20, "output": 10}
    assert [(each["tool"], each["status"]) for each in one["tool_trace"]] == [("write_file", "ok")]
    assert [Path(each).name for each in one["files_written"]] == ["b.txt"]
    assert "cost_usd" in one
    assert answer(done)["total_duration_seconds"] >= 0
    assert (tmp_path / "b.txt").read_text() == "two\n"
    (row,) = store.queries.sessions(SessionFilter(ids=[one["child_session_id"]]))
    assert (row["source"], row["parent_session_id"], row["end_reason"]) == ("subagent", agent.session_id, "completed")
    assert row["ended_at"]


async def test_a_child_sees_its_task_at_the_end_of_its_prompt_and_nothing_of_the_conversation(
    store: Any, tmp_path: Path, hermes_home: Path
) -> None:
    (tmp_path / "AGENTS.md").write_text("Always sing.\n")
    (paths.made(hermes_home) / "SOUL.md").write_text("You are a parrot.\n")
    model = FamilyModel(
        [calls("delegate_task", tasks=[{"goal": "One."}, {"goal": "Two.", "context": "Mind the gap."}]), DONE],
        {"One.": [says("1")], "Two.": [says("2")]},
    )
    await agent_of(model, store, cwd=str(tmp_path)).arun_conversation("A secret plan.")
    one, two = (model.parts[goal].full_requests[0] for goal in ("One.", "Two."))
    assert "parrot" in model.parts[PARENT].full_requests[0].system
    for request in (one, two):
        assert "parrot" not in request.system
        assert "sing" not in request.system
        assert "secret plan" not in request.system
        assert [message.role for unit in request.units for message in unit.messages] == ["user"]
    assert one.shared_chars == two.shared_chars > 100
    assert one.system[: one.shared_chars] == two.system[: two.shared_chars]
    assert "Mind the gap." in two.system[two.shared_chars :]
    assert str(tmp_path) in two.system[two.shared_chars :]
    assert one.tools == two.tools
    assert not NEVER & {tool.name for tool in one.tools}


async def test_toolsets_narrow_what_the_parent_has_and_add_nothing(store: Any) -> None:
    tasks = [
        {"goal": "Plain."},
        {"goal": "Narrow.", "toolsets": ["file", "web"]},
        {"goal": "None.", "toolsets": ["web"]},
    ]
    model = FamilyModel(
        [calls("delegate_task", tasks=tasks), DONE],
        {"Plain.": [says("1")], "Narrow.": [says("2")], "None.": [says("3")]},
    )
    agent = agent_of(model, store, enabled_toolsets=["file", "terminal", "delegation", "memory", "clarify"])
    await agent.arun_conversation("Go.")
    offered = {goal: {tool.name for tool in model.parts[goal].full_requests[0].tools} for goal in model.parts}
    files = {"read_file", "write_file", "patch", "search_files"}
    assert offered["Plain."] == files | {"terminal", "process"}
    assert offered["Narrow."] == files
    assert offered["None."] == set()


@pytest.mark.parametrize(
    ("args", "says_why"),
    [
        ({}, "a task needs a 'goal'"),
        ({"tasks": [{"goal": "a"}, {"goal": "  "}]}, "Task 1 is missing a 'goal'."),
        ({"tasks": [{"goal": str(n)} for n in range(4)]}, "4 tasks, and one call may have 3 (delegation.max_conc"),
        ({"tasks": [{"goal": "a", "acp_args": ["x"]}]}, "acp_args go with acp_command"),
        ({"goal": "a", "acp_command": "other", "toolsets": ["file"]}, "has tools of its own; leave 'toolsets' out"),
        ({"goal": "a", "acp_command": "a\0b"}, "without a NUL character"),
    ],
)
async def test_what_cannot_be_is_refused_before_anything_starts(
    store: Any, args: dict[str, Any], says_why: str
) -> None:
    model = FamilyModel([calls("delegate_task", **args), DONE], {})
    done = await agent_of(model, store).arun_conversation("Go.")
    assert says_why in answer(done)["error"]
    assert store.queries.count_sessions(SessionFilter()) == 1


async def test_a_child_that_met_only_errors_or_said_nothing_is_failed_and_leaves_the_others_alone(store: Any) -> None:
    tasks = [{"goal": "Broken."}, {"goal": "Silent."}, {"goal": "Fine."}]
    model = FamilyModel(
        [calls("delegate_task", tasks=tasks), DONE],
        {"Broken.": [breaks()], "Silent.": [says("")] * 8, "Fine.": [says("Fine, too.")]},
    )
    done = await agent_of(model, store).arun_conversation("Go.")
    broken, silent, fine = results(done)
    assert (broken["status"], broken["exit_reason"]) == ("failed", "error")
    assert "the model is broken" in broken["error"]
    assert silent["status"] == "failed"
    assert silent["error"]
    assert silent["summary"] == ""
    assert (fine["status"], fine["summary"]) == ("completed", "Fine, too.")


async def test_the_end_of_a_child_that_could_not_be_made_is_stored(store: Any, hermes_home: Path) -> None:
    configured(hermes_home, "delegation: {model: small, provider: nobody-known}\n")
    model = FamilyModel([calls("delegate_task", goal="Dig."), DONE], {})
    agent = agent_of(model, store)
    (one,) = results(await agent.arun_conversation("Go."))
    assert one["status"] == "error"
    assert "nobody-known" in one["error"]
    rows = [row for row in store.queries.events(agent.session_id, 0, 100) if row["about"] == one["child_session_id"]]
    assert [row["kind"] for row in rows] == ["child_started", "child_ended"]
    assert rows[1]["body"]["result"]["error"] == one["error"]


async def test_depth_and_roles(store: Any, hermes_home: Path) -> None:
    configured(hermes_home, "delegation: {max_spawn_depth: 2}\n")
    seen: list[Event] = []

    class Ear:
        def emit(self, event: Event) -> None:
            seen.append(event)

    model = FamilyModel(
        [calls("delegate_task", goal="Lead.", role="orchestrator"), DONE],
        {"Lead.": [calls("delegate_task", goal="Dig.", role="orchestrator"), says("led")], "Dig.": [says("dug")]},
    )
    done = await agent_of(model, store, sink=Ear()).arun_conversation("Go.")
    (lead,) = results(done)
    assert lead["summary"] == "led"
    assert "delegate_task" in {tool.name for tool in model.parts["Lead."].full_requests[0].tools}
    assert "delegate_task" not in {tool.name for tool in model.parts["Dig."].full_requests[0].tools}
    news = [event for event in seen if isinstance(event, ChildProgress)]
    below = [event for event in news if len(event.path) == 2]
    assert {event.goal for event in below} == {"Dig."}
    assert below[0].path[0] == lead["subagent_id"]
    assert next(event.stage for event in news if event.goal == "Lead.") == "start"
    ended = [event for event in news if event.stage == "complete"]
    assert [(event.goal, (event.outcome or {})["status"]) for event in ended] == [
        ("Dig.", "completed"),
        ("Lead.", "completed"),
    ]


@pytest.mark.parametrize("mode", ["plan", "ask"])
async def test_a_child_goes_no_further_than_the_mode_of_the_session(store: Any, tmp_path: Path, mode: str) -> None:
    model = FamilyModel(
        parent=[calls("delegate_task", goal="Write it."), DONE],
        children={
            "Write it.": [
                calls("write_file", path=str(tmp_path / "a.txt"), content="x"),
                calls("terminal", command="touch b.txt"),
                says("Done."),
            ]
        },
    )
    asked: list[str] = []

    def ask(question: Any) -> str:
        asked.append(question.command)
        return "deny"

    agent = agent_of(model, store, cwd=str(tmp_path), work_mode=mode, approval_callback=ask)
    await agent.arun_conversation("Go.")
    await agent.aclose()
    assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "b.txt").exists() == (mode == "ask")  # commands are not edits
    assert asked == ([str(tmp_path / "a.txt")] if mode == "ask" else [])


async def test_a_timeout_gives_what_is_there_so_far(store: Any, tmp_path: Path, hermes_home: Path) -> None:
    configured(hermes_home, "delegation: {child_timeout_seconds: 0.6}\n")
    stalls = says("So far I know half.").failing("stall")
    model = FamilyModel(
        [calls("delegate_task", goal="Slow."), DONE],
        {"Slow.": [calls("write_file", path="half.txt", content="1"), stalls]},
    )
    done = await agent_of(model, store, cwd=str(tmp_path)).arun_conversation("Go.")
    (one,) = results(done)
    assert (one["status"], one["exit_reason"]) == ("timeout", "timeout")
    assert one["summary"].startswith("So far I know")  # the last word may be half a secret, and waits for the rest
    assert [Path(each).name for each in one["files_written"]] == ["half.txt"]
    assert done["final_response"] == "All done."


async def test_an_interrupt_goes_down_the_tree_and_what_was_done_is_told(store: Any) -> None:
    model = FamilyModel(
        [calls("delegate_task", tasks=[{"goal": "Quick."}, {"goal": "Stuck."}]), DONE],
        {"Quick.": [says("quick")], "Stuck.": [fault("stall")]},
    )
    quick_ended = asyncio.Event()

    class Ear:
        def emit(self, event: Event) -> None:
            if isinstance(event, ChildProgress) and event.stage == "complete":
                quick_ended.set()

    agent = agent_of(model, store, sink=Ear())

    async def stop() -> None:
        await model.parts["Stuck."].stalled.wait()
        await quick_ended.wait()
        agent.interrupt()

    async with asyncio.TaskGroup() as group:
        group.create_task(stop())
        done = await agent.arun_conversation("Go.")
    assert done["interrupted"]
    assert done["turn_exit_reason"] == "interrupted_by_user"
    quick, stuck = results(done)
    assert (quick["status"], quick["summary"]) == ("completed", "quick")
    assert stuck["status"] == "interrupted"
    (row,) = store.queries.sessions(SessionFilter(ids=[stuck["child_session_id"]]))
    assert row["end_reason"] == "interrupted"
    assert row["ended_at"]
    assert agent.children == ()


class OpenStreams(FamilyModel):
    """Counts the requests that are under way."""

    under_way = 0

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]:
        self.under_way += 1
        try:
            async for event in super().stream(request, scope):
                yield event
        finally:
            self.under_way -= 1


async def test_an_interrupt_ends_the_work_of_the_whole_tree_before_the_turn_is_over(
    store: Any, tmp_path: Path, hermes_home: Path
) -> None:
    """A command two levels down, one that ignores being asked to end, and a request: all gone when the turn is."""
    configured(hermes_home, "delegation: {max_spawn_depth: 2, max_concurrent_children: 3}\n")
    tasks = [{"goal": "Lead.", "role": "orchestrator"}, {"goal": "Deaf."}, {"goal": "Stuck."}]
    duration = f"600.{os.getpid()}29"  # by which the commands of this test are found
    model = OpenStreams(
        [calls("delegate_task", tasks=tasks), DONE],
        {
            "Lead.": [calls("delegate_task", goal="Dig."), says("led")],
            "Dig.": [calls("terminal", command=f"sleep {duration}")],
            "Deaf.": [calls("terminal", command=f"trap '' INT TERM HUP; while :; do sleep {duration}; done")],
            "Stuck.": [fault("stall")],
        },
    )
    order: list[str] = []

    def at_work() -> list[int]:
        found = psutil.process_iter(["cmdline", "status"])
        alive = [one for one in found if one.info["status"] != psutil.STATUS_ZOMBIE]
        return [one.pid for one in alive if one.info["cmdline"] == ["sleep", duration]]

    class Ear:
        def emit(self, event: Event) -> None:
            if isinstance(event, ChildProgress) and event.stage == "complete":
                order.append(event.goal)

    agent = AIAgent(model=model, store=store, sink=Ear(), cwd=str(tmp_path))
    began = 0.0

    async def stop() -> None:
        nonlocal began
        async with asyncio.timeout(60):
            await model.parts["Stuck."].stalled.wait()
            while len(at_work()) < 2:  # noqa: ASYNC110 - processes tell nobody that they have begun
                await asyncio.sleep(0.01)
        began = time.perf_counter()
        agent.interrupt()

    async with asyncio.TaskGroup() as group:
        group.create_task(stop())
        done = await agent.arun_conversation("Go.")
    print(f"interrupt to ready: {time.perf_counter() - began:.3f} s")  # noqa: T201 - a figure, held by nothing here
    assert sorted(order) == ["Deaf.", "Dig.", "Lead.", "Stuck."]
    assert order.index("Dig.") < order.index("Lead.")
    assert done["turn_exit_reason"] == "interrupted_by_user"
    assert {one["status"] for one in results(done)} == {"interrupted"}
    assert (model.under_way, agent.children) == (0, ())
    assert at_work() == []
    rows = store.queries.sessions(SessionFilter(equal={"source": "subagent"}))
    assert [row["end_reason"] for row in rows] == ["interrupted"] * 4
    await agent.aclose()


async def test_one_child_is_stopped_and_the_others_go_on(store: Any) -> None:
    model = FamilyModel(
        [calls("delegate_task", tasks=[{"goal": "Stuck."}, {"goal": "Fine."}]), DONE],
        {"Fine.": [says("fine")], "Stuck.": [fault("stall")]},
    )
    agent = agent_of(model, store)

    async def stop() -> None:
        await model.parts["Stuck."].stalled.wait()
        stuck = next(child for child in agent.children if child.record.task.goal == "Stuck.")
        assert agent.stop_child(stuck.record.name)
        assert not agent.stop_child("sa-9-nobody")

    async with asyncio.TaskGroup() as group:
        group.create_task(stop())
        done = await agent.arun_conversation("Go.")
    assert [one["status"] for one in results(done)] == ["interrupted", "completed"]
    assert done["final_response"] == "All done."
