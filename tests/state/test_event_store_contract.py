"""What every `EventStore` owes the kernel."""

import asyncio
from typing import Any

import pytest

from hermes.errors import LeaseLost, SessionInUse, SessionMoved, StoreError
from hermes.ops import (
    ApprovalRecorded,
    AttemptClosed,
    AttemptOpened,
    CallBegun,
    CallClosed,
    CallJournalled,
    ContextAttached,
    LeaseHeld,
    LeaseReleased,
    LeaseTaken,
    MessageAppended,
    SessionChanged,
    SessionContinued,
    SessionCreated,
)
from hermes.seams import EventStore
from hermes.types import ImagePart, Message, OpaquePart, TextPart, ToolCall, Usage

PIXELS = "data:image/png;base64," + "iVBORw0KGgoA" * 400
CALL = ToolCall("c1", "read_file", '{"path": "a"}')


async def begin(store: EventStore, session_id: str = "s") -> None:
    await store.commit(SessionCreated(session_id=session_id, source="cli"))


async def messages_of(store: EventStore, session_id: str = "s") -> tuple[Message, ...]:
    record = await store.load(session_id)
    assert record is not None
    return record.messages


def bare(message: Message) -> dict[str, Any]:
    """A message without what the store adds."""
    return {name: getattr(message, name) for name in message.__struct_fields__ if name not in ("id", "timestamp")}


ODD_MESSAGES = [
    Message(role="user", content="plain"),
    Message(role="user", content=""),
    Message(role="user", content=None),
    Message(role="user", content="\0json:[1]"),
    Message(role="user", content="\0blob:" + "0" * 64),
    Message(role="user", content="\0text:x"),
    Message(role="user", content="a\0b"),
    Message(role="tool", content="lone \ud800 and \udfff", tool_call_id="c\udc00", tool_name="t\ud801"),
    Message(role="tool", content="x" * 200_000, tool_call_id="c1", status="failed"),
    Message(role="tool", content="\ud800" * 50_000, tool_call_id="c1"),
    Message(role="user", content=()),
    Message(role="user", content=(TextPart("look"), ImagePart(PIXELS, detail="high"), TextPart("\ud800\0"))),
    Message(
        role="user", content=(ImagePart("https://example.org/a.png"), OpaquePart({"type": "audio", "n": [1, None]}))
    ),
    Message(role="user", content=(TextPart("\0text:odd"), TextPart("\0blob:odd"))),
    Message(role="user", content=(ImagePart("data:image/png;base64,not base64 " + "x" * 5000),)),
    Message(role="user", content=tuple(TextPart("y" * 3000) for _ in range(20))),
    Message(role="assistant", content="t", tool_calls=(ToolCall("a", "b", "not json \ud800", {"k": {"n": 1}}),)),
    Message(
        role="assistant",
        content=None,
        finish_reason="stop",
        reasoning="r\ud800",
        reasoning_content="rc",
        reasoning_details=[{"type": "x", "sig": "y"}],
        codex_reasoning_items=[{"a": 1}],
        codex_message_items={"b": [2]},
        platform_message_id="p1",
        token_count=7,
    ),
]


@pytest.mark.parametrize("message", ODD_MESSAGES, ids=range(len(ODD_MESSAGES)))
async def test_a_message_comes_back_as_it_went_in(store: EventStore, message: Message) -> None:
    await begin(store)

    (row,) = await store.commit(MessageAppended("s", message))

    (found,) = await messages_of(store)
    assert bare(found) == bare(message)
    assert found.id == row
    assert found.timestamp is not None


async def test_a_given_timestamp_is_kept(store: EventStore) -> None:
    await begin(store)
    await store.commit(MessageAppended("s", Message(role="user", content="x", timestamp=1234.5)))
    assert [message.timestamp for message in await messages_of(store)] == [1234.5]


async def test_ids_grow_in_the_order_of_commits(store: EventStore) -> None:
    await begin(store)
    ids = [(await store.commit(MessageAppended("s", Message(role="user", content=str(n)))))[0] for n in range(20)]
    assert ids == sorted(set(ids))
    assert [message.content for message in await messages_of(store)] == [str(n) for n in range(20)]


async def test_a_commit_that_fails_leaves_nothing(store: EventStore) -> None:
    await begin(store)
    with pytest.raises(StoreError, match="no session 'gone'"):
        await store.commit(
            MessageAppended("s", Message(role="user", content="lost")),
            MessageAppended("gone", Message(role="user", content="lost")),
        )
    assert await messages_of(store) == ()


