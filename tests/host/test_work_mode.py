"""The mode of a session: the gate obeys it at once, the model is told, and what must not move does not."""

from pathlib import Path

import pytest

from hermes.errors import UserError
from hermes.host.command import SurfaceFacts, run_command
from hermes.host.events import ModeChanged, QuestionAsked
from hermes.host.mode_words import hear, next_mode
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from hermes.types import CallFinished, text_of
from hermes.work_mode import WorkMode
from tests.host.conftest import Ear, Hosting, Starting, stored_until
from tests.surfaces.cli.interactive.terminal import answering

WRITE = {"path": "note.txt", "content": "one\ntwo\n"}

OWN_TOOLS = """
from pathlib import Path

from hermes.tools.decorator import tool
from hermes.tools.traits import Traits

@tool(toolset="own")
def own_writer() -> str:
    "Make a file."
    Path({made!r}).touch()
    return "made"

@tool(toolset="own", traits=Traits(read_only=True))
def own_reader() -> str:
    "Look."
    return "only looked"
"""


def _results(ear: Ear) -> list[str]:
    return [text_of(event.result.content) for event in ear.heard if isinstance(event, CallFinished)]


async def test_in_ask_an_edit_is_asked_about_with_the_diff_that_would_be_written(
    hosting: Hosting, starting: Starting, tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("one\n")
    with ServerThread(answering({"Go": [calls("write_file", **WRITE), says("Done.")]})) as server:
        async with hosting() as host:
            live = host.session(starting(server, work_mode="ask"))
            ear, stream = Ear(live, can_answer=True), live.events()
            await live.submit("Go")
            asked = (await stored_until(stream, QuestionAsked))[-1].event
            assert isinstance(asked, QuestionAsked)
            assert asked.question.kind == "edit"
            assert "+two" in asked.question.details["diff"]
            assert (tmp_path / "note.txt").read_text() == "one\n"
            live.answer(asked.question.id, "once", "me")
            await ear.turn_end()
            stream.close()
            assert live.work_mode == "ask"
    assert (tmp_path / "note.txt").read_text() == "one\ntwo\n"


async def test_yes_to_all_edits_leaves_ask(hosting: Hosting, starting: Starting, tmp_path: Path) -> None:
    twice = [calls("write_file", **WRITE), calls("write_file", path="more.txt", content="x"), says("Done.")]
    with ServerThread(twice) as server:  # the change of mode is told to the model beside a result
        async with hosting() as host:
            live = host.session(starting(server, work_mode="ask", has_titles=False))
            ear, stream = Ear(live, can_answer=True), live.events()
            await live.submit("Go")
            asked = (await stored_until(stream, QuestionAsked))[-1].event
            assert isinstance(asked, QuestionAsked)
            live.answer(asked.question.id, "session", "me")
            await ear.turn_end()
            stream.close()
            assert live.work_mode == "edits"
    assert sum(isinstance(event, QuestionAsked) for event in ear.heard) == 1
    assert [event.mode for event in ear.heard if isinstance(event, ModeChanged)] == ["edits"]
    assert (tmp_path / "more.txt").read_text() == "x"


async def test_in_ask_nobody_to_ask_is_a_no(hosting: Hosting, starting: Starting, tmp_path: Path) -> None:
    with ServerThread(answering({"Go": [calls("write_file", **WRITE), says("Done.")]})) as server:
        async with hosting() as host:
            live = host.session(starting(server, work_mode="ask"))
            ear = Ear(live)
            await live.submit("Go")
            await ear.turn_end()
    assert not (tmp_path / "note.txt").exists()
    assert "nobody is here" in _results(ear)[0]


async def test_a_file_that_changes_while_the_person_thinks_is_left_alone(
    hosting: Hosting, starting: Starting, tmp_path: Path
) -> None:
    file = tmp_path / "note.txt"
    with ServerThread(answering({"Go": [calls("write_file", **WRITE), says("Done.")]})) as server:
        async with hosting() as host:
            live = host.session(starting(server, work_mode="ask"))
            ear, stream = Ear(live, can_answer=True), live.events()
            await live.submit("Go")
            asked = (await stored_until(stream, QuestionAsked))[-1].event
            assert isinstance(asked, QuestionAsked)
            file.write_text("mine")
            live.answer(asked.question.id, "once", "me")
            await ear.turn_end()
            stream.close()
    assert file.read_text() == "mine"
    assert "changed while a person was asked" in _results(ear)[0]


async def test_plan_changes_nothing_and_go_leaves_it(hosting: Hosting, starting: Starting, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("words")
    planning = [
        calls("write_file", **WRITE),
        calls("terminal", command="rm kept.txt"),
        calls("terminal", command="sh -c 'echo x > kept.txt'"),
        calls("terminal", command='python3 -c \'open("kept.txt", "w")\''),
        calls("terminal", command="cat kept.txt"),
        says("A plan."),
    ]
    script = answering({"Look": planning, "go": [calls("write_file", **WRITE), says("Done.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear = Ear(live, can_answer=True)
            await run_command(live, "plan Look", SurfaceFacts())
            await ear.turn_end()
            results = _results(ear)
            assert (tmp_path / "kept.txt").read_text() == "words"
            assert not (tmp_path / "note.txt").exists()
            assert "Plan mode" in results[0]
            assert "Plan mode" in results[1]
            assert "words" in results[4]
            await live.submit("go")
            await ear.turn_end()
            assert live.work_mode == "edits"
            stored = [str(row["content"]) for row in live.db.get_messages(live.session_id)]
    assert (tmp_path / "note.txt").exists()
    assert not any(isinstance(event, QuestionAsked) for event in ear.heard)
    bodies = [request.json for request in server.requests if "tools" in request.json]
    first, last = bodies[0], bodies[-1]
    assert first["tools"] == last["tools"]
    assert first["messages"][0] == last["messages"][0]  # the system prompt
    told = [str(message["content"]) for message in last["messages"] if message["role"] == "user"]
    assert "Mode: plan" in told[0]
    assert "Plan mode is over" in told[-1]
    assert stored
    assert not any("Mode: plan" in text for text in stored)  # beside the transcript, never in it


async def test_plan_also_keeps_memory_skills_and_own_tools_as_they_are(
    hosting: Hosting, starting: Starting, tmp_path: Path
) -> None:
    skill = "---\nname: tidy\ndescription: Tidy up.\n---\nBody.\n"
    planning = [
        calls("memory", target="memory", action="add", content="The sea is salty."),
        calls("skill_manage", action="create", name="tidy", content=skill),
        calls("own_writer"),
        calls("own_reader"),
        says("A plan."),
    ]
    script = answering({"Look": planning, "go": [*planning[:1], says("Done.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            start = starting(server)
            home = start.settings.home
            (home / "tools").mkdir(parents=True, exist_ok=True)
            (home / "tools" / "own.py").write_text(OWN_TOOLS.format(made=str(tmp_path / "made")))
            live = host.session(start)
            ear = Ear(live, can_answer=True)
            await run_command(live, "plan Look", SurfaceFacts())
            await ear.turn_end()
            results = _results(ear)
            assert ["Plan mode" in result for result in results] == [True, True, True, False]
            assert "only looked" in results[3]
            assert not (tmp_path / "made").exists()
            assert not list(home.rglob("SKILL.md"))
            assert not any("salty" in file.read_text() for file in home.rglob("*.md"))
            await live.submit("go")
            await ear.turn_end()
    assert any("salty" in file.read_text() for file in home.rglob("*.md"))


async def test_children_plan_with_their_parent(hosting: Hosting, starting: Starting, tmp_path: Path) -> None:
    handing = [calls("delegate_task", goal="Write it down."), says("A plan.")]
    script = answering({"Study": handing, "Write it down": [calls("write_file", **WRITE), says("Tried.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear = Ear(live, can_answer=True)
            await run_command(live, "plan Study it", SurfaceFacts())
            await ear.turn_end()
    assert "Tried." in _results(ear)[-1]
    assert not (tmp_path / "note.txt").exists()


def test_there_are_three_modes_and_no_other() -> None:
    mode = WorkMode()
    assert next_mode(mode.name) == "ask"
    with pytest.raises(UserError, match="edits, ask, plan"):
        mode.change("free")
    mode.change("ask")
    mode.change("plan")
    heard = []
    for said in ("go on and on", "Go."):
        hear(mode, said)
        heard.append(mode.name)
    assert heard == ["plan", "ask"]


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("memory", {"action": "add", "target": "memory", "content": "They like plans."}),
        ("skill_manage", {"action": "create", "name": "plans", "content": "---\nname: plans\ndescription: d\n---\nx"}),
        ("cronjob", {"action": "pause", "job_id": "any"}),
    ],
)
async def test_in_plan_no_tool_changes_anything_by_itself(
    hosting: Hosting, starting: Starting, tool: str, args: dict[str, str]
) -> None:
    with ServerThread(answering({"Think": [calls(tool, **args), says("Done.")]})) as server:
        async with hosting() as host:
            live = host.session(starting(server, work_mode="plan"))
            ear = Ear(live, can_answer=True)
            await live.submit("Think")
            await ear.turn_end()
    assert "Plan mode" in _results(ear)[0]
