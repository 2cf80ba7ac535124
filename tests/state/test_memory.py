"""The store keeps no transcript: what was loaded is the caller's, and leaves with it."""

import asyncio
import gc
import tracemalloc
from pathlib import Path

from hermes.ops import MessageAppended, SessionCreated
from hermes.state import SqliteStore
from hermes.types import Message

TEXT_BYTES = 20_000
MESSAGES = 100
SESSIONS = 12


async def test_idle_sessions_hold_no_transcript(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db", durability="process")
    for name in range(SESSIONS):
        ops = [
            MessageAppended(f"s{name}", Message(role="user", content=chr(97 + name) * TEXT_BYTES))
            for _ in range(MESSAGES)
        ]
        await store.commit(SessionCreated(session_id=f"s{name}"), *ops)
    del ops
    await asyncio.to_thread(store.index_all)  # else the thread that indexes would be measured, too
    await store.load("s0")
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for name in range(SESSIONS):
        record = await store.load(f"s{name}")
        assert record is not None
        assert len(record.messages) == MESSAGES
    del record
    await asyncio.sleep(0)  # the loop itself holds the last result until it turns
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert kept < MESSAGES * TEXT_BYTES / 10, "less than a tenth of one transcript"
    await store.close()


async def test_a_large_result_is_stored_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    await store.commit(SessionCreated(session_id="s"))
    large = "result " * 100_000
    for _ in range(5):
        await store.commit(MessageAppended("s", Message(role="tool", content=large, tool_call_id="c")))
    assert [path.stat().st_size for path in store.blobs.files()] == [len(large)]
    await store.close()
    assert (tmp_path / "state.db").stat().st_size < 400_000
