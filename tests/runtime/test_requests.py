"""The request builder: total over any history, valid for every provider, stable at the front."""

import json
import os
import re
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.runtime.requests import CONTINUES, EMPTY, NO_ANSWER, OUTCOME_UNKNOWN, UnitBuilder, build_units, sendable
from hermes.seams import Unit
from hermes.types import Content, ImagePart, Message, OpaquePart, Part, TextPart, ToolCall, text_of

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
ids = st.sampled_from(["a", "b", "c", "", "x y", "a"])
texts = st.one_of(
    st.none(), st.sampled_from(["", " ", "hello", "\ud800 lone", "nul\x00", "日本語"]), st.text(max_size=5)
)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, text=st.sampled_from(["", "  ", "words", "\udfff"])),
    st.builds(ImagePart, url=st.sampled_from(["data:image/png;base64,AAAA", "https://127.0.0.1/x.png"])),
    st.builds(OpaquePart, raw=st.fixed_dictionaries({"type": st.just("audio"), "note": st.just("\ud83d")})),
)
contents: st.SearchStrategy[Content | None] = st.one_of(texts, st.lists(parts, max_size=3).map(tuple))
calls = st.builds(
    ToolCall,
    id=ids,
    name=st.sampled_from(["read_file", "", "bad name!", "x" * 99]),
    arguments=st.sampled_from(["{}", '{"a": 1}', '{"a": ', "[]", "", "null", '"\ud800"', "{" * 3000]),
)
messages = st.one_of(
    st.builds(Message, role=st.just("user"), content=contents),
    st.builds(Message, role=st.just("system"), content=contents),
    st.builds(
        Message,
        role=st.just("assistant"),
        content=contents,
        tool_calls=st.lists(calls, max_size=3).map(tuple),
        reasoning=st.one_of(st.none(), st.just("\ud800")),
        reasoning_details=st.one_of(st.none(), st.just([{"text": "\x00"}])),
    ),
    st.builds(Message, role=st.just("tool"), content=contents, tool_call_id=ids, tool_name=st.just("read_file")),
)
logs = st.lists(messages, max_size=12)


def user(text: str, row: int | None = None) -> Message:
    return Message(role="user", content=text, id=row)


def asks(*names: str) -> Message:
    return Message(role="assistant", tool_calls=tuple(ToolCall(f"id_{name}", name) for name in names))


def result(name: str, text: str, row: int | None = None) -> Message:
    return Message(role="tool", content=text, tool_call_id=f"id_{name}", tool_name=name, id=row)


def check_valid(units: Sequence[Unit]) -> None:
    """What all four providers ask of a conversation."""
    open_calls: list[str] = []
    seen: set[str] = set()
    previous = "assistant"
    for unit in units:
        role = unit.messages[0].role
        side = "assistant" if role == "assistant" else "user"
        assert side != previous, "sides must alternate"
        previous = side
        if role == "tool":
            assert [message.tool_call_id for message in unit.messages] == open_calls
            open_calls = []
        else:
            assert len(unit.messages) == 1
            assert not open_calls, "a call without its result"
        for message in unit.messages:
            check_message(message, seen)
            open_calls += [call.id for call in message.tool_calls]
    assert not open_calls


def check_message(message: Message, seen: set[str]) -> None:
    content = message.content
    if content is None:
        assert message.tool_calls
    elif isinstance(content, str):
        assert content.strip()
        content.encode()
    else:
        assert content
        assert all(part.text.strip() for part in content if isinstance(part, TextPart))
    for call in message.tool_calls:
        assert call.id not in seen
        seen.add(call.id)
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call.name)
        assert isinstance(json.loads(call.arguments), dict)


@settings(max_examples=20_000 if FULL else 2_000, deadline=None)
@given(logs)
def test_any_log_gives_a_valid_conversation(log: list[Message]) -> None:
    units = build_units(log)
    check_valid(units)
    ready = sendable(units)
    check_valid(ready)
    assert ready[-1].messages[0].role != "assistant"


@settings(max_examples=10_000 if FULL else 1_000, deadline=None)
@given(logs, st.integers(0, 12))
def test_what_was_sent_stays_a_prefix(log: list[Message], cut: int) -> None:
    """A request is sent when no more results are to come: whatever follows, it is never sent differently."""
    while cut < len(log) and log[cut].role == "tool":
        cut += 1
    before = [(unit.messages, unit.context) for unit in build_units(log[:cut])]
    after = [(unit.messages, unit.context) for unit in build_units(log)]
    assert after[: len(before)] == before


@settings(max_examples=1_000 if FULL else 100, deadline=None)
@given(logs)
def test_building_as_messages_arrive_is_building_at_once(log: list[Message]) -> None:
    builder = UnitBuilder()
    for message in log:
        builder.add(message)
    at_once = build_units(log)
    assert [unit.messages for unit in builder.finish()] == [unit.messages for unit in at_once]


def test_a_dangling_call_is_answered_as_unknown() -> None:
    units = build_units([user("go"), asks("one", "two"), result("two", "done"), user("and?")])
    answers = units[2].messages
    assert [(m.tool_name, text_of(m.content), m.status) for m in answers] == [
        ("one", OUTCOME_UNKNOWN, "unknown"),
        ("two", "done", None),
    ]
    assert text_of(units[3].messages[0].content) == NO_ANSWER


def test_results_come_back_in_call_order_and_once() -> None:
    units = build_units(
        [user("go"), asks("one", "two"), result("two", "2"), result("one", "1"), result("two", "again")]
    )
    assert [text_of(m.content) for m in units[2].messages] == ["1", "2"]


def test_a_late_result_becomes_a_note_and_moves_nothing_before_it() -> None:
    log = [user("go"), asks("one"), user("hello?"), result("one", "finally")]
    units = build_units(log)
    assert [text_of(m.content) for m in units[2].messages] == [OUTCOME_UNKNOWN]
    assert text_of(units[-1].messages[0].content) == "(late result of one) finally"
    check_valid(units)


def test_context_is_replayed_with_its_message_and_attached_to_the_newest() -> None:
    units = build_units([user("go", 1), asks("one"), result("one", "1", 3)], {1: "memory", 3: "hint"})
    assert [unit.context for unit in units] == ["memory", "", "hint"]

    builder = UnitBuilder()
    builder.add(user("go", 1), "memory")
    builder.add(asks("one"))
    builder.add(result("one", "1", 3))
    builder.attach("hint")
    assert [unit.context for unit in builder.finish()] == ["memory", "", "hint"]


def test_empty_history_can_still_be_sent() -> None:
    assert [text_of(unit.messages[0].content) for unit in sendable(build_units([]))] == [CONTINUES]
    assert text_of(build_units([user("  ")])[0].messages[0].content) == EMPTY
