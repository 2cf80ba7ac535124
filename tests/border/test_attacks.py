"""Ways out, tried for real in a room of their own: as root and as an ordinary user, at both levels of enforcement."""

import os
import random
from typing import get_args

import pytest

from tests.border import held_table, room, rooms
from tests.border.attacks import ATTACKS
from tests.border.levels import why_not
from tests.border.record import Attack
from tests.border.trial import Verdict

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
COMBINATIONS = tuple((level, who) for level in get_args(rooms.Level) for who in ("root", "ordinary"))
pytestmark = [pytest.mark.real, pytest.mark.skipif(bool(room.why_no_room()), reason=room.why_no_room())]


def chosen(level: str, who: str) -> list[Attack]:
    """All of them under ./check --full; else a quarter, each at one of the four combinations."""
    able = [attack for attack in ATTACKS if held_table.applies(attack, is_root=who == "root")]
    if FULL:
        return able
    quarter = random.Random(23).sample(able, len(able) // 4)
    return quarter[COMBINATIONS.index((level, who)) :: len(COMBINATIONS)]


def why(verdict: Verdict) -> str:
    return f"{verdict.name}: {verdict.breaches + verdict.asked}; {' | '.join(verdict.results)[-600:]}"


@pytest.mark.parametrize(("level", "who"), COMBINATIONS)
def test_the_border_holds_with_a_gate_that_says_yes(level: str, who: str) -> None:
    _skip_unless(level, who)
    tried = [attack for attack in chosen(level, who) if attack.held_by == "border"]
    named = held_table.not_held(is_root=who == "root") if level == "files" else set()
    verdicts = list(rooms.attack([attack.id for attack in tried], level=level, is_root=who == "root"))
    through = {verdict.name: why(verdict) for verdict in verdicts if verdict.breaches}
    assert len(verdicts) == len(tried)
    assert {name: text for name, text in through.items() if name not in named} == {}
    # A row of docs/security.md that is held meanwhile is a wrong one, too.
    assert named & {attack.id for attack in tried} == set(through)


@pytest.mark.parametrize("who", ["root", "ordinary"])
def test_nothing_gets_through_with_nobody_there(who: str) -> None:
    _skip_unless("full", who)
    tried = chosen("full", who)
    tried = tried if FULL else [*tried[::2], *[each for each in ATTACKS if each.held_by == "question"][::4]]
    verdicts = list(rooms.attack([attack.id for attack in tried], level="full", is_root=who == "root", asks=True))
    assert [why(verdict) for verdict in verdicts if verdict.breaches or verdict.asked] == []
    assert len(verdicts) == len(tried)


def _may_be_root() -> bool:
    return os.geteuid() == 0


def _skip_unless(level: str, who: str) -> None:
    if who == "root" and not _may_be_root():
        pytest.skip("attacks as root need root")
    reason = why_not(level)
    if reason:
        pytest.skip(reason)
