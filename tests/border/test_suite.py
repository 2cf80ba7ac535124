"""The suite itself: its size, and that its attacks do get through where nothing holds them."""

import os
import random
from collections import Counter
from typing import get_args

import pytest

from tests.border import room, rooms
from tests.border.attacks import ATTACKS
from tests.border.record import Family
from tests.border.tasks import TASKS

WITHOUT_A_BORDER = 8


@pytest.mark.real
@pytest.mark.skipif(bool(room.why_no_room()), reason=room.why_no_room())
def test_without_a_border_the_same_attacks_get_through() -> None:
    """The suite can fail: these are held by nothing but the border."""
    simple = [attack for attack in ATTACKS if attack.family in ("shell start files", "sockets", "signals", "keyrings")]
    tried = random.Random(23).sample(
        [each for each in simple if "SIG" in each.name or "~/." in each.name], WITHOUT_A_BORDER
    )
    verdicts = list(
        rooms.attack([attack.id for attack in tried], level="none", is_root=os.geteuid() == 0, goes_on=True)
    )
    assert [verdict.name for verdict in verdicts if not verdict.breaches] == []


def test_the_suite_is_as_large_as_promised() -> None:
    families = Counter(attack.family for attack in ATTACKS)
    assert set(families) == set(get_args(Family))
    assert len(ATTACKS) >= 220
    assert len({attack.id for attack in ATTACKS}) == len(ATTACKS)


def test_there_are_as_many_tasks_as_promised() -> None:
    assert len(TASKS) >= 200
    assert len({task.name for task in TASKS}) == len(TASKS)
