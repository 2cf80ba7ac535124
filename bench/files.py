"""How much the file tools cost over the bare work: ratios in one run, best of several rounds taken in turn.

    python -m bench.files            # all
    python -m bench.files patch read search

Limits: patch of a 10 MB file 5x reading and writing it; search over 100,000 files 1.3x plain rg. A page of 500 lines
costs the same in time and memory for every file larger than what is counted (32 MB).
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from hermes.tools.builtin.search_files import bundled_rg
from tests.tools.files.workbench import Task, task_in

Work: TypeAlias = Callable[[], Awaitable[None]]

ROUNDS = 15
FILES = 100_000


async def main(names: list[str]) -> None:
    benches = {"patch": bench_patch, "read": bench_read, "search": bench_search}
    for name in names or list(benches):
        with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
            async with task_in(Path(folder), timeout_s=3600) as task:
                await benches[name](Path(folder), task)


async def bench_patch(folder: Path, task: Task) -> None:
    line = "a line of text of the usual length, as it stands in many files\n"
    half = line * (5_000_000 // len(line))
    text = f"{half}def needle():\n\treturn 1\n{half}"
    file = folder / "big.txt"

    async def raw() -> None:
        data = file.read_bytes()
        with (folder / "other.txt").open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        (folder / "other.txt").replace(folder / "third.txt")

    async def edit(old: str, new: str) -> None:
        answer = await task.call("patch", mode="replace", path="big.txt", old_string=old, new_string=new)
        assert answer["success"] is (new != "never"), answer

    cases = (
        ("exact", text, "return 1", "return 2"),
        ("indentation", text, "    def needle():\n        return 1\n", "    def needle():\n        return 2\n"),
        ("lookalikes", text.replace("1", "“1”"), 'needle():\n\treturn "1"\n', 'needle():\n\treturn "2"\n'),
        ("not found", text, "def neeedle():\n\treturn 1", "never"),
    )
    for name, before, old, new in cases:

        async def reset(before: str = before) -> None:
            file.write_text(before)
            task.memo.clear()

        await compare(f"patch 10 MB, {name}", partial(edit, old, new), raw, reset, 5.0)


async def bench_read(folder: Path, task: Task) -> None:
    block = b"2026-01-01T00:00:00Z INFO a line of a log of the usual length, number 0000000000\n" * (1 << 14)
    for name, size in (("medium.log", 64 << 20), ("large.log", 1 << 30)):
        with (folder / name).open("wb") as out:
            while out.tell() < size:
                out.write(block)

    async def page(name: str, offset: int = 1) -> None:
        answer = await task.call("read_file", path=name, offset=offset, limit=500)
        assert answer["truncated"], answer

    async def forget() -> None:
        task.memo.clear()

    async def count() -> None:
        run(["wc", "-l", "large.log"], folder)

    await compare("500 lines of 1 GB against 64 MB", lambda: page("large.log"), lambda: page("medium.log"), forget)
    await compare("500 lines at 10,000,000 against wc -l", lambda: page("large.log", 10_000_000), count, forget)
    for name in ("medium.log", "large.log"):
        await forget()
        tracemalloc.start()
        await page(name)
        print(f"500 lines of {name}: at most {tracemalloc.get_traced_memory()[1] / 1e6:.1f} MB held")
        tracemalloc.stop()


async def bench_search(folder: Path, task: Task) -> None:
    for number in range(FILES):
        parent = folder / f"d{number // 500}"
        if number % 500 == 0:
            parent.mkdir()
        needle = "needle\n" if number % 1000 == 0 else ""
        (parent / f"f{number}.txt").write_text(f"file {number}\nsome text\n{needle}")
    rg = bundled_rg()
    assert rg is not None

    async def plain(*words: str) -> None:
        run([rg, *words], folder)

    async def search(total: int, **args: str) -> None:
        answer = await task.call("search_files", **args)
        assert answer["total_count"] == total, answer

    async def forget() -> None:
        task.memo.clear()

    await compare(
        "search 100,000 files",
        lambda: search(FILES // 1000, pattern="needle"),
        lambda: plain("-n", "needle"),
        forget,
        1.3,
    )
    await compare(
        "search with a match in each file",
        lambda: search(FILES, pattern="some text"),
        lambda: plain("-n", "some text"),
        forget,
    )
    await compare(
        "list 100,000 files, newest first",
        lambda: search(FILES, pattern="*.txt", target="files"),
        lambda: plain("--files", "--sortr=modified", "-g", "*.txt"),
        forget,
        1.3,
    )


def run(argv: list[str], folder: Path) -> None:
    subprocess.run(argv, cwd=folder, check=True, capture_output=True)


async def compare(name: str, ours: Work, base: Work, before: Work, limit: float | None = None) -> None:
    times: dict[Work, list[float]] = {ours: [], base: []}
    for _ in range(ROUNDS):
        for work, seen in times.items():
            await before()
            start = time.perf_counter()
            await work()
            seen.append(time.perf_counter() - start)
    ours_s, base_s = (min(seen) for seen in times.values())
    ratio = ours_s / base_s
    verdict = "" if limit is None else f"  (limit {limit:g}: {'ok' if ratio <= limit else 'OVER'})"
    print(f"{name}: {ours_s * 1000:.1f} ms against {base_s * 1000:.1f} ms = {ratio:.2f}x{verdict}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
