"""session_search over a hundred thousand messages, against the bare index: `python bench/recall.py [--small]`.

Each shape is asked two hundred times; a discovery and the bare FTS5 query take turns in one run. The bare query is the
ten best rowids for the words alone: no filter, and no row of a message or session is looked at. What as many candidates
as a discovery reads take is told beside it. A prefix that more than a tenth of all messages match is apart.
"""

import argparse
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import msgspec

from hermes.state import SessionDB
from hermes.state.message_rows import message_row
from hermes.state.recall import Recall, RecallRequest
from hermes.state.sqlite.search import CANDIDATES
from hermes.state.sqlite.search_query import parse
from hermes.state.stores import open_store

SESSIONS, MESSAGES = 2_000, 50
QUERIES = 200
MEDIAN_MS, RATIO, RESULT_TOKENS = 30.0, 4.0, 4_000
CJK = "数据库连接错误测试部署服务器配置文件日志用户权限更新版本网络请求缓存"
COUNT = "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH ?"
CLOCK = time.process_time if os.environ.get("BENCH_CPU") else time.perf_counter  # for a machine that is not quiet
BARE = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rank LIMIT ?"


def vocabulary(rng: random.Random) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(rng.choices(letters, k=rng.randint(4, 10))) for _ in range(8_000)]


def filled(file: Path, sessions: int, rng: random.Random, words: list[str]) -> None:
    """Sessions of fifty messages; some words are common, most are rare, and one in ten texts is Chinese, too."""
    weights = [1 / (rank + 20) for rank in range(len(words))]
    with closing_store(file) as db:
        for number in range(sessions):
            at = 1_700_000_000.0 + number * 3_600
            messages = []
            for place in range(MESSAGES):
                text = " ".join(rng.choices(words, weights, k=rng.randint(10, 90)))
                if rng.random() < 0.1:
                    text += " " + "".join(rng.choices(CJK, k=30))
                role = "user" if place % 2 == 0 else "assistant"
                messages.append({"role": role, "content": text, "timestamp": at + place * 60})
            head = {
                "id": f"s{number:05}",
                "source": "cli",
                "model": "m",
                "started_at": at,
                "title": f"Session {number}",
            }
            db.queries.add_session(head, [message_row(one, at) for one in messages])
        db.optimize_fts()


@contextmanager
def closing_store(file: Path) -> Iterator[SessionDB]:
    """A store that does not wait for the disk: it is only filled."""
    store = open_store(str(file), "process")
    try:
        yield SessionDB(store=store)
    finally:
        store.close_sync()


def questions(rng: random.Random, words: list[str]) -> list[str]:
    """One word, two words, phrases of Chinese, a prefix: what models ask."""
    found = []
    for number in range(QUERIES):
        word = words[rng.randrange(20, 1_500)]
        kinds = [word, f"{word} {words[rng.randrange(0, 60)]}", "".join(rng.choices(CJK, k=2)), f"{word[:4]}*"]
        found.append(kinds[number % 4])
    return found


def timed(work: Callable[[], object]) -> float:
    began = CLOCK()
    work()
    return (CLOCK() - began) * 1000


def _all(conn: sqlite3.Connection, match: str, limit: int) -> list[object]:
    return conn.execute(BARE, (match, limit)).fetchall()


def _without_common(file: Path, asked: list[str], most: int) -> list[tuple[str, str]]:
    """With what the index is asked. Counted over another connection: the bare query must not find its pages read."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as conn:
        found = [(words, query.match) for words in asked if (query := parse(words)) is not None]
        return [(words, match) for words, match in found if conn.execute(COUNT, (match,)).fetchone()[0] <= most]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="A tenth of the sessions.")
    sessions = SESSIONS // 10 if parser.parse_args().small else SESSIONS
    rng = random.Random(26)
    words = vocabulary(rng)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(os.environ.get("BENCH_STORE") or f"{folder}/state.db")
        if not file.exists():
            filled(file, sessions, rng, words)
        rng = random.Random(27)  # the same questions to a store that was there
        return measured(file, sessions, questions(rng, words), rng)


def measured(file: Path, sessions: int, asked: list[str], rng: random.Random) -> int:
    took: dict[str, list[float]] = {"discover": [], "browse": [], "scroll": [], "bare": [], "candidates": []}
    largest, all_messages = 0, sessions * MESSAGES
    with SessionDB(file) as db:
        db.optimize_fts()  # nothing, unless the store was there and has been to other hands
        recall, bare = Recall(db.queries, "s00000"), sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        for words, match in _without_common(file, asked, all_messages // 10):
            request = RecallRequest(query=words)
            took["bare"].append(timed(partial(_all, bare, match, 10)))
            took["candidates"].append(timed(partial(_all, bare, match, CANDIDATES)))
            took["discover"].append(timed(partial(recall.discover, request)))
            largest = max(largest, len(msgspec.json.encode(recall.discover(request)).decode()) // 4)
        for _ in range(QUERIES):
            session = f"s{rng.randrange(1, sessions):05}"
            message = db.get_messages(session, limit=1, offset=rng.randrange(MESSAGES))[0]["id"]
            took["browse"].append(timed(partial(recall.browse, 3)))
            took["scroll"].append(timed(partial(recall.scroll, session, message, 5)))
        bare.close()
    medians = {name: statistics.median(values) for name, values in took.items()}
    figures = [(f"{name}, median ms", medians[name], MEDIAN_MS) for name in ("discover", "browse", "scroll")]
    figures.append(("discover against the bare query", medians["discover"] / medians["bare"], RATIO))
    figures.append(("tokens of the largest result", float(largest), float(RESULT_TOKENS)))
    print(
        f"{all_messages} messages in {sessions} sessions; the bare query takes {medians['bare']:.2f} ms,"
        f" {CANDIDATES} candidates {medians['candidates']:.2f} ms"
    )
    for name, value, limit in figures:
        print(f"{'ok  ' if value <= limit else 'MISS'} {name:<40} {value:10.2f}  <= {limit:g}")
    return int(any(value > limit for _, value, limit in figures))


if __name__ == "__main__":
    sys.exit(main())
