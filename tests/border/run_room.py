"""The program of a room: `python -m tests.border.run_room PLAN` takes a plan in JSON and prints a verdict per line."""

import json
import os
import sys

import msgspec

from tests.border import everyday, room, surroundings, trial, world
from tests.border.attacks import ATTACKS
from tests.border.tasks import TASKS


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Who does what, at which level."""

    names: list[str]
    level: str = ""  # empty: what the machine gives; "none": the sandbox is switched off
    is_root: bool = True
    asks: bool = False  # approvals as they come, with nobody there; else the gate says yes to all it can
    goes_on: bool = False  # in the same room, although an attack got through
    kind: str = "attacks"


def main() -> None:
    plan = msgspec.json.decode(sys.argv[1], type=Plan)
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever else is printed is no verdict
    path = everyday.search_path()
    room.enter([*room.interpreter_folders(), *_tool_folders()])
    if plan.kind == "tasks":
        everyday.start_ssh_server()
    _leave_first_process()
    _become(plan)

    def tell(verdict: msgspec.Struct) -> None:
        os.write(answers, msgspec.json.encode(verdict) + b"\n")

    if plan.kind == "tasks":
        named = {task.name: task for task in TASKS}
        everyday.run([named[name] for name in plan.names], _config(plan), path, tell)
        return
    surroundings.limits()
    surroundings.own_keyring()
    world.make_template(_config(plan))
    known = {attack.id: attack for attack in ATTACKS}
    for name in plan.names:
        verdict = trial.try_attack(known[name])
        tell(verdict)
        if verdict.breaches and not plan.goes_on:
            return  # what got out may have left anything behind: whoever asked goes on in a new room


def _config(plan: Plan) -> str:
    """The person's config.yaml. Tasks are done at the settings of a new user, but for the level that is tried."""
    settings: dict[str, object] = {}
    terminal: dict[str, object] = (
        {"sandbox": "off"} if plan.level == "none" else {"sandbox_level": plan.level or "auto"}
    )
    if plan.kind == "attacks":
        terminal |= {"timeout": 20, "max_processes": 250, "max_temp_mb": 100}
        settings = {} if plan.asks else {"approvals": {"mode": "off"}}
    return json.dumps({**settings, "terminal": terminal}) + "\n"


def _become(plan: Plan) -> None:
    """Give the room's folders to whoever works in it, and become that one."""
    if os.geteuid() == 0 and not plan.is_root:
        for folder in ("/home", "/run"):
            os.chown(folder, room.ORDINARY, room.ORDINARY)
        room.become_ordinary()
    os.umask(0o022)


def _leave_first_process() -> None:
    """Go on in a child: the first process of the room only reaps what others leave, and ends with this one."""
    child = os.fork()
    if not child:
        return
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _tool_folders() -> list[str]:
    home = os.path.expanduser("~")
    return [f"{home}/.rustup/toolchains"]


if __name__ == "__main__":
    main()