async def test_one_bad_commit_does_not_harm_its_neighbours(store: EventStore) -> None:
    await begin(store)

    async def add(number: int) -> object:
        session = "gone" if number % 5 == 0 else "s"
        try:
            return await store.commit(MessageAppended(session, Message(role="user", content=str(number))))
        except StoreError as error:
            return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(add(number)) for number in range(50)]
    failed = [number for number, task in enumerate(tasks) if isinstance(task.result(), StoreError)]
    assert failed == list(range(0, 50, 5))
    assert sorted(int(str(m.content)) for m in await messages_of(store)) == [n for n in range(50) if n % 5]


async def test_creating_a_session_twice_keeps_the_first(store: EventStore) -> None:
    await store.commit(SessionCreated(session_id="s", source="cli", model="m", system_prompt="p" * 5000, cwd="/w"))
    await store.commit(SessionCreated(session_id="s", source="tui", model="other"))
    record = await store.load("s")
    assert record is not None
    assert (record.source, record.model, record.system_prompt, record.cwd) == ("cli", "m", "p" * 5000, "/w")
    assert await store.load("none") is None


async def test_session_columns_change_and_unknown_ones_are_refused(store: EventStore) -> None:
    await begin(store)
    await store.commit(SessionChanged("s", {"title": "T", "tool_definitions": "[" + " " * 999 + "]", "ended_at": 1.0}))
    record = await store.load("s")
    assert record is not None
    assert (record.title, record.tool_definitions, record.ended) == ("T", "[" + " " * 999 + "]", True)
    with pytest.raises(StoreError, match="no column 'nonsense'"):
        await store.commit(SessionChanged("s", {"nonsense": 1}))
    with pytest.raises(StoreError, match="no session 'gone'"):
        await store.commit(SessionChanged("gone", {"model": "m"}))


async def test_a_title_belongs_to_one_session(store: EventStore) -> None:
    await begin(store)
    await begin(store, "t")
    await store.commit(SessionChanged("s", {"title": "T"}))
    with pytest.raises(ValueError, match="'T' is taken"):
        await store.commit(SessionChanged("t", {"title": "T"}))


async def test_context_stays_beside_the_newest_message(store: EventStore) -> None:
    await begin(store)
    with pytest.raises(StoreError, match="no message"):
        await store.commit(ContextAttached("s", "early"))
    first, _ = await store.commit(MessageAppended("s", Message(role="user", content="a")), ContextAttached("s", "one"))
    await store.commit(ContextAttached("s", "two"))
    second, _ = await store.commit(
        MessageAppended("s", Message(role="user", content="b")), ContextAttached("s", "x\ud800")
    )
    record = await store.load("s")
    assert record is not None
    assert record.contexts == {first: "one\n\ntwo", second: "x\ud800"}
    assert [message.content for message in record.messages] == ["a", "b"]


async def test_a_started_call_stays_open_until_it_is_closed(store: EventStore) -> None:
    await begin(store)
    inner = ToolCall("c2", "nested", '{"x": "\ud800"}', {"extra": 1})
    await store.commit(
        MessageAppended("s", Message(role="assistant", tool_calls=(CALL,))),
        CallJournalled("s", CALL),
        CallJournalled("s", inner),
    )
    record = await store.load("s")
    assert record is not None
    assert [run.call for run in record.open_calls] == [CALL, inner]

    await store.commit(CallClosed("s", "c1", "ok", 3.0))
    record = await store.load("s")
    assert record is not None
    assert [run.call for run in record.open_calls] == [inner]


async def test_a_call_that_waits_is_not_started_until_that_is_told(store: EventStore) -> None:
    await begin(store)
    waits = ToolCall("c2", "todo", "{}")
    await store.commit(
        MessageAppended("s", Message(role="assistant", tool_calls=(CALL, waits))),
        CallJournalled("s", CALL),
        CallJournalled("s", waits, is_started=False),
    )
    record = await store.load("s")
    assert record is not None
    assert [(run.call.id, run.is_started) for run in record.open_calls] == [("c1", True), ("c2", False)]

    await store.commit(CallClosed("s", "c1", "ok"), CallBegun("s", "c2"))
    record = await store.load("s")
    assert record is not None
    assert [(run.call, run.is_started) for run in record.open_calls] == [(waits, True)]


# -- one owner at a time ---------------------------------------------------------------------------------------------


async def test_a_session_has_one_owner_until_it_is_given_back(store: EventStore) -> None:
    await store.commit(SessionCreated(session_id="s", source="cli"), LeaseTaken(session_id="s", fence=1))
    record = await store.load("s")
    assert record is not None
    assert record.lease is not None
    assert record.lease.fence == 1
    with pytest.raises(SessionInUse, match="session 's' is in use by another agent of this process"):
        await store.commit(
            LeaseTaken(session_id="s", fence=2), MessageAppended("s", Message(role="user", content="lost"))
        )
    assert await messages_of(store) == ()

    await store.commit(LeaseHeld("s", 1), MessageAppended("s", Message(role="user", content="kept")))
    await store.commit(LeaseHeld("s", 1, renews=True))
    await store.commit(LeaseReleased("s", 1))
    await store.commit(LeaseTaken(session_id="s", fence=2, message_count=1))
    for late in (LeaseHeld("s", 1), LeaseHeld("s", 1, renews=True), LeaseReleased("s", 1)):
        with pytest.raises(LeaseLost):
            await store.commit(MessageAppended("s", Message(role="user", content="late")), late)
    assert [message.content for message in await messages_of(store)] == ["kept"]


