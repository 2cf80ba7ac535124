"""The store against raw SQLite, in one run: `python bench/store.py [--full]`. Ratios, not seconds, are what is held."""

import argparse
import asyncio
import itertools
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from hermes.ops import (
    AttemptClosed,
    AttemptOpened,
    CallClosed,
    CallJournalled,
    MessageAppended,
    SessionCreated,
    StoreOp,
)
from hermes.state import SqliteStore
from hermes.state.queries import Search, Sort
from hermes.state.sqlite import tables
from hermes.types import Message, ToolCall, Usage

TEXT = "What the tool found in the file, and what it means for the question that was asked. " * 4
WARM_COMMITS = 400
WORKER = Path(__file__).parents[1] / "tests" / "state" / "workers.py"
RESULTS: list[tuple[str, float, str, float]] = []


def held(name: str, value: float, how: str, limit: float) -> None:
    """Print one figure beside its limit."""
    good = value >= limit if how == ">=" else value <= limit
    RESULTS.append((name, value, how, limit))
    print(f"{'ok  ' if good else 'MISS'} {name:<52} {value:10.3f}  {how} {limit}")


# -- one waiter, many waiters --------------------------------------------------------------------------------------


def step_ops(number: int) -> tuple[tuple[StoreOp, ...], tuple[StoreOp, ...]]:
    """The two commits of one tool iteration, as the kernel makes them."""
    call = ToolCall(f"c{number}", "read_file", '{"path": "src/main.py"}')
    attempt = f"a{number}"
    return (
        (
            AttemptOpened(attempt_id=attempt, session_id="s", purpose="turn", provider="p", model="m", started_at=1.0),
            MessageAppended("s", Message(role="tool", content=TEXT, tool_call_id=f"c{number - 1}", status="ok")),
            CallClosed("s", f"c{number - 1}", "ok", 1.0),
        ),
        (
            MessageAppended("s", Message(role="assistant", content="I will read it.", tool_calls=(call,))),
            AttemptClosed(attempt_id=attempt, session_id="s", outcome="ok", usage=Usage(1, 1), cost_usd=0.1),
            CallJournalled("s", call),
        ),
    )


class Raw:
    """The same rows by hand-written SQL, on the same tables."""

    def __init__(self, path: Path) -> None:
        self.conn = sqlite3.connect(path, isolation_level=None)
        self.conn.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self.conn.execute("PRAGMA journal_mode = WAL")
        self.conn.execute("PRAGMA synchronous = FULL")
        tables.create(self.conn)
        self.conn.execute("INSERT INTO sessions(id, source, started_at) VALUES ('s', 'cli', 1.0)")

    def append(self) -> None:
        run = self.conn.execute
        run("BEGIN IMMEDIATE")
        run(
            "INSERT INTO messages(session_id, role, content, timestamp) VALUES ('s', 'user', ?, ?)", (TEXT, time.time())
        )
        run("UPDATE sessions SET message_count = message_count + 1 WHERE id = 's'")
        run("COMMIT")

    def step(self, number: int) -> None:
        run, attempt, now = self.conn.execute, f"a{number}", time.time()
        run("BEGIN IMMEDIATE")
        run(
            "INSERT INTO attempts(attempt_id, session_id, purpose, provider, model, base_url, owner, started_at)"
            " VALUES (?, 's', 'turn', 'p', 'm', '', 'o', 1.0)",
            (attempt,),
        )
        run(
            "INSERT INTO messages(session_id, role, content, tool_call_id, timestamp, status)"
            " VALUES ('s','tool',?,?,?,'ok')",
            (TEXT, f"c{number - 1}", now),
        )
        run(
            "UPDATE tool_runs SET status = 'ok', duration_ms = 1.0"
            " WHERE session_id = 's' AND status IS NULL AND call_id = ?",
            (f"c{number - 1}",),
        )
        run("UPDATE sessions SET message_count = message_count + 1 WHERE id = 's'")
        run("COMMIT")
        run("BEGIN IMMEDIATE")
        row = run(
            "INSERT INTO messages(session_id, role, content, tool_calls, timestamp) VALUES ('s','assistant',?,?,?)",
            ("I will read it.", json.dumps([{"id": f"c{number}", "type": "function", "function": {}}]), now),
        ).lastrowid
        run(
            "UPDATE attempts SET outcome = 'ok', input_tokens = 1, output_tokens = 1, cost_usd = 0.1"
            " WHERE attempt_id = ?",
            (attempt,),
        )
        run(
            "INSERT INTO tool_runs(session_id, call_id, name, message_id, owner, started_at)"
            " VALUES ('s', ?, 'read_file', ?, 'o', ?)",
            (f"c{number}", row, now),
        )
        run(
            "UPDATE sessions SET message_count = message_count + 1, tool_call_count = tool_call_count + 1,"
            " input_tokens = input_tokens + 1, output_tokens = output_tokens + 1, api_call_count = api_call_count + 1,"
            " estimated_cost_usd = coalesce(estimated_cost_usd, 0) + 0.1 WHERE id = 's'"
        )
        run("COMMIT")


