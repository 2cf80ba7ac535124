"""What every `MessageLine` owes a surface."""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import pytest

from hermes.ops import MessageAppended, SessionContinued, SessionCreated
from hermes.seams import EventStore
from hermes.state import SqliteStore
from hermes.state.message_line import KEPT_S, MessageLine, QueuedMessage
from hermes.types import Content, ImagePart, Message, OpaquePart, TextPart
from tests.state.memory_queries import MemorySessionStore


class Store(EventStore, Protocol):
    """A store with a line."""

    @property
    def message_line(self) -> MessageLine: ...
    async def in_line(self, work: Callable[[MessageLine], Any]) -> Any: ...


def new(key: str, content: Content = "", **fields: Any) -> QueuedMessage:
    return QueuedMessage(key=key, content=content or f"say {key}", **fields)


def keys(line: MessageLine, session_id: str = "s") -> list[str]:
    """The line in its order; what is taken stands in brackets."""
    return [one.key if one.state == "waiting" else f"[{one.key}]" for one in line.read(session_id)]


def filled(line: MessageLine, *names: str) -> MessageLine:
    for name in names:
        line.add("s", new(name))
    return line


async def say(store: Store, session_id: str = "s", text: str = "hello") -> int:
    """Let a user message reach the session; its row."""
    await store.commit(SessionCreated(session_id=session_id, source="cli"))
    return (await store.commit(MessageAppended(session_id, Message(role="user", content=text))))[0]


def continuation(last_row: int) -> SessionContinued:
    child = SessionCreated(session_id="t", source="cli", parent_session_id="s", started_at=time.time())
    return SessionContinued(session_id="s", child=child, last_row=last_row, at=time.time())


async def test_messages_come_in_the_order_in_which_they_were_added(store: Store) -> None:
    line = filled(store.message_line, *(f"k{number}" for number in range(60)))
    assert keys(line) == [f"k{number}" for number in range(60)]
    assert [one.number for one in line.read("s")] == list(range(1, 61))
    assert keys(line, "another") == []


async def test_a_loop_works_on_a_line_as_a_thread_does(store: Store) -> None:
    added = await store.in_line(lambda line: line.add("s", new("a")))
    assert (added.key, added.state) == ("a", "waiting")
    assert await store.in_line(lambda line: line.take("s", "a"))
    assert not await store.in_line(lambda line: line.take("s", "a"))
    assert keys(store.message_line) == ["[a]"]
    assert [one.key for one in await store.in_line(lambda line: line.settle("s"))] == ["a"]


async def test_one_that_is_put_first_is_before_those_that_wait_and_behind_those_taken(store: Store) -> None:
    line = filled(store.message_line, "a", "b", "c")
    assert line.take("s", "a")
    line.add("s", new("d"), first=True)
    line.add("s", new("e"), first=True)
    assert keys(line) == ["[a]", "e", "d", "b", "c"]
    assert line.put_back("s", "a")
    assert keys(line) == ["a", "e", "d", "b", "c"]
    assert line.end("s", ["a", "b", "c", "d", "e"], "dropped") == 5
    line.add("s", new("f"), first=True)
    assert keys(line) == ["f"]


async def test_a_key_is_heard_once_also_when_its_message_is_done(store: Store) -> None:
    line = store.message_line
    first = line.add("s", new("k", "one", who="web:ann", mode="interrupt", at=12.5))
    assert first == new("k", "one", who="web:ann", mode="interrupt", at=12.5, number=1)
    assert line.add("s", new("k", "two", who="web:bob"), first=True) == first
    assert line.add("another", new("k", "two")).content == "two"
    line.end("s", ["k"], "done")
    assert line.add("s", new("k", "three")).state == "done"
    assert line.read("s") == []


