"""Processes that tests start, watch and kill: `python workers.py <job> <db> <name> <count>`."""

import asyncio
import json
import sys
import time
from pathlib import Path

from hermes.ops import (
    AttemptClosed,
    AttemptOpened,
    CallClosed,
    CallJournalled,
    ContextAttached,
    MessageAppended,
    SessionCreated,
)
from hermes.state import SqliteStore
from hermes.state.message_line import QueuedMessage
from hermes.types import Message, ToolCall, Usage

SENTENCE = "the quick brown fox jumps over a lazy dog while 数据库 and データ and 데이터 wait"
WORDS = SENTENCE.split()


def tell(line: str) -> None:
    """One line to the test that watches, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def turns(path: Path, name: str, count: int) -> None:
    """`count` turns as the kernel commits them; says at the end how long the longest commit took."""
    store = SqliteStore(path)
    await store.commit(SessionCreated(session_id=name, source="cli"))
    waits = []
    for number in range(count):
        attempt = f"{name}-{number}"
        before = time.monotonic()
        await store.commit(
            MessageAppended(name, Message(role="user", content=f"question {number} " + SENTENCE)),
            ContextAttached(name, "context"),
            AttemptOpened(attempt_id=attempt, session_id=name, purpose="turn", provider="p", model="m"),
        )
        between = time.monotonic()
        await store.commit(
            MessageAppended(name, Message(role="assistant", content=f"answer {number} " + SENTENCE)),
            AttemptClosed(attempt_id=attempt, session_id=name, outcome="ok", usage=Usage(1, 1)),
        )
        waits += [between - before, time.monotonic() - between]
    await store.close()
    waits.sort()
    tell(json.dumps({"turns": count, "worst_ms": waits[-1] * 1000, "p99_ms": waits[-len(waits) // 100] * 1000}))


async def mixed(path: Path, name: str, count: int) -> None:
    """Write without end, mixed as real work is; each acknowledged row is told on stdout once it is durable."""
    store = SqliteStore(path)
    await store.commit(SessionCreated(session_id=name, source="cli"))

    async def session(lane: int) -> None:
        number = 0
        while count == 0 or number < count:
            key = f"k{name}x{lane}x{number}"
            call = ToolCall(key, "tool", "{}")
            large = "L" * 40_000 if number % 40 == 7 else ""
            asking = Message(role="assistant", content=f"{key} {WORDS[number % 16]} {large}", tool_calls=(call,))
            rows = await store.commit(
                MessageAppended(name, asking),
                CallJournalled(name, call),
            )
            tell(f"ack {key} {rows[0]}")
            rows = await store.commit(
                CallClosed(name, key, "ok"),
                MessageAppended(name, Message(role="tool", content=f"r{key} done", tool_call_id=key, status="ok")),
            )
            tell(f"ack r{key} {rows[1]}")
            number += 1
            if lane == 0 and number % 12 == 0:
                await asyncio.to_thread(store.index_all)

    async with asyncio.TaskGroup() as group:
        for lane in range(3):
            group.create_task(session(lane))
    await store.close()


async def line(path: Path, name: str, count: int) -> None:
    """Add messages under keys that every process uses, take all that can be had, and end them."""
    store = SqliteStore(path)
    messages = store.message_line
    for number in range(count):
        messages.add("s", QueuedMessage(key=f"k{number}", content=name), first=number % 5 == 0)
    for one in messages.read("s"):
        if messages.take("s", one.key):
            tell(one.key)
            messages.end("s", [one.key], "done")
    await store.close()


async def take(path: Path, name: str, count: int) -> None:
    """Take the first `count` that wait in the session, say so, and work on them until the end of the input."""
    store = SqliteStore(path)
    for one in store.message_line.read(name)[:count]:
        store.message_line.take(name, one.key)
    tell("taken")
    sys.stdin.read()


if __name__ == "__main__":
    job, db, who, how_many = sys.argv[1:5]
    asyncio.run({"turns": turns, "mixed": mixed, "line": line, "take": take}[job](Path(db), who, int(how_many)))
