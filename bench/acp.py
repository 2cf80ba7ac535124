"""What an editor waits for: from the start of `hermes acp` to its answer to `initialize`, against bare Python.

    PYTHONPATH=src python bench/acp.py [--rounds 15]

Both are started in turns, in one run; what counts is the ratio of the medians (at most 15). No figure here is a test.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
START = "from hermes.surfaces.cli.main import main; main(['acp'])"


def bare() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - began


def first_answer(home: str) -> float:
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", START],
        env={**os.environ, "HERMES_HOME": home},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(HELLO)
    process.stdin.flush()
    assert b'"protocolVersion":1' in process.stdout.readline()
    took = time.perf_counter() - began
    process.communicate()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as home:
        first_answer(home)
        pairs = [(bare(), first_answer(home)) for _ in range(rounds)]
    python, hermes = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"bare Python {python * 1000:.1f} ms, initialize answered after {hermes * 1000:.1f} ms")
    print(f"initialize / bare Python: {hermes / python:.1f} (at most 15)")


if __name__ == "__main__":
    main()
