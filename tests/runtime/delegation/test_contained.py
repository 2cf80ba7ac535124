"""Children that misbehave, and children that would get in each other's way: contained, told, and the parent goes on."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config import paths
from hermes.runtime.guardrails import IterationBudget
from hermes.seams import ModelRequest
from hermes.testing.replies import Reply, calls, fault, says
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import Traits, touches_nothing
from tests.runtime.delegation.scripts import FamilyModel, answer, results

DONE = says("All done.")


def configured(home: Path, text: str) -> None:
    (paths.made(home) / "config.yaml").write_text(text)


def agent_of(model: FamilyModel, store: Any, **keywords: Any) -> AIAgent:
    return AIAgent(model=model, store=store, **keywords)


async def test_the_second_child_to_write_a_file_is_told_before_it_does(store: Any, tmp_path: Path) -> None:
    write = calls("write_file", path="shared.txt", content="mine\n")
    model = FamilyModel(
        [calls("delegate_task", tasks=[{"goal": "One."}, {"goal": "Two."}]), DONE],
        {
            "One.": [write, says("1")],
            "Two.": [says("").timed(latency_s=0.3) + calls("read_file", path="shared.txt"), write, write, says("2")],
        },
    )
    await agent_of(model, store, cwd=str(tmp_path)).arun_conversation("Go.")
    told = [message.content for message in model.parts["Two."].requests[-1] if message.role == "tool"]
    assert "another child of the same task has written" in str(told[1])
    assert "error" not in json.loads(str(told[2]))


async def test_what_must_be_asked_is_asked_with_the_childs_name_and_nobody_there_means_deny(
    store: Any, tmp_path: Path
) -> None:
    asked: list[str] = []

    def answer_no(command: str, description: str) -> str:
        asked.append(description)
        return "deny"

    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "kept.txt").write_text("by somebody else\n")
    script = [calls("terminal", command="rm -rf build"), says("It was refused.")]
    lines = [calls("delegate_task", goal="Clean up."), DONE]
    for callback, count in ((answer_no, 1), (None, 1)):
        model = FamilyModel(lines, {"Clean up.": script})
        agent = agent_of(model, store, cwd=str(tmp_path), approval_callback=callback)
        (one,) = results(await agent.arun_conversation("Go."))
        assert (one["status"], one["summary"]) == ("completed", "It was refused.")
        assert len(asked) == count
        assert "error" in str(model.parts["Clean up."].requests[1][-1].content)
    assert asked[0].startswith("[sa-0-")
    assert "Clean up." in asked[0]


async def test_a_password_is_asked_for_with_the_childs_name(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    # A stand-in that does what sudo does: with -n it fails, with -A it takes the password that SUDO_ASKPASS prints.
    (tools / "sudo").write_text(
        '#!/bin/bash\n[ "$1" = -A ] || { echo "sudo: a password is required"; exit 1; }\n'
        'shift; [ "$("$SUDO_ASKPASS")" = secret ] && exec "$@"\n'
    )
    (tools / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return "secret"

    script = [calls("terminal", command="sudo echo one"), says("Done.")]
    model = FamilyModel([calls("delegate_task", goal="Be root."), DONE], {"Be root.": script})
    agent = agent_of(
        model, store, cwd=str(tmp_path), approval_callback=lambda *_: "once", sudo_password_callback=answer
    )
    (one,) = results(await agent.arun_conversation("Go."))
    await agent.aclose()
    assert asked == [f"[{one['subagent_id']}: Be root.] Password for sudo: "]


async def test_a_child_that_raises_or_floods_is_contained(store: Any, hermes_home: Path, tmp_path: Path) -> None:
    configured(hermes_home, "delegation: {max_summary_chars: 2000}\n")

    def explodes(_request: ModelRequest) -> Reply:
        raise RuntimeError("a fault in the model's code")

    flood = says("x" * 400_000)
    model = FamilyModel(
        [calls("delegate_task", tasks=[{"goal": "Boom."}, {"goal": "Flood."}]), DONE],
        {"Boom.": [explodes], "Flood.": [flood]},
    )
    done = await agent_of(model, store, cwd=str(tmp_path)).arun_conversation("Go.")
    boom, full = results(done)
    assert boom["status"] == "error"
    assert "a fault in the model's code" in boom["error"]
    assert full["status"] == "completed"
    assert len(full["summary"]) < 2_300
    assert full["summary_truncated"]
    assert await asyncio.to_thread(lambda: len(Path(full["summary_full_path"]).read_text())) == 400_000
    assert done["final_response"] == "All done."


async def test_a_child_that_deletes_its_parents_folder_leaves_a_parent_that_goes_on(store: Any, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()

    def wreck(_args: dict[str, Any], **_: Any) -> str:
        shutil.rmtree(folder)
        return tool_result(gone=True)

    registry.register(
        name="wreck",
        toolset="wrecking",
        schema={"name": "wreck", "description": "Delete it all.", "parameters": {"type": "object", "properties": {}}},
        handler=wreck,
        traits=Traits(effects=touches_nothing),
    )
    try:
        model = FamilyModel(
            [calls("delegate_task", goal="Wreck."), calls("terminal", command="pwd"), DONE],
            {"Wreck.": [calls("wreck"), calls("terminal", command="echo still here"), says("Wrecked.")]},
        )
        done = await agent_of(model, store, cwd=str(folder)).arun_conversation("Go.")
    finally:
        registry.deregister("wreck")
    assert results(done)[0]["status"] == "completed"
    assert done["final_response"] == "All done."


async def test_a_child_does_not_see_its_parents_secrets(store: Any, hermes_home: Path, tmp_path: Path) -> None:
    secret = "sk-ant-" + "q7" * 20
    (paths.made(hermes_home) / ".env").write_text(f"ANTHROPIC_API_KEY={secret}\n")
    model = FamilyModel(
        [calls("delegate_task", goal="Peek."), DONE],
        {"Peek.": [calls("terminal", command=f"env; cat {hermes_home}/.env"), says("Seen.")]},
    )
    done = await agent_of(model, store, cwd=str(tmp_path)).arun_conversation("Go.")
    assert secret not in json.dumps(done)
    assert all(secret not in str(message.content) for message in model.parts["Peek."].requests[-1])


async def test_iterations_are_a_childs_own_unless_they_are_shared(store: Any, hermes_home: Path) -> None:
    rounds = [calls("todo")] * 3
    configured(hermes_home, "delegation: {max_iterations: 2}\n")
    model = FamilyModel([calls("delegate_task", goal="Dig."), DONE], {"Dig.": [*rounds[:2], says("So far.")]})
    agent = agent_of(model, store, max_iterations=2)
    (one,) = results(await agent.arun_conversation("Go."))
    assert (one["status"], one["exit_reason"], one["summary"]) == ("completed", "max_iterations", "So far.")
    assert agent.iteration_budget.used == 2

    budget = IterationBudget(4)
    model = FamilyModel([calls("delegate_task", goal="Dig."), says("Enough.")], {"Dig.": [calls("todo"), says("Dug.")]})
    done = await agent_of(model, store, iteration_budget=budget).arun_conversation("Go.")
    assert budget.used == 4
    assert results(done)[0]["summary"] == "Dug."
    assert done["final_response"] == "Enough."


@pytest.mark.parametrize("limit", ["turn_tokens", "session_tokens", "day_tokens"])
async def test_children_never_spend_more_than_their_parent_was_granted(
    store: Any, hermes_home: Path, limit: str
) -> None:
    configured(hermes_home, f"spending: {{{limit}: 60000}}\ndelegation: {{max_concurrent_children: 4}}\n")

    def busy(request: ModelRequest) -> Reply:
        most, task = (
            request.options.max_tokens or 0,
            {"id": str(len(request.units)), "content": "x", "status": "pending"},
        )
        return calls("todo", todos=[task]).with_usage(input_tokens=3_000, output_tokens=min(most, 5_000))

    tasks = [{"goal": f"Task {n}."} for n in range(4)]
    model = FamilyModel([calls("delegate_task", tasks=tasks), DONE], {one["goal"]: [busy] * 40 for one in tasks})
    done = await agent_of(model, store).arun_conversation("Go.")
    spent = sum(one["tokens"]["input"] + one["tokens"]["output"] for one in results(done))
    assert 10_000 < spent <= 60_000
    assert {one["status"] for one in results(done)} == {"failed"}
    assert all("the share of the budget that this task was lent is used up" in one["error"] for one in results(done))
    assert done["final_response"] == "All done."


async def test_nothing_left_to_lend_is_told(store: Any, hermes_home: Path) -> None:
    configured(hermes_home, "spending: {turn_tokens: 100}\n")
    first = calls("delegate_task", goal="a").with_usage(input_tokens=90, output_tokens=10)
    model = FamilyModel([first, DONE], {})
    done = await agent_of(model, store).arun_conversation("Go.")
    assert "nothing is left to lend a child" in answer(done)["error"]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], cwd=folder, check=True)
    (folder / "a.txt").write_text("a\n")
    subprocess.run([*git, "add", "."], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-qm", "first"], cwd=folder, check=True)
    return folder


async def test_a_child_in_a_worktree_works_beside_its_parent(store: Any, repo: Path) -> None:
    model = FamilyModel(
        [calls("delegate_task", tasks=[{"goal": "Write."}, {"goal": "Look."}], isolation="worktree"), DONE],
        {
            "Write.": [calls("write_file", path="a.txt", content="b\n"), says("Changed.")],
            "Look.": [calls("read_file", path="a.txt"), says("Seen.")],
        },
    )
    wrote, looked = results(await agent_of(model, store, cwd=str(repo)).arun_conversation("Go."))
    assert (repo / "a.txt").read_text() == "a\n"
    assert "The worktree is kept (1 changed files)" in wrote["notes"][0]
    assert "notes" not in looked
    (kept,) = (repo / ".worktrees").iterdir()
    assert (kept / "a.txt").read_text() == "b\n"


async def test_a_worktree_without_a_repository_is_that_tasks_error(store: Any, tmp_path: Path) -> None:
    model = FamilyModel([calls("delegate_task", goal="Write.", isolation="worktree"), DONE], {})
    (one,) = results(await agent_of(model, store, cwd=str(tmp_path)).arun_conversation("Go."))
    assert one["status"] == "error"
    assert "isolation: worktree needs a git repository with a commit" in one["error"]


async def test_a_stalled_child_ends_at_its_time(store: Any, hermes_home: Path) -> None:
    configured(hermes_home, "delegation: {child_timeout_seconds: 0.4}\n")
    model = FamilyModel([calls("delegate_task", goal="Never."), DONE], {"Never.": [fault("stall")]})
    done = await agent_of(model, store).arun_conversation("Go.")
    assert results(done)[0]["status"] == "timeout"
    assert done["final_response"] == "All done."
