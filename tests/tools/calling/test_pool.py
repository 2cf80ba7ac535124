"""The pool of daemon threads, and the loops that serve sync callers."""

import asyncio
import contextvars
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hermes.errors import ToolError
from hermes.tools.calling.loops import loops_held_up, run_sync
from hermes.tools.calling.pool import DaemonPool

name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")


async def test_work_carries_context_and_errors_and_reuses_threads() -> None:
    pool = DaemonPool()
    name.set("caller")
    assert await pool.run(name.get) == "caller"
    with pytest.raises(ZeroDivisionError):
        await pool.run(lambda: 1 / 0)
    for _ in range(20):
        await pool.run(threading.get_ident)
    assert pool.threads <= 2
    with pytest.raises(ToolError, match="SystemExit"):
        await pool.run(sys.exit, 3)
    pool.close()


async def test_as_many_threads_as_are_needed_and_no_more_than_allowed() -> None:
    pool = DaemonPool(size=3)
    inside = threading.Barrier(4)
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(pool.run(inside.wait, 10))
        group.create_task(asyncio.to_thread(inside.wait, 10))
    assert pool.threads == 3
    pool.close()


async def test_an_abandoned_thread_is_counted_does_not_starve_the_rest_and_ends_when_it_can() -> None:
    pool = DaemonPool(size=1)
    release, begun, ended = threading.Event(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def stuck() -> None:
        loop.call_soon_threadsafe(begun.set)
        release.wait(30)
        ended.set()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(pool.run(stuck))
        await begun.wait()
        waiting = group.create_task(pool.run(lambda: "served"))
        await asyncio.sleep(0)
        task.cancel()
    assert waiting.result() == "served"
    assert pool.abandoned == 1
    release.set()
    assert await asyncio.to_thread(ended.wait, 10)
    for _ in range(1000):
        if pool.abandoned == 0:
            break
        await pool.run(threading.get_ident)
    assert pool.abandoned == 0
    pool.close()


async def test_work_that_had_not_begun_is_dropped_when_its_caller_goes() -> None:
    pool = DaemonPool(size=1)
    release, begun = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    ran: list[int] = []

    def first() -> None:
        loop.call_soon_threadsafe(begun.set)
        release.wait(30)

    async with asyncio.TaskGroup() as group:
        running = group.create_task(pool.run(first))
        await begun.wait()
        queued = group.create_task(pool.run(ran.append, 1))
        await asyncio.sleep(0)
        queued.cancel()
        await asyncio.sleep(0)
        release.set()
        await running
    await pool.run(ran.append, 2)
    assert ran == [2]
    assert pool.abandoned == 0
    pool.close()


async def test_a_quick_function_lets_others_run_and_may_become_slow_or_fail() -> None:
    pool = DaemonPool()
    release = threading.Event()
    ticks = 0
    mode = "quick"

    def work() -> str:
        if mode == "slow":
            assert release.wait(30)
        if mode == "broken":
            raise ZeroDivisionError
        return mode

    async def tick() -> None:
        nonlocal ticks
        while mode == "quick":
            ticks += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(tick())
        for _ in range(200):
            assert await pool.run(work) == "quick"
        mode = "slow"
    assert ticks >= 200, "each call gave way at least once"
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(pool.run(work))
        await asyncio.sleep(0)
        release.set()
    assert slow.result() == "slow"
    mode = "broken"
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await pool.run(work)
    pool.close()


def test_a_stuck_thread_does_not_delay_the_end_of_the_process(tmp_path: Path) -> None:
    script = tmp_path / "stuck.py"
    script.write_text(
        "import asyncio, threading\n"
        "from hermes.tools.calling.pool import DaemonPool\n"
        "async def main():\n"
        "    pool = DaemonPool()\n"
        "    try:\n"
        "        async with asyncio.timeout(0.1):\n"
        "            await pool.run(threading.Event().wait)\n"
        "    except TimeoutError:\n"
        "        print('left', pool.abandoned)\n"
        "asyncio.run(main())\n",
        encoding="utf-8",
    )
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={"PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("left 1\n", 0), done.stderr


FORKED = """
import asyncio, os, sys
from hermes.tools.calling.pool import DaemonPool

pool = DaemonPool()
asyncio.run(pool.run(len, "a"))
if (child := os.fork()) == 0:
    os._exit(asyncio.run(asyncio.wait_for(pool.run(len, "abc"), 20)))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_of_the_process_has_threads_of_its_own() -> None:
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=60, check=False).returncode == 3


def test_sync_callers_share_one_loop_that_never_closes() -> None:
    async def where() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    first = run_sync(where())
    box: list[asyncio.AbstractEventLoop] = []
    thread = threading.Thread(target=lambda: box.append(run_sync(where())))
    thread.start()
    thread.join()

    async def inside() -> asyncio.AbstractEventLoop:
        return run_sync(where())

    assert box[0] is first
    assert asyncio.run(inside()) is first
    assert not first.is_closed()


def test_nesting_goes_one_loop_deeper_and_never_waits_for_itself() -> None:
    def nested(depth: int) -> int:
        async def work() -> int:
            return 1 if depth == 0 else 1 + nested(depth - 1)

        return run_sync(work(), 30)

    async def through_threads(depth: int) -> int:
        if depth == 0:
            return 1
        return await DaemonPool().run(lambda: 1 + run_sync(through_threads(depth - 1), 30))

    assert nested(4) == 5
    assert run_sync(through_threads(4), 30) == 5


def test_past_its_limit_the_coroutine_is_cancelled() -> None:
    cancelled = threading.Event()

    async def forever() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError, match="no result within"):
        run_sync(forever(), 0.05)
    assert cancelled.wait(10)


def test_a_loop_that_is_blocked_is_left_counted_and_not_waited_for() -> None:
    release, blocking = threading.Event(), threading.Event()

    async def blocks() -> str:
        blocking.set()
        release.wait(30)
        return "at last"

    async def fine() -> str:
        return "fine"

    box: list[str] = []
    thread = threading.Thread(target=lambda: box.append(run_sync(blocks(), 30)))
    thread.start()
    assert blocking.wait(10)
    assert run_sync(fine(), 30) == "fine"
    assert loops_held_up() == 1
    release.set()
    thread.join(30)
    assert box == ["at last"]

    async def moving() -> int:
        return loops_held_up()

    for _ in range(1000):
        if run_sync(moving(), 30) == 0:
            break
    assert loops_held_up() == 0


def test_a_coroutine_that_leaves_does_not_take_the_loop_along() -> None:
    async def leaves() -> None:
        raise SystemExit(1)

    async def fine() -> str:
        return "fine"

    with pytest.raises(ToolError, match="SystemExit"):
        run_sync(leaves())
    assert run_sync(fine()) == "fine"
