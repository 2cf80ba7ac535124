"""What a command costs on the local environment, beside the same command without it; ratios of one run.

Run: python bench/terminal.py [--rounds N] [--gigabytes G]

Ends with 1 when a figure that must hold does not.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from hermes.scope import TurnScope
from hermes.seams import Decision
from hermes.tools.environments.local import LocalEnvironment, LocalOptions
from hermes.tools.environments.sandbox import SandboxOptions
from hermes.tools.pool import DaemonPool
from hermes.tools.supervisor.supervisor import ProcessSupervisor

MOST_RATIO = 3.0
MOST_SANDBOX_MS = 10.0
MOST_SANDBOX_RATIO = 1.5
MOST_SLOWDOWN = 1.5
MOST_FLOOD_MB = 16.0


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--gigabytes", type=float, default=5.0)
    wanted = parser.parse_args()
    supervisor, pool = ProcessSupervisor(), DaemonPool(size=4, name="bench")
    with tempfile.TemporaryDirectory() as folder:
        plain = LocalEnvironment(supervisor, folder, LocalOptions(env=os.environ), run_blocking=pool.run)
        sandbox = SandboxOptions(mode="auto", workspace=folder)
        boxed = LocalEnvironment(
            supervisor, folder, LocalOptions(env=os.environ, sandbox=sandbox), run_blocking=pool.run
        )
        held = [await latencies(plain, boxed, wanted.rounds), await flood(plain, int(wanted.gigabytes * 1e9))]
        await plain.close()
        await boxed.close()
    await supervisor.close()
    return 0 if all(held) else 1


async def latencies(plain: LocalEnvironment, boxed: LocalEnvironment, rounds: int) -> bool:
    """`true` with its state kept, against bash alone, one after the other so that a busy machine slows both."""
    await command(plain, "export KEPT=1; kept() { :; }")()
    await command(boxed, "true")()
    times: dict[str, list[float]] = {"bash": [], "local": [], "sandboxed": []}
    alone: list[float] = []
    for _ in range(rounds):
        times["bash"].append(await timed(bare))
        if boxed.sandbox is not None:
            alone.append(await timed(bubblewrap_alone))
        times["local"].append(await timed(command(plain, "true")))
        times["sandboxed"].append(await timed(command(boxed, "true")))
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratio = medians["local"] / medians["bash"]
    more_ms = (medians["sandboxed"] - medians["local"]) * 1000
    quarter = max(1, rounds // 4)
    drift = [statistics.median(times[name][-quarter:]) / statistics.median(times[name][:quarter]) for name in times]
    slowdown = drift[1] / drift[0]
    for name, median in medians.items():
        print(f"{name:>10}: {median * 1000:6.2f} ms median of {rounds}")
    print(f"local / bash: {ratio:.2f} (at most {MOST_RATIO:g})")
    has_sandbox = boxed.sandbox is not None
    # Bubblewrap has a price of its own, which grows with the load of the machine: ours is judged beside it.
    alone_ms = statistics.median(alone) * 1000 if alone else 0.0
    most_ms = max(MOST_SANDBOX_MS, MOST_SANDBOX_RATIO * alone_ms)
    print(
        f"sandbox: {more_ms:+.2f} ms (at most {MOST_SANDBOX_MS:g}, or {MOST_SANDBOX_RATIO:g} times bubblewrap alone, "
        f"which took {alone_ms:.2f})"
        if has_sandbox
        else "sandbox: none here"
    )
    print(f"last quarter / first quarter, beside bash's own: {slowdown:.2f} (at most {MOST_SLOWDOWN:g})")
    return ratio <= MOST_RATIO and (not has_sandbox or more_ms <= most_ms) and slowdown <= MOST_SLOWDOWN


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


def command(environment: LocalEnvironment, text: str) -> Callable[[], Awaitable[object]]:
    async def run() -> object:
        return await environment.execute(text, Decision.own("bench"), TurnScope(), timeout_s=600)

    return run


async def bare() -> None:
    subprocess.run(["bash", "-c", "true"], check=True)  # noqa: ASYNC221 - the baseline is exactly this


async def bubblewrap_alone() -> None:
    line = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--", "true"]
    subprocess.run(line, check=True)  # noqa: ASYNC221


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
