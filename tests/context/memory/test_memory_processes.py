"""Many processes write memory at once, and some are killed: nothing accepted is lost, no reader sees a ruin."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.context.memory.entries import parsed, size_of
from hermes.context.memory.memory_files import MemoryFiles
from hermes.context.memory.memory_history import replayed

FULL = bool(os.environ.get("HERMES_TEST_FULL"))
WRITER = Path(__file__).with_name("memory_writer.py")
PROCESSES, WRITES, KILLS = (16, 1000, 100) if FULL else (6, 30, 8)


def _start(home: Path, name: str, acknowledged: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, str(WRITER), str(home), name, str(WRITES), str(acknowledged)]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def _whole(text: str) -> bool:
    """Whether every entry is one that a writer wrote, and the limit holds."""
    entries = parsed(text)
    return size_of(entries) <= 2200 and all(name.isalnum() and number.isdigit() for name, _, number in _split(entries))


def _split(entries: list[str]) -> list[tuple[str, str, str]]:
    return [entry.partition(".") for entry in entries]


def _expected(acknowledged: list[Path]) -> set[str]:
    kept: set[str] = set()
    for file in acknowledged:
        for line in file.read_text().splitlines():
            (kept.add if line.startswith("+ ") else kept.discard)(line[2:])
    return kept


def test_writers_side_by_side_lose_nothing_and_readers_see_whole_files(tmp_path: Path) -> None:
    lists = [tmp_path / f"list{number}" for number in range(PROCESSES)]
    writers = [_start(tmp_path, f"w{number}", file) for number, file in enumerate(lists)]
    path, seen = MemoryFiles(tmp_path).path("memory"), 0
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            assert _whole(path.read_text())
            seen += 1
    ended = [(writer.wait(), writer.stderr.read()) for writer in writers if writer.stderr]

    assert ended == [(0, b"")] * PROCESSES
    assert seen > 10
    files = MemoryFiles(tmp_path)
    assert set(files.entries("memory")) == _expected(lists)
    assert replayed(files.history.read(), "memory") == files.entries("memory")
    for writer in writers:
        assert writer.stderr
        writer.stderr.close()


@pytest.mark.parametrize("seed", [7])
def test_kills_lose_no_accepted_entry_and_leave_a_file_that_goes_on(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = MemoryFiles(tmp_path).path("memory")
    lists: list[Path] = []
    for number in range(KILLS):
        file = tmp_path / f"list{number}"
        lists.append(file)
        writer = _start(tmp_path, f"k{number}", file)
        wanted = rng.randrange(1, 12)
        while writer.poll() is None and (not file.exists() or len(file.read_bytes().splitlines()) < wanted):
            if path.exists():
                assert _whole(path.read_text())
        writer.kill()
        writer.wait()
        assert writer.stderr
        writer.stderr.close()
    files = MemoryFiles(tmp_path)
    files.settled(0.0)

    kept, expected = set(files.entries("memory")), _expected(lists)
    # Killed between a write and its acknowledgement, the last entry of a process may be there, or gone, as well.
    unclear = {entry for file in lists for entry in _unclear(file)}
    assert expected - unclear <= kept
    assert kept - expected <= unclear
    assert replayed(files.history.read(), "memory") == files.entries("memory")


def _unclear(file: Path) -> set[str]:
    """What the process was at when it was killed: the entry after the last that it told of, or those it removed."""
    lines = file.read_text().splitlines()
    name = f"k{file.name.removeprefix('list')}"
    numbers = [int(line.rpartition(".")[2]) for line in lines if line.startswith("+ ")]
    after = {f"{name}.{number:05d}" for number in range(max(numbers, default=-1) + 1, max(numbers, default=-1) + 40)}
    return after | ({line[2:] for line in lines} if any(line.startswith("- ") for line in lines) else set())
