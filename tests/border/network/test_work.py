"""Everyday work with the network succeeds where hosts are asked about, with hardly a question."""

import json
import os
import random
import subprocess
import sys

import pytest

from tests.border import room
from tests.border.levels import why_not
from tests.border.network.work import WORK
from tests.border.rooms import ROOT

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
MOST_QUESTIONS = 5
NAMES = [f"{group}: {task.name}" for group, tasks in WORK.items() for task in tasks]
TOGETHER = {
    "a background process",
    "what it brought",
    "npm install",
    "npm ci",
    "npm again",
    *(task.name for task in WORK["this machine"]),
}
pytestmark = [pytest.mark.real, pytest.mark.skipif(bool(room.why_no_room()), reason=room.why_no_room())]


def test_work_with_the_network_succeeds_and_hardly_asks() -> None:
    if why_not("full"):
        pytest.skip(why_not("full"))
    alone = [name for name in NAMES if name.partition(": ")[2] not in TOGETHER]
    some = [*random.Random(35).sample(alone, 8), *(name for name in NAMES if name.startswith("this machine"))]
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    plan = json.dumps({"names": [] if FULL else some, "is_root": False})
    line = [sys.executable, "-m", "tests.border.network.run_work", plan]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=ROOT, env=env, check=True)
    told = json.loads(done.stdout)
    if "missing" in told:
        pytest.skip(told["missing"])
    groups = told["groups"]
    missing = [name for group in groups for name in group["missing"]]

    if missing:
        print(f"not tried, since a program is not installed: {missing}")  # noqa: T201 - counted in the output
    assert {name: text for group in groups for name, text in group["failed"].items()} == {}
    questions = [question for group in groups for question in group["questions"]]
    assert len(questions) <= MOST_QUESTIONS, questions
    assert sum(len(group["done"]) for group in groups) + len(missing) == len(NAMES if FULL else some)


def test_there_are_as_many_tasks_as_promised() -> None:
    assert len(NAMES) >= 60
    assert len(set(NAMES)) == len(NAMES)
