"""What a command costs on the local environment, beside the same command without it; ratios of one run.

Run: python bench/terminal.py [--rounds N] [--gigabytes G]

Ends with 1 when a figure that must hold does not.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from hermes.confinement.plan import PlanRequest
from hermes.redact import Redactor
from hermes.scope import TurnScope
from hermes.seams import Decision
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.environments.local import Border, LocalEnvironment, LocalOptions
from hermes.tools.supervisor.confine.probe import Wish, enforcement
from hermes.tools.supervisor.supervisor import ProcessSupervisor

MOST_RATIO = 3.0
MOST_MORE_MS: dict[Wish, float] = {"full": 8.0, "files": 4.0}  # what each level of confinement may add to a command
MOST_SLOWDOWN = 1.5
MOST_FLOOD_MB = 16.0
# Processor seconds for 100 MB of output from which secrets are hidden, by what is printed.
MOST_CLEANING_S = {
    "lines": ("yes 'the quick brown fox: jumps_over-the.lazy dog 0123456789' | head -c 100000000", 3.0),
    "text without blanks": ("head -c 75000000 /dev/urandom | base64 -w0", 5.0),
}


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--gigabytes", type=float, default=5.0)
    wanted = parser.parse_args()
    pool = DaemonPool(size=4, name="bench")
    with tempfile.TemporaryDirectory() as folder:
        with ahead_of_others():
            held = [await in_environments(folder, pool, lambda plain, boxed: latencies(plain, boxed, wanted.rounds))]
        size = int(wanted.gigabytes * 1e9)
        held.append(await in_environments(folder, pool, lambda plain, _: flood(plain, size)))
        held.append(await in_environments(folder, pool, lambda plain, _: cleaning(plain)))
    return 0 if all(held) else 1


async def in_environments(
    folder: str, pool: DaemonPool, work: Callable[[LocalEnvironment, dict[Wish, LocalEnvironment]], Awaitable[bool]]
) -> bool:
    """What `work` says of fresh environments: without confinement, and by each level that works here."""
    supervisor = ProcessSupervisor()
    redactor = Redactor([f"a-secret-of-the-bench-{number}" for number in range(8)])
    options = LocalOptions(env=os.environ, redactor=redactor)
    plain = LocalEnvironment(supervisor, folder, options, run_blocking=pool.run)
    home = tempfile.mkdtemp(dir=folder)
    request = PlanRequest(workspace=folder, home=os.environ.get("HOME", ""), hermes_home=home, environ=os.environ)
    boxed: dict[Wish, LocalEnvironment] = {
        level: LocalEnvironment(
            supervisor,
            folder,
            LocalOptions(env=os.environ, border=Border(mode="on", level=level, request=request)),
            run_blocking=pool.run,
        )
        for level in MOST_MORE_MS
        if (await enforcement(supervisor, level)).level == level
    }
    holds = await work(plain, boxed)
    for one in (plain, *boxed.values()):
        await one.close()
    await supervisor.close()
    return holds


async def latencies(plain: LocalEnvironment, boxed: dict[Wish, LocalEnvironment], rounds: int) -> bool:
    """`true` with its state kept, against bash alone, one after the other so that a busy machine slows both."""
    await command(plain, "export KEPT=1; kept() { :; }")()
    works = {"bash": bare, "local": command(plain, "true")}
    for level, environment in boxed.items():
        works[level] = command(environment, "true")
        await works[level]()
    times: dict[str, list[float]] = {name: [] for name in works}
    with ahead_of_others():
        for _ in range(rounds):
            for name, work in works.items():
                times[name].append(await timed(work))
    took = {name: undisturbed(values) for name, values in times.items()}
    ratio = took["local"] / took["bash"]
    more_ms = {level: (took[level] - took["local"]) * 1000 for level in boxed}
    half = rounds // 2
    drift = {name: undisturbed(values[half:]) / undisturbed(values[:half]) for name, values in times.items()}
    slowdown = drift["local"] / drift["bash"]
    for name, seconds in took.items():
        print(f"{name:>10}: {seconds * 1000:6.2f} ms, median {statistics.median(times[name]) * 1000:.2f} of {rounds}")
    print(f"local / bash: {ratio:.2f} (at most {MOST_RATIO:g})")
    for level, most in MOST_MORE_MS.items():
        told = f"{more_ms[level]:+.2f} ms (at most {most:g})" if level in more_ms else "not to be had here"
        print(f"confined, level {level}: {told}")
    print(f"second half / first half, beside bash's own: {slowdown:.2f} (at most {MOST_SLOWDOWN:g})")
    are_cheap = all(more <= MOST_MORE_MS[level] for level, more in more_ms.items())
    return ratio <= MOST_RATIO and are_cheap and slowdown <= MOST_SLOWDOWN


@contextlib.contextmanager
def ahead_of_others() -> Iterator[None]:
    """Run before every ordinary program, where that is allowed: what else the machine does is not measured."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except (AttributeError, PermissionError):
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def undisturbed(times: list[float]) -> float:
    """The median of the quickest fifth: what it takes when nothing else wants the processor just then.

    On an idle machine that is the median of all; on a busy one that median tells of the other programs.
    """
    return statistics.median(sorted(times)[: max(1, len(times) // 5)])


async def flood(environment: LocalEnvironment, size: int) -> bool:
    """What a command that prints `size` bytes adds to our resident memory."""
    this = psutil.Process()
    await command(environment, "head -c 10000000 /dev/zero")()
    before = this.memory_info().rss
    begun = time.perf_counter()
    highest = before

    async def watch() -> None:
        nonlocal highest
        while True:
            highest = max(highest, this.memory_info().rss)
            await asyncio.sleep(0.05)

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch())
        await command(environment, f"head -c {size} /dev/zero")()
        watching.cancel()
    added_mb = (highest - before) / 1e6
    seconds = time.perf_counter() - begun
    print(f"{size / 1e9:g} GB printed in {seconds:.1f} s: {added_mb:+.1f} MB resident (at most {MOST_FLOOD_MB:g})")
    return added_mb <= MOST_FLOOD_MB


async def cleaning(environment: LocalEnvironment) -> bool:
    """What it costs to hide secrets in a flood, in processor time of this process."""
    await command(environment, "true")()
    holds = True
    for name, (text, most_s) in MOST_CLEANING_S.items():
        begun = time.process_time()
        await command(environment, text)()
        seconds = time.process_time() - begun
        print(f"100 MB of {name}: {seconds:.2f} s of processor time (at most {most_s:g})")
        holds = holds and seconds <= most_s
    return holds


def command(environment: LocalEnvironment, text: str) -> Callable[[], Awaitable[object]]:
    async def run() -> object:
        return await environment.execute(text, Decision(allowed=True), TurnScope(), timeout_s=600)

    return run


async def bare() -> None:
    subprocess.run(["bash", "-c", "true"], check=True)  # noqa: ASYNC221 - the baseline is exactly this


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