async def waiters(folder: Path, rounds: int) -> None:
    """Raw and store take turns, so that a busy disk slows both. Indexing, which is deferred, is timed apart."""
    raw, one, many = Raw(folder / "raw.db"), SqliteStore(folder / "one.db"), SqliteStore(folder / "many.db")
    for store in (one, many):
        await store.commit(SessionCreated(session_id="s", source="cli"))
    numbers = itertools.count()
    times: dict[str, list[float]] = {
        name: [] for name in ("raw step", "step", "raw", "one", "raw row", "many", "index")
    }
    told = MessageAppended("s", Message(role="user", content=TEXT))

    async def append(store: SqliteStore, count: int) -> None:
        for _ in range(count):
            await store.commit(told)

    for _ in range(WARM_COMMITS):  # until the logs have their full length; growing a file is slower than writing in it
        raw.append()
        await one.commit(told)
        await many.commit(told)
    for _ in range(rounds):
        for number in itertools.islice(numbers, 16):
            lap = time.perf_counter()
            raw.step(number)
            lap = _lap(times["raw step"], lap)
            for ops in step_ops(number):
                await one.commit(*ops)
            lap = _lap(times["step"], lap)
            raw.append()
            lap = _lap(times["raw"], lap)
            await one.commit(told)
            _lap(times["one"], lap)
        lap = time.perf_counter()
        for _ in range(128):
            raw.append()
        lap = _lap(times["raw row"], lap, 128)
        async with asyncio.TaskGroup() as group:
            for _ in range(32):
                group.create_task(append(many, 16))
        lap = _lap(times["many"], lap, 32 * 16)
        rows = await asyncio.to_thread(many.index_all)
        _lap(times["index"], lap, max(rows, 1))
        await asyncio.to_thread(one.index_all)
    await one.close()
    await many.close()
    typical = {name: statistics.median(taken) * 1e6 for name, taken in times.items()}
    print("     " + ", ".join(f"{name} {value:.0f} µs" for name, value in typical.items()))
    held("one waiter, FULL, message: speed against raw", typical["raw"] / typical["one"], ">=", 0.7)
    held("one waiter, FULL, tool step: speed against raw", typical["raw step"] / typical["step"], ">=", 0.7)
    held("32 waiters: rows per second against raw", typical["raw row"] / typical["many"], ">=", 2.0)


def _lap(times: list[float], start: float, count: int = 1) -> float:
    now = time.perf_counter()
    times.append((now - start) / count)
    return now


# -- many processes ------------------------------------------------------------------------------------------------