async def test_a_key_is_forgotten_long_after_its_message_has_ended(store: Store) -> None:
    line = store.message_line
    line.add("s", new("old", at=time.time() - KEPT_S - 60))
    line.add("s", new("new"))
    line.end("s", ["old", "new"], "done")
    assert line.add("s", new("old")).state == "done"
    line.end("s", [], "done")
    assert [line.add("s", new(key)).state for key in ("old", "new")] == ["waiting", "done"]


async def test_one_key_from_many_threads_at_once_is_one_message(store: Store) -> None:
    line = store.message_line
    with ThreadPoolExecutor(8) as threads:
        added = list(threads.map(lambda number: line.add("s", new("k", f"by {number}")), range(40)))
        taken = list(threads.map(lambda _: line.take("s", "k"), range(40)))
    assert [one.content for one in line.read("s")] == [added[0].content]
    assert {one.content for one in added} == {added[0].content}
    assert taken.count(True) == 1


async def test_only_what_waits_can_be_taken_or_changed(store: Store) -> None:
    line = filled(store.message_line, "a", "b")
    assert line.edit("s", "a", "other words")
    assert line.read("s")[0].content == "other words"
    assert line.take("s", "a")
    assert not line.take("s", "a")
    assert not line.edit("s", "a", "too late")
    assert not line.put_back("s", "b")
    assert line.end("s", ["a", "gone"], "done") == 1
    assert not line.take("s", "a")
    assert not line.edit("s", "a", "too late")
    assert not line.put_back("s", "a")
    assert line.end("s", ["a"], "dropped") == 0
    assert line.end("s", [], "dropped") == 0
    assert keys(line) == ["b"]


ODD: list[Content] = [
    "",
    "lone \ud800 and \udfff",
    "a\0b",
    "\0json:[1]",
    "null",
    "[1]",
    "x" * 1_000_000,
    "\ud800" * 100_000,
    (),
    (
        TextPart("look"),
        ImagePart("data:image/png;base64," + "iVBORw0KGgoA" * 90_000, detail="high"),
        TextPart("\udc00"),
    ),
    (OpaquePart({"type": "audio", "n": [1, None]}),),
]


@pytest.mark.parametrize("content", ODD, ids=range(len(ODD)))
async def test_content_comes_back_as_it_went_in(store: Store, content: Content) -> None:
    line = store.message_line
    line.add("s", QueuedMessage(key="k\udc00", content=content, who="web:\ud800"))
    line.add("s", new("other"))
    assert line.edit("s", "other", content)
    first, second = line.read("s")
    assert (first.key, first.content, first.who) == ("k\udc00", content, "web:\ud800")
    assert second.content == content
    assert line.take("s", "k\udc00")
    assert line.end("s", ["k\udc00"], "done") == 1


async def test_a_mode_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot have mode 'later'"):
        new("k", mode="later")


async def test_one_whose_words_had_reached_the_session_is_done(store: Store) -> None:
    await say(store)
    line = filled(store.message_line, "a", "b")
    line.take("s", "a")
    await say(store)
    assert [one.key for one in line.settle("s")] == ["b"]
    assert line.add("s", new("a")).state == "done"


async def test_one_whose_words_had_not_reached_the_session_waits_again_at_its_place(store: Store) -> None:
    await say(store)
    line = filled(store.message_line, "a", "b")
    line.take("s", "a")
    line.add("s", new("c"), first=True)
    assert [(one.key, one.state) for one in line.settle("s")] == [(key, "waiting") for key in ("a", "c", "b")]
    assert line.take("s", "a")


async def test_the_first_message_of_a_session_that_never_came_to_be_waits_again(store: Store) -> None:
    line = filled(store.message_line, "a")
    line.take("s", "a")
    assert [one.state for one in line.settle("s")] == ["waiting"]


