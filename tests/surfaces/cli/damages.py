"""Ways in which a state file gets damaged, and what of it nobody touched."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from hermes.state.sqlite.page_reader import LogPages

PAGE = 4096
BEFORE_VALUES = 40  # bytes in front of a row's first value that belong to it as well

Damage = Callable[[bytearray, random.Random], "bytearray | None"]


def in_cells(data: bytearray, rng: random.Random) -> None:
    """Some bytes inside what was said."""
    for _ in range(rng.randint(1, 3)):
        at = data.find(b" message ", rng.randrange(len(data)))
        spoil(data, (at if at > 0 else rng.randrange(len(data))) + rng.randint(-20, 60), rng.randint(1, 64), rng)


def pages_zeroed(data: bytearray, rng: random.Random) -> None:
    for number in rng.sample(range(len(data) // PAGE), rng.randint(1, 3)):
        data[number * PAGE : (number + 1) * PAGE] = bytes(PAGE)


def cut_off(data: bytearray, rng: random.Random) -> bytearray:
    return data[: rng.randrange(1, len(data))]


def in_header(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(100)
    spoil(data, at, rng.randint(1, 100 - at), rng)


def in_freelist(data: bytearray, rng: random.Random) -> None:
    data[32:40] = rng.randrange(len(data) // PAGE + 2).to_bytes(4, "big") + rng.randrange(20).to_bytes(4, "big")


def in_indexes(data: bytearray, rng: random.Random) -> None:
    """Pages of indexes, which SQLite trusts."""
    indexes = [number for number in range(1, len(data) // PAGE) if data[number * PAGE] in (2, 10)]
    for number in rng.choices(indexes, k=rng.randint(1, 3)):
        spoil(data, number * PAGE + rng.randrange(PAGE - 40), rng.randint(1, 40), rng)


def pages_swapped(data: bytearray, rng: random.Random) -> None:
    one, two = (slice(number * PAGE, (number + 1) * PAGE) for number in rng.sample(range(len(data) // PAGE), 2))
    data[one], data[two] = data[two], data[one]


def anywhere(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 5)):
        spoil(data, rng.randrange(len(data)), rng.randint(1, 200), rng)


def emptied(data: bytearray, _: random.Random) -> bytearray:
    return data[:0]


OF_FILE: tuple[Damage, ...] = (
    in_cells,
    pages_zeroed,
    cut_off,
    in_header,
    in_freelist,
    in_indexes,
    pages_swapped,
    anywhere,
    emptied,
)


def damage(path: Path, seed: int) -> str:
    """Damage the file at `path`, or its log; the name of what was done."""
    rng = random.Random(seed)
    log = path.with_name(path.name + "-wal")
    if log.exists() and rng.random() < 0.3:
        if rng.random() < 0.3:
            log.unlink()
            return "log gone"
        data = bytearray(log.read_bytes())
        spoil(data, rng.randrange(len(data)), rng.randint(1, 200), rng)
        log.write_bytes(data)
        return "log damaged"
    kind = OF_FILE[seed % len(OF_FILE)]
    data = bytearray(path.read_bytes())
    changed = kind(data, rng)
    path.write_bytes(data if changed is None else changed)
    return kind.__name__


def spoil(data: bytearray, at: int, count: int, rng: random.Random) -> None:
    at = max(0, at)
    count = min(count, len(data) - at)
    data[at : at + count] = rng.randbytes(count)


def untouched(before: bytes, after: bytes, path: Path) -> dict[int, tuple[str, str]]:
    """The messages in the file `before`, which is at `path`, whose bytes stand on some page of the file `after`.

    By id, session and content. Those that reach over several pages are left out, and those on pages in whose place
    the log has others.
    """
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as conn:
        rows = conn.execute("SELECT id, session_id, role, content FROM messages").fetchall()
    logged = LogPages(path.with_name(path.name + "-wal")).pages
    pages = [after[at : at + PAGE] for at in range(0, len(after) - PAGE + 1, PAGE) if at // PAGE + 1 not in logged]
    found = {}
    for row_id, session_id, role, content in rows:
        values = f"{session_id}{role}{content}".encode()
        at = before.find(values)
        start = at // PAGE * PAGE
        page = before[start : start + PAGE]
        head = page[: 8 + 2 * int.from_bytes(page[3:5], "big")]
        cell = slice(max(len(head), at - start - BEFORE_VALUES), at - start + len(values) + 8)
        is_on_one_page = at >= 0 and page[0] == 13 and len(values) < PAGE - 100
        if is_on_one_page and any(other.startswith(head) and other[cell] == page[cell] for other in pages):
            found[row_id] = (session_id, content)
    return found
