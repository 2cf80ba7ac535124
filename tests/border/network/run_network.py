"""The program of a network room: `python -m tests.border.network.run_network PLAN` prints what it saw as JSON."""

import json
import os
import sys

import msgspec

from tests.border import everyday, room, run_room, session, surroundings, world
from tests.border.network import wires
from tests.border.network.ways_out import WAYS
from tests.border.record import Call

STEPS = 15  # calls of one session, which has a minute: some wait for what never answers


class NetworkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Which ways are tried, by whom, with which network, and whether the gate asks."""

    names: list[str] = []
    is_root: bool = True
    network: str = "ask"
    asks: bool = True


def main() -> None:
    plan = msgspec.json.decode(sys.argv[1], type=NetworkPlan)
    answers = os.dup(1)
    os.dup2(2, 1)
    path = everyday.search_path()
    room.enter([*room.interpreter_folders(), *run_room._tool_folders()])
    why = wires.lay()
    if why:
        os.write(answers, json.dumps({"missing": why}).encode())
        return
    numbers = {name: place for place, name in enumerate(WAYS)}
    witness = wires.Witness()
    servers = wires.PersonsServers(f"http://{wires.way_name(numbers['a granted host sends on'])}/")
    run_room._leave_first_process()
    del servers
    run_room._become(run_room.Plan(names=[], is_root=plan.is_root))
    witness.start()
    surroundings.limits()
    terminal = {"network": plan.network, "network_hosts": ["*.granted.test", "exact-meta.test"], "timeout": 20}
    guards = {"hard_stop_enabled": False, "warnings_enabled": False}
    settings = {
        "terminal": terminal,
        "tool_loop_guardrails": guards,
        **({} if plan.asks else {"approvals": {"mode": "off"}}),
    }
    world.make_template(json.dumps(settings) + "\n")
    results: dict[str, str] = {}
    for first in range(0, len(plan.names), STEPS):
        world.lay_out()
        names = plan.names[first : first + STEPS]
        told = session.run_session([_meant(WAYS[name], numbers[name]) for name in names], {"PATH": path})
        results |= dict(zip(names, told, strict=False))
    seen = sorted(witness.seen())
    witness.close()
    os.write(answers, json.dumps({"seen": seen, "results": {k: v[-400:] for k, v in results.items()}}).encode())


def _meant(call: Call, place: int) -> Call:
    """The call with the name and the address that are its own."""
    put = {
        key: value.replace("HOST", wires.way_name(place)).replace("ADDR", wires.way_address(place))
        if isinstance(value, str) and key in ("command", "code")
        else value
        for key, value in call.arguments.items()
    }
    return Call(call.tool, put)


if __name__ == "__main__":
    main()
