"""Everyday developer work succeeds inside the border at the settings of a new user, and hardly any of it asks."""

import os
import random

import pytest

from tests.border import room, rooms
from tests.border.levels import why_not
from tests.border.tasks import TASKS

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
MOST_QUESTIONS = 5
pytestmark = [pytest.mark.real, pytest.mark.skipif(bool(room.why_no_room()), reason=room.why_no_room())]


def test_everyday_tasks_succeed_and_hardly_ask() -> None:
    if why_not("full"):
        pytest.skip(why_not("full"))
    names = [task.name for task in TASKS]
    chosen = names if FULL else random.Random(23).sample(names, len(names) // 10)
    verdicts = list(rooms.do_tasks(chosen, level="full", is_root=False))
    missing = [f"{verdict.name} ({verdict.missing})" for verdict in verdicts if verdict.missing]

    if missing:
        print(f"not tried, since a program is not installed: {missing}")  # noqa: T201 - counted in the output
    assert {verdict.name: verdict.failed for verdict in verdicts if verdict.failed} == {}
    questions = [f"{verdict.name}: {question}" for verdict in verdicts for question in verdict.questions]
    assert len(questions) <= MOST_QUESTIONS, questions
    assert len(verdicts) == len(chosen)
