"""A history in memory: results in the order of their calls, however they arrive, and at a price that does not climb."""

import random
import time
from collections.abc import Callable

from hermes.ops import OpenCall, SessionRecord
from hermes.runtime.requests import sendable
from hermes.runtime.session.history import History, from_record
from hermes.types import Message, ToolCall, text_of


def asking(count: int) -> Message:
    return Message(role="assistant", tool_calls=tuple(ToolCall(f"c{n}", "read_file", "{}") for n in range(count)))


def result(call_id: str) -> Message:
    return Message(role="tool", content=f"of {call_id}", tool_call_id=call_id, tool_name="read_file")


def test_results_are_shown_and_sent_in_the_order_of_their_calls() -> None:
    history, order = History(), [f"c{n}" for n in range(40)]
    random.Random(7).shuffle(order)
    history.add(Message(role="user", content="go"))
    history.add(asking(40))
    for call_id in [*order[:20], "stranger", *order[20:]]:
        history.add(result(call_id))
    shown = [one["tool_call_id"] for one in history.dicts[2:]]
    before, after = shown[: shown.index("stranger")], shown[shown.index("stranger") + 1 :]
    assert before == sorted(order[:20], key=lambda one: int(one[1:]))
    assert after == sorted(order[20:], key=lambda one: int(one[1:]))
    sent = [message.tool_call_id for message in history.builder.finish()[2].messages]
    assert sent == [f"c{n}" for n in range(40)]


def _cost(count: int, work: Callable[[int], object]) -> float:
    """Processor time, the least of three."""
    spent = []
    for _ in range(3):
        started = time.process_time()
        work(count)
        spent.append(time.process_time() - started)
    return min(spent)


def _backwards(count: int) -> None:
    history = History()
    history.add(Message(role="user", content="go"))
    history.add(asking(count))
    for number in range(count - 1, -1, -1):
        history.add(result(f"c{number}"))
    sendable(history.builder.finish())


def _same_id(count: int) -> None:
    calls = tuple(ToolCall(chr(0x4E00 + number), "read_file", "{}") for number in range(count))
    history = History()
    history.add(Message(role="user", content="go"))
    history.add(Message(role="assistant", tool_calls=calls))


def _crashed(count: int) -> None:
    calls = asking(count).tool_calls
    record = SessionRecord(
        session_id="s", source="cli", model=None, system_prompt=None, tool_definitions=None, cwd=None, ended=False,
        messages=(Message(role="user", content="go"), asking(count)), contexts={},
        open_calls=tuple(OpenCall(call, 1.0) for call in calls),
    )  # fmt: skip
    from_record(record)


def test_eight_times_the_calls_do_not_cost_the_square_of_it() -> None:
    for work in (_backwards, _same_id, _crashed):
        assert _cost(8_000, work) < 30 * _cost(1_000, work), work.__name__  # the square would be sixty-four times


def test_calls_that_a_call_had_begun_are_told_with_it() -> None:
    outer = ToolCall("a", "execute_code", "{}")
    inner = [ToolCall(name, "terminal", '{"command": "make"}') for name in ("a/1", "a/2", "ab/1")]
    record = SessionRecord(
        session_id="s", source="cli", model=None, system_prompt=None, tool_definitions=None, cwd=None, ended=False,
        messages=(Message(role="user", content="go"), Message(role="assistant", tool_calls=(outer,))), contexts={},
        open_calls=tuple(OpenCall(call, 1.0) for call in (outer, *inner)),
    )  # fmt: skip
    history, _ = from_record(record)
    told = text_of(history.builder.finish()[-1].messages[0].content)
    assert told.count('terminal({"command": "make"})') == 2