async def test_a_compressed_session_takes_its_line_along(store: Store) -> None:
    row = await say(store)
    line = filled(store.message_line, "a", "b", "done")
    line.end("s", ["done"], "done")
    line.take("s", "a")
    await store.commit(continuation(row))
    assert keys(line, "t") == ["[a]", "b"]
    line.add("s", new("c"))  # by whoever has not heard of it
    assert keys(line, "s") == keys(line, "t") == ["[a]", "b", "c"]
    assert line.add("t", new("done")).state == "done"
    assert line.end("s", ["a"], "done") == 1
    assert [one.key for one in line.settle("s")] == ["b", "c"]


async def test_what_compression_carries_along_is_not_the_message_that_was_taken(store: Store) -> None:
    row = await say(store)
    line = filled(store.message_line, "a")
    line.take("s", "a")
    kept = MessageAppended("t", Message(role="user", content="a summary"))
    await store.commit(continuation(row), kept)
    assert [one.key for one in line.settle("t")] == ["a"]


async def test_one_that_had_reached_the_session_before_its_compression_is_done(store: Store) -> None:
    await say(store)
    line = filled(store.message_line, "a", "b")
    line.take("s", "a")
    row = await say(store)
    await store.commit(continuation(row), MessageAppended("t", Message(role="user", content="a summary")))
    assert [one.key for one in line.settle("t")] == ["b"]


async def test_one_that_reaches_the_session_after_its_compression_is_done(store: Store) -> None:
    row = await say(store)
    line = filled(store.message_line, "a", "b")
    line.take("s", "a")
    await store.commit(continuation(row), MessageAppended("t", Message(role="user", content="a summary")))
    await say(store, "t")
    assert [one.key for one in line.settle("t")] == ["b"]


async def test_a_commit_that_fails_moves_no_line(store: Store) -> None:
    row = await say(store)
    line = filled(store.message_line, "a")
    with pytest.raises(Exception, match="nobody"):
        await store.commit(continuation(row), MessageAppended("nobody", Message(role="user", content="x")))
    assert keys(line) == ["a"]
    assert keys(line, "t") == []


async def test_a_line_moves_in_front_of_another_and_no_message_is_there_twice(store: Store) -> None:
    line = filled(store.message_line, "a", "b", "worked on", "finished")
    line.take("s", "worked on")
    line.end("s", ["finished"], "done")
    for key in ("x", "b", "worked on", "finished", "y"):
        line.add("t", new(key))
    line.move("s", "t")
    assert sorted(keys(line, "t")) == ["[worked on]", "a", "b", "x", "y"]
    assert [key for key in keys(line, "t") if key in ("a", "x", "y")] == ["a", "x", "y"]
    assert keys(line) == []
    line.move("s", "t")
    line.move("t", "t")
    assert len(keys(line, "t")) == 5


def test_random_calls_leave_the_same_line_everywhere(tmp_path: Path) -> None:
    chance = random.Random(7)
    stores = (SqliteStore(tmp_path / "state.db"), MemorySessionStore())
    names = [f"k{number}" for number in range(12)]
    for _ in range(1500):
        session, key = chance.choice("st"), chance.choice(names)
        calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
            ("add", (session, new(key, at=1e12)), {"first": chance.random() < 0.4}),
            ("take", (session, key), {}),
            ("put_back", (session, key), {}),
            ("edit", (session, key, str(chance.random())), {}),
            ("end", (session, [key, chance.choice(names)], chance.choice(("done", "dropped"))), {}),
            ("settle", (session,), {}),
            ("move", chance.choice((("s", "t"), ("t", "s"))), {}),
            ("add", (session, new(f"k{chance.random()}", at=1.0)), {}),
        ]
        name, args, options = chance.choices(calls, (8, 4, 2, 2, 2, 1, 0.3, 4))[0]
        answers = [getattr(store.message_line, name)(*args, **options) for store in stores]
        assert answers[0] == answers[1], (name, args)
        for session in "st":
            seen = [[(one.key, one.state, one.content) for one in store.message_line.read(session)] for store in stores]
            assert seen[0] == seen[1], (name, args)
    stores[0].close_sync()
