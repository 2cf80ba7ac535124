"""Whatever a store holds, every transport makes a request of it that its provider takes, and never moves the front."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hermes.runtime.requests import build_units, sendable
from hermes.seams import ModelRequest
from hermes.types import ImagePart, Message, ToolCall
from tests.models.histories import logs, words
from tests.models.wire_cases import CASES, LIST, READ, WireCase, every_wire

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
counted = settings(
    max_examples=5000 if FULL else 60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def as_request(log: list[Message], contexts: dict[int, str] | None = None, *, tools: bool = True) -> ModelRequest:
    numbered = [replace(message, id=place) for place, message in enumerate(log)]
    units = tuple(sendable(build_units(numbered, contexts)))
    return ModelRequest(system="You help.", tools=(LIST, READ) if tools else (), units=units)


@every_wire
@counted
@given(log=logs, context=words, tools=st.booleans(), marks=st.booleans())
def test_any_log_gives_a_request_the_provider_takes(
    case: WireCase, log: list[Message], context: str, tools: bool, marks: bool
) -> None:
    model = case.offline(cache_markers=marks, replay_reasoning=True, replay_details=True)
    case.check(model.body(as_request(log, {len(log) - 1: context}, tools=tools)))


@every_wire
@pytest.mark.parametrize("megabytes", [3, 6, 30])
def test_a_picture_of_any_size_gives_a_request_the_provider_takes(case: WireCase, megabytes: int) -> None:
    url = f"data:image/png;base64,{'A' * (megabytes * 1024 * 1024)}"
    for role in ("user", "tool"):
        call = Message(role="assistant", tool_calls=(ToolCall("a", "read"),))
        shown = Message(role=role, content=(ImagePart(url),), tool_call_id="a")
        body = case.offline().body(as_request([Message(role="user", content="look"), call, shown]))
        assert len(body) < 22 * 1024 * 1024
        assert ("MB are more than" in str(case.check(body))) == (len(body) < 1024 * 1024)


@given(logs)
@settings(counted, max_examples=20)
def test_transports_do_not_touch_each_others_memo(log: list[Message]) -> None:
    whole = as_request(log)
    apart = [case.offline().body(as_request(log)) for case in CASES]
    assert [case.offline().body(whole) for case in CASES] == apart
