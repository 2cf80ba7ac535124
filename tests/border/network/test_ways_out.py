"""No packet leaves for a host that was not granted: every way is tried in a room where each packet is seen."""

import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest

from tests.border import room
from tests.border.levels import why_not
from tests.border.network import wires
from tests.border.network.ways_out import HELD_ANYWAY, SLOW_WHEN_OPEN, WAYS
from tests.border.rooms import ROOT

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
pytestmark = [pytest.mark.real, pytest.mark.skipif(bool(room.why_no_room()), reason=room.why_no_room())]


def tried(names: list[str], **plan: Any) -> tuple[set[tuple[str, int]], dict[str, str]]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    line = [sys.executable, "-m", "tests.border.network.run_network", json.dumps({"names": names, **plan})]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=ROOT, env=env, check=True)
    told = json.loads(done.stdout)
    if "missing" in told:
        pytest.skip(told["missing"])
    assert set(told["results"]) == set(names), told["results"]
    return {(host, port) for host, port in told["seen"]}, told["results"]


def chosen(place: int, parts: int) -> list[str]:
    """All of them under ./check --full, else a part of them."""
    names = list(WAYS)
    random.Random(35).shuffle(names)
    return list(WAYS) if FULL else names[place::parts]


@pytest.mark.parametrize(("who", "asks"), [("root", True), ("ordinary", True), ("ordinary", False), ("root", False)])
def test_no_packet_leaves_for_a_host_that_was_not_granted(who: str, asks: bool) -> None:
    if why_not("full"):
        pytest.skip(why_not("full"))
    if who == "root" and os.geteuid() != 0:
        pytest.skip("attacks as root need root")
    names = chosen([("root", True), ("ordinary", True), ("ordinary", False), ("root", False)].index((who, asks)), 8)
    seen, results = tried(names, is_root=who == "root", asks=asks)
    assert wires.escaped(seen) == set(), results


def test_with_an_open_network_the_same_ways_lead_out() -> None:
    """The suite can fail: most of these send a packet where nothing holds them."""
    names = [name for name in chosen(5, 8) if name not in HELD_ANYWAY | SLOW_WHEN_OPEN]
    seen, results = tried(names, is_root=False, network="open", asks=False)
    numbers = {name: place for place, name in enumerate(WAYS)}
    hosts = {host for host, _ in wires.escaped(seen)}
    own = [name for name in names if wires.way_address(numbers[name]) in hosts]
    assert len(own) >= len(names) // 2, results


def test_there_are_as_many_ways_as_promised() -> None:
    assert len(WAYS) >= 60
