"""Messages that wait: in order, none lost, also when the process is killed; they can be seen and changed."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import UserError
from hermes.host.message_queue import MessageQueue
from hermes.state import SessionDB
from hermes.state.message_line import QueuedMessage
from hermes.testing.replies import calls, says
from hermes.testing.server import RecordedRequest, ServerThread
from hermes.types import ImagePart, TextPart
from tests.surfaces.cli.interactive.conftest import Start
from tests.surfaces.cli.interactive.terminal import CTRL_D, ENTER, ESC, UP, answering

SLOW = says("I talk. " * 2_000).timed(chunk_size=8, chunk_delay_s=0.02)


def line(db: SessionDB, session: str = "s") -> MessageQueue:
    return MessageQueue(db, session, lambda text: text.replace("hunter2", "[hidden]"))


async def test_what_waits_is_there_in_order_after_a_restart(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        first = line(db)
        for number in range(50):
            await first.add(f"message {number}")
        await first.drop(first.line[7])
        await first.edit(first.line[0], "message zero")
    with SessionDB(tmp_path / "state.db") as db:
        again = line(db)
        await again.open()
        left = [f"message {number}" for number in range(1, 50) if number != 7]
        assert [one.text for one in again.line] == ["message zero", *left]
        other = line(db, "another")
        assert await other.open() == 0


async def test_one_that_had_reached_the_session_is_not_sent_again(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "before")
        waiting = line(db)
        await waiting.add("reached")
        await waiting.take(waiting.line[0])
        db.append_message("s", "user", "reached")
        await waiting.add("next")
        again = line(db)
        await again.open()
        assert [one.text for one in again.line] == ["next"]


async def test_one_that_had_not_reached_the_session_is_still_first(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "before")
        waiting = line(db)
        await waiting.add("lost on the way")
        await waiting.add("next")
        await waiting.take(waiting.line[0])
        again = line(db)
        await again.open()
        assert [one.text for one in again.open_ones] == ["lost on the way", "next"]


async def test_one_that_another_terminal_sends_is_not_sent_twice(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db, SessionDB(tmp_path / "state.db") as other_db:
        mine = line(db)
        for text in ("first", "second", "third"):
            await mine.add(text)
        other = line(other_db)
        await other.open()
        first, second, third = other.line
        assert await mine.take(mine.line[0])
        assert not await other.take(first)
        await mine.drop(mine.line[1])
        with pytest.raises(UserError, match="Another Hermes has sent or removed this message"):
            await other.edit(second, "changed")
        assert other.line == (third,)
        assert await other.take(third)
        await other.done(third)
        assert [one.text for one in mine.open_ones] == ["third"]
        assert not await mine.take(mine.open_ones[0])
        assert mine.open_ones == ()


async def test_what_another_surface_put_together_keeps_its_pictures(tmp_path: Path) -> None:
    parts = (TextPart("look at"), ImagePart("https://example.org/a.png"), TextPart("this"))
    with SessionDB(tmp_path / "state.db") as db:
        db.store.message_line.add("s", QueuedMessage(key="k", content=parts, who="web:ann"))
        waiting = line(db)
        await waiting.open()
        assert [(one.content, one.text) for one in waiting.line] == [(parts, "look at\nthis")]


async def test_a_secret_is_not_on_disk(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        waiting = line(db)
        await waiting.add("the password is hunter2")
        assert waiting.line[0].text == "the password is hunter2"
        again = line(db)
        await again.open()
        assert again.line[0].text == "the password is [hidden]"


def test_a_killed_process_loses_nothing_that_waited(start: Start) -> None:
    asked: list[str] = []
    reply = answering({"Talk": [SLOW]})

    def script(request: RecordedRequest) -> Any:
        body: Any = request.json
        asked.append(str(body["messages"][-1]["content"]))
        return reply(request)

    with ServerThread(script) as server:
        with start(server) as screen:
            screen.wait_for("Ask something")
            screen.type(f"Talk.{ENTER}")
            screen.wait_for("I talk.")
            screen.type(f"first{ENTER}second{ENTER}")
            screen.wait_for("waiting 2: second")
            os.kill(screen.process.pid, signal.SIGKILL)
            screen.ended()
        with start(server, "--continue") as screen:
            screen.wait_for("2 waiting from before", "waiting 1: first", "waiting 2: second")
            screen.type(ENTER)
            screen.wait_for("I was asked: first", "I was asked: second")
            screen.type(CTRL_D)
            assert screen.ended() == 0
    assert [text for text in asked if text in ("Talk.", "first", "second")] == ["Talk.", "first", "second"]


def test_two_terminals_with_one_line_send_each_message_once(start: Start) -> None:
    with ServerThread(answering({"Talk": [SLOW]})) as server:
        with start(server) as screen:
            screen.wait_for("Ask something")
            screen.type(f"Talk.{ENTER}")
            screen.wait_for("I talk.")
            screen.type(f"only once{ENTER}")
            screen.wait_for("waiting 1: only once")
            os.kill(screen.process.pid, signal.SIGKILL)
            screen.ended()
        with start(server, "--continue") as first, start(server, "--continue") as second:
            for screen in (first, second):
                screen.wait_for("1 waiting from before", "waiting 1: only once")
            first.type(ENTER)
            first.wait_for("I was asked: only once")
            second.type(ENTER)
            second.wait_for("Another Hermes has sent or removed this message.")
    bodies: Any = [request.json for request in server.requests if request.method == "POST"]
    assert [body["messages"][-1]["content"] for body in bodies].count("only once") == 1


def test_what_waits_can_be_changed_and_removed(start: Start) -> None:
    with ServerThread(answering({"Talk": [SLOW]})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"Talk.{ENTER}")
        screen.wait_for("I talk.")
        screen.type(f"one{ENTER}two{ENTER}three{ENTER}")
        screen.wait_for("waiting 3: three")
        screen.type(f"/queue remove 1{ENTER}")
        screen.wait_for("waiting 1: two")
        screen.type(UP)
        screen.wait_for("> three")
        screen.type(f" and a half{ENTER}")
        screen.wait_for("waiting 2: three and a half")
        screen.type(f"/queue edit 1 two again{ENTER}")
        screen.wait_for("waiting 1: two again")
        screen.type(ESC)
        screen.wait_for("Stopped.", "2 waiting: Enter sends them")
        screen.type(ENTER)
        screen.wait_for("I was asked: two again", "I was asked: three and a half")


def test_steering_reaches_the_model_after_its_calls(start: Start) -> None:
    script = answering({"Work": [calls("terminal", command="read -t 20 _ < go; true"), says("Understood.")]})
    with ServerThread(script) as server, start(server) as screen:
        project = Path(os.readlink(f"/proc/{screen.process.pid}/cwd"))
        os.mkfifo(project / "go")
        screen.wait_for("Ask something")
        screen.type(f"Work.{ENTER}")
        screen.wait_for("● terminal")
        screen.type(f"/steer in French, please{ENTER}")
        screen.wait_for("steering: in French, please")
        with (project / "go").open("w") as line_:
            line_.write("\n")
        screen.wait_for("Understood.")
    bodies: Any = [request.json for request in server.requests if request.method == "POST"]
    assert any("in French, please" in str(body["messages"]) for body in bodies)


def test_a_message_may_interrupt_when_that_is_chosen(start: Start) -> None:
    with ServerThread(answering({"Talk": [SLOW]})) as server, start(server) as screen:
        screen.wait_for("Ask something")
        screen.type(f"/busy interrupt{ENTER}")
        screen.wait_for("stops it and is next")
        screen.type(f"Talk.{ENTER}")
        screen.wait_for("I talk.")
        screen.type(f"No, this{ENTER}")
        screen.wait_for("I was asked: No, this")


async def test_what_waits_goes_along_when_the_session_goes_on_under_another_id(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
        running, left = line(db), line(db)
        await running.add("one")
        await running.move_to("t")
        await running.add("two")
        assert [one.text for one in running.open_ones] == ["one", "two"]
        await left.add("left by a crash between the two")
        db.end_session("s", "compression")
        db.create_session("t", "cli", parent_session_id="s")
    with SessionDB(tmp_path / "state.db") as db:
        again = line(db, "t")
        assert await again.open() == 3
        assert [one.text for one in again.open_ones] == ["left by a crash between the two", "one", "two"]
        assert await line(db).open() == 3  # whoever still has the old id sees the same line