def processes(folder: Path, turns: int) -> None:
    """16 processes, each with its own session, in one file."""
    path = folder / "shared.db"
    command = [sys.executable, str(WORKER), "turns", str(path)]
    started = time.perf_counter()
    children = [
        subprocess.Popen([*command, f"s{n}", str(turns)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for n in range(16)
    ]
    answers = [child.communicate() for child in children]
    took = time.perf_counter() - started
    failed = [error for (_, error), child in zip(answers, children, strict=True) if child.returncode]
    told = [json.loads(out) for out, _ in answers if out]
    conn = sqlite3.connect(path)
    stored = conn.execute("SELECT count(*) FROM messages").fetchone()[0] // 2
    sound = conn.execute("PRAGMA integrity_check").fetchone()[0]
    conn.close()
    print(
        f"     16 x {turns} turns in {took:.1f} s, integrity {sound}, p99 {max(one['p99_ms'] for one in told):.0f} ms"
    )
    held("16 processes: turns stored", stored, ">=", 16 * turns)
    held("16 processes: errors", len(failed), "<=", 0)
    held("16 processes: worst wait, ms", max(one["worst_ms"] for one in told), "<=", 500)


# -- a large store -------------------------------------------------------------------------------------------------


def corpus(count: int) -> Iterator[tuple[str, str, str]]:
    """(session, role, text): words as skewed as real ones, some Chinese, tool output longer than talk."""
    rng = random.Random(7)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = ["".join(rng.choices(letters, weights=range(26, 0, -1), k=rng.randint(2, 10))) for _ in range(40_000)]
    weights = list(itertools.accumulate(1 / (rank + 2) for rank in range(len(vocabulary))))
    chinese = [chr(0x4E00 + rank) for rank in range(3000)]
    chinese_weights = list(itertools.accumulate(1 / (rank + 2) for rank in range(3000)))
    for number in range(count):
        session, role = f"20260101_{number // 100:06d}_abcdef", ("user", "assistant", "tool", "assistant")[number % 4]
        if number % 10 == 0:
            text = "".join(rng.choices(chinese, cum_weights=chinese_weights, k=rng.randint(10, 120)))
        else:
            longest = 260 if role == "tool" else 70
            text = " ".join(rng.choices(vocabulary, cum_weights=weights, k=rng.randint(5, longest)))
        if number % (count // 7) == 3:
            text += " needleword 稀有"
        yield session, role, f"{text} everyone" if number % 2 else text


def build(path: Path, count: int) -> int:
    """A store with `count` messages, indexed; the bytes of text in it."""
    store = SqliteStore(path)
    total, now = 0, time.time()

    def add(conn: sqlite3.Connection, rows: list[tuple[str, str, str]], first: int) -> None:
        conn.executemany(
            "INSERT INTO sessions(id, source, started_at) VALUES (?, 'cli', ?) ON CONFLICT DO NOTHING",
            [(session, now) for session in {row[0] for row in rows}],
        )
        conn.executemany(
            "INSERT INTO messages(session_id, role, content, timestamp) VALUES (?, ?, ?, ?)",
            [(*row, now + first + n) for n, row in enumerate(rows)],
        )

    rows, first = corpus(count), 0
    while batch := list(itertools.islice(rows, 5000)):
        total += sum(len(row[2].encode()) for row in batch)
        store.write(partial(add, rows=batch, first=first))
        first += len(batch)
        store.index_all()
    store.write_alone(lambda conn: conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    store.close_sync()
    return total


def best_ms(work: Callable[[], object], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1000


def opened_ms(path: Path) -> float:
    def work() -> None:
        SqliteStore(path).close_sync()

    return best_ms(work)


async def append_ratio(few: SqliteStore, many: SqliteStore) -> float:
    """How much longer an append takes in `many`; the two take turns, so that a busy disk slows both."""
    taken: dict[int, list[float]] = {0: [], 1: []}
    for store in (few, many):
        await store.commit(SessionCreated(session_id="appended", source="cli"))
    for number in range(600):
        start = time.perf_counter()
        await (few, many)[number % 2].commit(MessageAppended("appended", Message(role="user", content=TEXT)))
        taken[number % 2].append(time.perf_counter() - start)
    return statistics.median(taken[1]) / statistics.median(taken[0])


def large(folder: Path, count: int, search_limit_ms: float) -> None:
    """Search, open, append and size at `count` messages."""
    path = folder / f"large{count}.db"
    start = time.perf_counter()
    text_bytes = build(path, count)
    print(f"     {count} messages, {text_bytes / 1e6:.0f} MB of text, built in {time.perf_counter() - start:.0f} s")
    conn = sqlite3.connect(path)
    index = conn.execute("SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'messages_fts%'").fetchone()[0]
    conn.close()
    held(f"{count}: index against text", index / text_bytes, "<=", 0.6)
    held(f"{count}: whole file against text", path.stat().st_size / text_bytes, "<=", 2.0)
    held(f"{count}: open, ms", opened_ms(path), "<=", 20)
    store = SqliteStore(path)
    questions: dict[str, tuple[str, Sort]] = {
        "rare word": ("needleword", "best"),
        "rare Chinese word": ("稀有", "best"),
        "common word, best": ("everyone", "best"),
        "common word, newest": ("everyone", "newest"),
        "common Chinese pair": (chr(0x4E00) + chr(0x4E01), "best"),
        "common and rare": ("everyone needleword", "best"),
        "nothing": ("zzzzqqqq", "best"),
    }
    for name, (text, sort) in questions.items():
        search = Search(text=text, sort=sort)
        found = len(store.search_sync(search))
        took = best_ms(partial(store.search_sync, search))
        held(f"{count}: search {name} ({found} found), ms", took, "<=", search_limit_ms)
    small = SqliteStore(folder / f"small{count}.db")
    held(f"{count}: append against an empty store", asyncio.run(append_ratio(small, store)), "<=", 1.5)
    store.close_sync()
    small.close_sync()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="1,000 turns a process, and a million messages")
    parser.add_argument("--only", choices=["waiters", "processes", "large"])
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="hermes-bench-", dir=os.environ.get("TMPDIR")))
    try:
        if options.only in (None, "waiters"):
            asyncio.run(waiters(folder, 60 if options.full else 20))
        if options.only in (None, "processes"):
            processes(folder, 1000 if options.full else 100)
        if options.only in (None, "large"):
            large(folder, 100_000, 20)
            if options.full:
                large(folder, 1_000_000, 50)
    finally:
        shutil.rmtree(folder)
    missed = [name for name, value, how, limit in RESULTS if not (value >= limit if how == ">=" else value <= limit)]
    print(f"{len(RESULTS) - len(missed)} of {len(RESULTS)} held" + (f"; missed: {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