async def test_an_owner_replaces_its_own_lease(store: EventStore) -> None:
    await begin(store)
    await store.commit(LeaseTaken(session_id="s", fence=1))
    await store.commit(LeaseTaken(session_id="s", fence=2, replaces=1))
    with pytest.raises(LeaseLost):
        await store.commit(LeaseHeld("s", 1))
    await store.commit(LeaseReleased("s", 2))


async def test_a_session_is_taken_as_it_was_read_or_not_at_all(store: EventStore) -> None:
    await begin(store)
    row = await said(store, "s", "one")
    with pytest.raises(SessionMoved):
        await store.commit(LeaseTaken(session_id="s", fence=1, message_count=0))
    await store.commit(goes_on("s", "t", row))
    with pytest.raises(SessionMoved):
        await store.commit(LeaseTaken(session_id="s", fence=1, message_count=1))
    with pytest.raises(StoreError):
        await store.commit(LeaseTaken(session_id="nowhere", fence=1))
    await store.commit(LeaseTaken(session_id="t", fence=1))


async def test_the_lease_goes_on_with_the_session_of_its_owner_and_of_nobody_else(store: EventStore) -> None:
    await begin(store)
    row = await said(store, "s", "one")
    await store.commit(LeaseTaken(session_id="s", fence=1, message_count=1))
    await store.commit(LeaseHeld("s", 1), goes_on("s", "t", row))
    await store.commit(LeaseHeld("s", 1))
    with pytest.raises(SessionInUse):
        await store.commit(LeaseTaken(session_id="t", fence=2))

    await store.commit(goes_on("t", "u", 0))
    with pytest.raises(LeaseLost):
        await store.commit(LeaseHeld("t", 1))
    await store.commit(LeaseTaken(session_id="u", fence=2))


async def test_a_part_of_a_session_can_be_loaded(store: EventStore) -> None:
    await begin(store)
    first, *_ = await store.commit(
        MessageAppended("s", Message(role="assistant", tool_calls=(CALL,))), CallJournalled("s", CALL)
    )
    second, _ = await store.commit(MessageAppended("s", Message(role="user", content="b")), ContextAttached("s", "x"))
    record = await store.load("s", after=first)
    assert record is not None
    assert [message.id for message in record.messages] == [second]
    assert record.contexts == {second: "x"}
    assert record.message_count == 2
    assert [run.call for run in record.open_calls] == [CALL]


async def test_attempts_add_to_the_totals_of_their_session(store: EventStore) -> None:
    await begin(store)
    for number, cost in enumerate((0.25, None, 0.5)):
        opened = AttemptOpened(attempt_id=f"a{number}", session_id="s", purpose="turn", provider="p", model="m")
        await store.commit(opened)
        usage = Usage(10, 5, None, 2, None)
        closed = AttemptClosed(attempt_id=f"a{number}", session_id="s", outcome="ok", usage=usage, cost_usd=cost)
        await store.commit(closed)
    record = await store.load("s")
    assert record is not None
    assert record.totals == Usage(30, 15, 0, 6, 0)
    assert record.cost_usd == 0.75
    with pytest.raises(StoreError, match="'a1' is not open"):
        await store.commit(AttemptClosed(attempt_id="a1", session_id="s", outcome="ok"))


async def test_attempts_and_approvals_need_no_session(store: EventStore) -> None:
    await store.commit(
        AttemptOpened(attempt_id="a", session_id=None, purpose="title", provider="p", model="m"),
        AttemptClosed(attempt_id="a", session_id=None, outcome="failed", error="no\ud800"),
        ApprovalRecorded(session_id=None, route="cron", tool="terminal", action="rm \udcff", verdict="deny"),
    )


async def test_blobs_are_kept_by_content(store: EventStore) -> None:
    digest = await store.put_blob(b"bytes")
    assert digest == await store.put_blob(b"bytes")
    assert await store.get_blob(digest) == b"bytes"
    with pytest.raises(StoreError):
        await store.get_blob("0" * 64)


async def test_a_closed_store_refuses(store: EventStore) -> None:
    await begin(store)
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await begin(store, "t")
    with pytest.raises(StoreError, match="closed"):
        await store.load("s")


