"""A live session: what is submitted runs once and in order, questions have one answer, and a stop stops."""

from pathlib import Path

import pytest

from hermes.errors import UserError
from hermes.host.command import SurfaceFacts, available, run_command
from hermes.host.events import MessageReturned, QuestionAnswered, QuestionAsked, TurnEnded, WorkChanged
from hermes.host.host_errors import NothingPending, kind_of_error
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from hermes.types import CallFinished, CallStarted
from tests.host.conftest import Ear, Hosting, Starting, stored_until
from tests.surfaces.cli.interactive.terminal import answering

DANGEROUS = "rm -rf gone"


async def test_messages_run_once_each_in_their_order(hosting: Hosting, starting: Starting) -> None:
    with ServerThread(answering({})) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear = Ear(live)
            first = await live.submit("one", key="a")
            again = await live.submit("one", key="a")
            await live.submit("two")
            assert first is not None
            assert again is not None
            assert again.id == first.id == "a"
            answers = [(await ear.turn_end()).answer, (await ear.turn_end()).answer]
            assert await live.submit("one", key="a") is not None  # its turn is over, and it is still known
    assert answers == ["I was asked: one", "I was asked: two"]
    assert sum(isinstance(event, TurnEnded) for event in ear.heard) == 2
    assert [event.is_busy for event in ear.heard if isinstance(event, WorkChanged)] == [True, False] * 2


async def test_a_session_that_is_opened_twice_is_one(hosting: Hosting, starting: Starting) -> None:
    with ServerThread(answering({})) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            assert host.session(starting(server), live.session_id) is live
            await live.close()
            assert host.sessions == {}


async def test_the_first_answer_wins_and_the_others_learn_of_it(hosting: Hosting, starting: Starting) -> None:
    script = answering({"Go": [calls("terminal", command=DANGEROUS), says("Done.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            one, other = Ear(live, can_answer=True), Ear(live)
            stream = live.events()
            await live.submit("Go")
            asked = (await stored_until(stream, QuestionAsked))[-1].event
            assert isinstance(asked, QuestionAsked)
            assert asked.question.kind == "approval"
            assert asked.question.details["command"] == DANGEROUS
            assert "once" in asked.question.choices
            assert asked.question.deadline > 0
            live.answer(asked.question.id, "deny", "one")
            with pytest.raises(NothingPending) as refused:
                live.answer(asked.question.id, "once", "other")
            assert kind_of_error(refused.value) == "nothing_pending"
            await one.turn_end()
            stream.close()
    (told,) = [event for event in other.heard if isinstance(event, QuestionAnswered)]
    assert (told.answer, told.by) == ("deny", "one")


async def test_nobody_who_could_answer_is_a_no_at_once(hosting: Hosting, starting: Starting) -> None:
    script = answering({"Go": [calls("terminal", command=DANGEROUS), says("Done.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear = Ear(live)
            await live.submit("Go")
            await ear.turn_end()
    assert not [event for event in ear.heard if isinstance(event, QuestionAsked)]
    (ended,) = [event for event in ear.heard if isinstance(event, CallFinished)]
    assert ended.result.status != "ok"


async def test_a_question_waits_for_who_comes_later_until_its_deadline(hosting: Hosting, starting: Starting) -> None:
    script = answering({"Go": [calls("terminal", command=DANGEROUS), says("Done.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            start = starting(server, is_reached_later=True, flags={"approvals__gateway_timeout": 0.2})
            live = host.session(start)
            stream = live.events()
            await live.submit("Go")
            heard = await stored_until(stream, TurnEnded)
            stream.close()
    told = [item.event for item in heard if isinstance(item.event, QuestionAnswered)]
    assert [(one.answer, one.by) for one in told] == [("deny", "deadline")]


async def test_an_interrupt_stops_the_turn_and_holds_the_line(
    hosting: Hosting, starting: Starting, tmp_path: Path
) -> None:
    script = answering({"Sleep": [calls("terminal", command="touch began; sleep 60"), says("Slept.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear = Ear(live)
            await live.submit("Sleep")
            await ear.hears(CallStarted)
            await live.submit("after")
            assert live.interrupt()
            ended = await ear.turn_end()
            assert (ended.verdict, ended.held) == ("cancelled", 1)
            assert not live.interrupt()
            live.release()
            assert (await ear.turn_end()).answer == "I was asked: after"
    begun = [event.call.id for event in ear.heard if isinstance(event, CallStarted)]
    assert begun == [event.call.id for event in ear.heard if isinstance(event, CallFinished)]


async def test_words_that_could_not_be_sent_wait_again_and_say_why(hosting: Hosting, starting: Starting) -> None:
    with ServerThread(answering({})) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear = Ear(live)
            await live.submit("see @file:gone.txt")
            await ear.hears(MessageReturned)
            assert [one.text for one in live.queue.open_ones] == ["see @file:gone.txt"]
            assert live.is_held
    assert server.requests == []


async def test_commands_answer_without_a_terminal(hosting: Hosting, starting: Starting) -> None:
    program = SurfaceFacts()
    with ServerThread(answering({})) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear = Ear(live)
            await live.submit("Hello")
            await ear.turn_end()
            undone = await run_command(live, "undo", program)
            assert (undone.offer, undone.data) == ("Hello", {"removed": 2})
            told = await run_command(live, "config get display.busy_input_mode", program)
            assert told.screen.strip() == "queue"
            branched = await run_command(live, "title Mine", program)
            assert branched.data == {"title": "Mine"}
            left = await run_command(live, "new", program)
            assert left.goes_to is not None
            with pytest.raises(UserError, match="makes no sense here"):
                await run_command(live, "copy", program)
            helped = await run_command(live, "help", program)
            assert "/copy" not in helped.data["commands"]
            assert "/model" in helped.data["commands"]
            assert "copy" in available("terminal")


async def test_another_folder_and_another_model_act_from_the_next_message_on(
    hosting: Hosting, starting: Starting, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    script = answering({"Where": [calls("terminal", command="pwd"), says("There.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            ear = Ear(live)
            await live.submit("Hello")
            await ear.turn_end()
            await live.reconfigure(cwd="sub", model__default="another")
            with pytest.raises(UserError, match="there is no folder"):
                await live.reconfigure(cwd="gone")
            await live.submit("Where")
            await ear.turn_end()
            assert live.cwd == str(tmp_path / "sub")
            assert live.figures.model == "another"
    (ended,) = [event for event in ear.heard if isinstance(event, CallFinished)]
    assert str(tmp_path / "sub") in str(ended.result.content)
    models = [request.json["model"] for request in server.requests if "Give a title" not in str(request.json)]
    assert models == ["scripted", "another", "another"]


async def test_who_comes_while_something_is_asked_is_asked_first(hosting: Hosting, starting: Starting) -> None:
    script = answering({"Go": [calls("terminal", command=DANGEROUS), says("Done.")]})
    with ServerThread(script) as server:
        async with hosting() as host:
            live = host.session(starting(server, is_reached_later=True))
            first = Ear(live)
            await live.submit("Go")
            await first.hears(QuestionAsked)
            late = Ear(live, can_answer=True)
            (asked,) = [event for event in late.heard if isinstance(event, QuestionAsked)]
            late.heard.clear()
            live.answer(None, "deny", "late")  # without an id: the oldest
            await late.turn_end()
            with pytest.raises(NothingPending):
                live.answer(None, "once", "late")
    assert asked.question.details["command"] == DANGEROUS
