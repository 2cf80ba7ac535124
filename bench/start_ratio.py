"""Starts of `hermes` with one question each, in homes that are compared: in turns, in one run, as installed."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from hermes.testing.replies import says
from hermes.testing.server import ServerThread

WARM_ROUNDS = 2  # fill caches, those of bytecode included


def compare_starts(homes: Mapping[str, Path], rounds: int) -> str:
    """The medians for a person, and the ratio of the second home's to the first one's."""
    taken: dict[str, list[float]] = {name: [] for name in homes}
    with (
        tempfile.TemporaryDirectory() as bytecode,
        ServerThread([says("Hello.")] * (len(homes) * (rounds + WARM_ROUNDS))) as server,
    ):
        for number in range(rounds + WARM_ROUNDS):
            for name in sorted(homes, reverse=bool(number % 2)):
                seconds = _start(homes[name], server.base_url, bytecode)
                if number >= WARM_ROUNDS:
                    taken[name].append(seconds)
    first, second = (statistics.median(seconds) for seconds in taken.values())
    shown = ", ".join(f"{name} {statistics.median(seconds) * 1000:.0f} ms" for name, seconds in taken.items())
    return f"start and first request: {shown}, ratio {second / first:.3f}"


def _start(home: Path, address: str, bytecode: str) -> float:
    """Seconds from the start of the process to its end, with one question in between."""
    words = ["chat", "-q", "Hi", "--provider", "custom", "--model", "m", "--base-url", address]
    # An installed program has its bytecode; where Python may not write it, one would measure the compiler.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ |= {"HERMES_HOME": str(home), "HOME": str(home), "PYTHONPYCACHEPREFIX": bytecode}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "hermes", *words], env=environ, check=True, capture_output=True)
    return time.perf_counter() - began