async def cancelled_commit(store: EventStore, message: MessageAppended) -> BaseException | None:
    """What a caller hears that is cancelled while it waits for its commit."""

    async def commit() -> BaseException | None:
        try:
            await store.commit(message)
        except (asyncio.CancelledError, StoreError) as error:
            return error
        return None

    task = asyncio.create_task(commit())
    await asyncio.sleep(0)
    task.cancel()
    return await task


@pytest.mark.parametrize("content", ["words", (ImagePart(PIXELS),)], ids=["words", "blob"])
async def test_a_cancelled_caller_hears_of_it_when_the_write_is_known(store: EventStore, content: Any) -> None:
    await begin(store)
    for number in range(20):
        heard = await cancelled_commit(store, MessageAppended("s", Message(role="user", content=content)))
        assert len(await messages_of(store)) == number + 1
        assert heard is None or (isinstance(heard, asyncio.CancelledError) and heard.__cause__ is None)


async def test_a_cancelled_caller_hears_why_the_write_failed(store: EventStore) -> None:
    heard = await cancelled_commit(store, MessageAppended("nowhere", Message(role="user", content="lost")))
    assert heard is not None
    assert isinstance(heard.__cause__ or heard, StoreError)


async def test_a_cancelled_waiter_does_not_stop_the_others(store: EventStore) -> None:
    await begin(store)
    async with asyncio.TaskGroup() as group:
        doomed = group.create_task(store.commit(MessageAppended("s", Message(role="user", content="maybe"))))
        others = [
            group.create_task(store.commit(MessageAppended("s", Message(role="user", content="kept")))) for _ in "ab"
        ]
        doomed.cancel()
    assert all(task.result() for task in others)
    assert [m.content for m in await messages_of(store)].count("kept") == 2


# -- a session that goes on as another -------------------------------------------------------------------------------


def goes_on(old: str, new: str, last_row: int) -> SessionContinued:
    child = SessionCreated(session_id=new, source="unknown", parent_session_id=old, system_prompt="again")
    return SessionContinued(session_id=old, child=child, last_row=last_row, at=100.0)


async def said(store: EventStore, session_id: str, text: str) -> int:
    return (await store.commit(MessageAppended(session_id, Message(role="user", content=text))))[0]


async def test_a_session_ends_and_its_child_begins_in_one_commit(store: EventStore) -> None:
    await store.commit(SessionCreated(session_id="s", source="cli", user_id="u", title="Talk"))
    row = await said(store, "s", "long")
    await store.commit(
        goes_on("s", "t", row),
        MessageAppended("t", Message(role="user", content="short")),
        ContextAttached("t", "beside it"),
        SessionChanged("t", {"compression_fallback_streak": 1}),
    )
    old, new = await store.load("s"), await store.load("t")
    assert old is not None
    assert new is not None
    assert (old.ended, old.continued_by, old.title) == (True, "t", "Talk")
    assert (new.ended, new.continued_by, new.earlier) == (False, None, ("s",))
    assert (new.source, new.title, new.idle_compressions) == ("cli", "Talk #2", 1)
    assert [message.content for message in old.messages] == ["long"]
    assert [message.content for message in new.messages] == ["short"]
    assert list(new.contexts.values()) == ["beside it"]

    last = new.messages[-1].id or 0
    await store.commit(goes_on("t", "u", last), MessageAppended("u", Message(role="user", content="shorter")))
    tips = [record.continued_by for name in "stu" if (record := await store.load(name)) is not None]
    assert tips == ["u", "u", None]
    newest = await store.load("u")
    assert newest is not None
    assert (newest.earlier, newest.title) == (("s", "t"), "Talk #3")


@pytest.mark.parametrize("what", ["newer message", "continued before", "no such session", "taken id", "bad row"])
async def test_a_session_that_moved_on_is_not_continued_and_nothing_is_stored(store: EventStore, what: str) -> None:
    await begin(store)
    row = await said(store, "s", "one")
    child = "t"
    if what == "newer message":
        await said(store, "s", "two")
    elif what == "continued before":
        await store.commit(goes_on("s", "other", row))
    elif what == "taken id":
        await begin(store, "t2")
        child = "t2"
    ops: list[Any] = [goes_on("nobody" if what == "no such session" else "s", child, row)]
    if what == "bad row":
        ops.append(SessionChanged("t", {"no_such_column": 1}))
    with pytest.raises(StoreError) as caught:
        await store.commit(*ops, MessageAppended(child, Message(role="user", content="short")))
    assert isinstance(caught.value, SessionMoved) or what in ("bad row", "no such session")
    assert await store.load("t") is None
    record = await store.load("s")
    assert record is not None
    assert record.ended == (what == "continued before")
    assert record.continued_by == ("other" if what == "continued before" else None)
