"""Start rooms and gather what they tell: the side of the suite that is outside."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from tests.border.everyday import TaskVerdict
from tests.border.trial import Verdict

ROOT = Path(__file__).resolve().parents[2]
Level = Literal["full", "files"]
Told = TypeVar("Told", Verdict, TaskVerdict)


class RoomFailed(AssertionError):
    """A room ended without telling what came of its next attack or task."""


def attack(
    names: Sequence[str], *, level: str, is_root: bool, asks: bool = False, goes_on: bool = False
) -> Iterator[Verdict]:
    """Try these attacks one after the other; a new room after each that got through, unless `goes_on`."""
    left = list(names)
    while left:
        plan = {"names": left, "level": level, "is_root": is_root, "asks": asks, "goes_on": goes_on}
        told = 0
        for verdict in _room(plan, Verdict):
            told += 1
            yield verdict
        if not told:
            raise RoomFailed(f"no verdict on {left[0]!r}")
        left = left[told:]


def do_tasks(names: Sequence[str], *, level: str, is_root: bool) -> Iterator[TaskVerdict]:
    """Do these tasks one after the other."""
    plan = {"names": list(names), "level": level, "is_root": is_root, "kind": "tasks"}
    yield from _room(plan, TaskVerdict)


def _room(plan: dict[str, object], kind: type[Told]) -> Iterator[Told]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    line = [sys.executable, "-m", "tests.border.run_room", msgspec.json.encode(plan).decode()]
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=ROOT, env=env) as process:
        assert process.stdout is not None
        try:
            for text in process.stdout:
                yield msgspec.json.decode(text, type=kind)
        finally:
            process.terminate()
