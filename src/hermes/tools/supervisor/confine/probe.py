"""What this machine can enforce: tried for real, once in the life of a process."""

import os
import platform
import sys
import tempfile
from typing import Literal, TypeAlias

from hermes.confinement.plan import Enforcement
from hermes.confinement.policy import Confinement, PathRule
from hermes.errors import ToolError
from hermes.programs import find_program
from hermes.seams import Decision, SpawnSpec, Supervisor
from hermes.tools.supervisor.confine import landlock
from hermes.tools.supervisor.confine.system_calls import MACHINES

Wish: TypeAlias = Literal["auto", "full", "files"]
OLDEST_LANDLOCK = 3  # before it, a file could be emptied without the right to write it
_WORKED = 42
_MOST_SAID = 300
_MORE_TRIES = 3
_MOUNT_FAILED = "bwrap: Can't "  # its first words then

_answers: dict[tuple[str, str], Enforcement] = {}  # by program and wish: it does not change while a runtime lives


async def enforcement(supervisor: Supervisor, wish: Wish = "auto", *workspaces: str) -> Enforcement:
    """The highest level that works here, of those that are wished for, and why it is no higher."""
    if sys.platform != "linux":
        return Enforcement("none", why=f"nothing on {sys.platform} is known to enforce it")
    program = find_program("bwrap", os.environ, *workspaces) or ""
    if (program, wish) not in _answers:
        _answers[program, wish] = await _tried(supervisor, wish, program)
    return _answers[program, wish]


async def _tried(supervisor: Supervisor, wish: Wish, program: str) -> Enforcement:
    why = "bubblewrap (the program bwrap) is not installed" if not program else ""
    if wish == "files":
        why = "terminal.sandbox_level is files"
    elif program:
        full = Confinement(level="full", workspace=tempfile.gettempdir(), bwrap=program)
        said = await _try(supervisor, full)
        for _ in range(_MORE_TRIES):
            if said is None or not said.startswith(_MOUNT_FAILED):
                break
            said = await _try(supervisor, full)  # a socket of another program may go while it is mounted over
        if said is None:
            return Enforcement("full", program)
        why = f"bubblewrap does not work here: {said}"
    if wish == "full":
        return Enforcement("none", why=why)
    lack = _lack_of_landlock()
    if not lack:
        rules = (PathRule(tempfile.gettempdir(), "write", "temp"),)
        said = await _try(supervisor, Confinement(level="files", workspace=tempfile.gettempdir(), rules=rules))
        if said is None:
            return Enforcement("files", why=why)
        lack = f"Landlock does not work here: {said}"
    return Enforcement("none", why=f"{why}, and {lack}")


def _lack_of_landlock() -> str:
    if platform.machine() not in MACHINES:
        return f"there is no system call filter for {platform.machine()}"
    if landlock.version() < OLDEST_LANDLOCK:
        return "this kernel has no Landlock, or an old one"
    return ""


async def _try(supervisor: Supervisor, confined: Confinement) -> str | None:
    """Run a shell that says a number, confined; None when it did, else what went wrong."""
    spec = SpawnSpec(
        argv=("/bin/sh", "-c", f"exit {_WORKED}"),
        cwd="/",
        env={"PATH": os.defpath},
        confinement=confined,
        owner="probe",
    )
    said = bytearray()
    try:
        child = await supervisor.spawn(Decision.own("what can be enforced here"), spec)
        try:
            async for chunk in child.output():
                said += chunk[:_MOST_SAID]
            code = await child.wait()
        finally:
            child.release()
    except ToolError as error:
        return str(error)
    if code == _WORKED:
        return None
    return said[:_MOST_SAID].decode("utf-8", "replace").strip() or f"exit code {code}"
