"""When the sandbox was in a command's way, offer through the gate to let it pass: one path, or one run outside."""

import os
import re
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from hermes.confinement.policy import Confinement, is_below
from hermes.scope import TurnScope
from hermes.seams import Action, Decision, ExecResult, ToolContext
from hermes.types import StatusChanged

_READ_ONLY = (
    re.compile(r"read-only file system[^\n'\"]{0,40}['\"](/[^'\"\n]+)['\"]", re.IGNORECASE),
    re.compile(r"['\"\u2018](/[^'\"\u2019\n]+)['\"\u2019]:? ?[^\n]{0,60}read-only file system", re.IGNORECASE),
    re.compile(r"(?:^|[\s(])(/[^\s:'\"]+): [^\n]{0,60}read-only file system", re.IGNORECASE | re.MULTILINE),
)
_DENIED = re.compile(
    r"(?:^|[\s('\"\u2018])(/[^\s:'\"\u2019]+)['\"\u2019]?: [^\n]{0,60}permission denied", re.IGNORECASE | re.MULTILINE
)
_NO_PRIVILEGE = re.compile(r"no new privileges|bwrap: |must be setuid root|Operation not permitted", re.IGNORECASE)
_NO_NETWORK = re.compile(r"Network is unreachable|Could not resolve host|Temporary failure in name resolution")


class Denial(Struct, frozen=True):
    """The sandbox was in the way: of writing at `path`, or of something that only the outside allows."""

    path: str | None
    why: str


def denial_in(output: str, exit_code: int, confined: Confinement) -> Denial | None:
    """What the sandbox refused, read from what the command said; None when it was not the sandbox."""
    if exit_code == 0:
        return None
    for pattern in _READ_ONLY:
        found = pattern.search(output)
        if found:
            return Denial(found[1], f"the sandbox keeps {found[1]} read-only")
    if confined.level == "files":
        for found in _DENIED.finditer(output):
            if not confined.may_write(os.path.realpath(found[1])):
                return Denial(found[1], f"the sandbox does not let commands write to {found[1]}")
    if "read-only file system" in output.lower():
        return Denial(None, "the sandbox keeps a folder read-only that the command writes to")
    if not confined.network and _NO_NETWORK.search(output):
        return Denial(None, "the sandbox has no network (terminal.sandbox_network: false)")
    if _NO_PRIVILEGE.search(output):
        return Denial(None, "the command needs a privilege that the sandbox does not give")
    return None


def folder_for(path: str, home: str) -> str | None:
    """The folder that must be writable for a write at `path`; None when it would be the whole home or more."""
    found = Path(path)
    while not found.exists():
        found = found.parent
    folder = os.path.realpath(found if found.is_dir() else found.parent)
    return None if is_below(home or "/", folder) else folder


class Settled(NamedTuple):
    """The result that counts, and what there is to say about the sandbox."""

    result: ExecResult
    note: str = ""


@runtime_checkable
class RunsOutside(Protocol):
    """An environment that can run a command outside the border that it has around others."""

    async def execute_outside(
        self, command: str, decision: Decision, scope: TurnScope, *, timeout_s: float | None = None, cwd: str
    ) -> ExecResult: ...


@runtime_checkable
class Sandboxed(RunsOutside, Protocol):
    """An environment whose commands may run in a sandbox."""

    sandbox_note: str

    async def confinement(self) -> Confinement: ...
    def widen(self, wider: Confinement) -> None: ...


async def run_outside(command: str, decision: Decision, ctx: ToolContext, timeout_s: float, *, cwd: str) -> Settled:
    """Run a command that a rule or a yes sends outside the border."""
    assert isinstance(ctx.environment, RunsOutside)
    result = await ctx.environment.execute_outside(command, decision, ctx.scope, timeout_s=timeout_s, cwd=cwd)
    return Settled(result, "it ran outside the border, as it was allowed to")


async def past_sandbox(command: str, result: ExecResult, ctx: ToolContext, timeout_s: float, *, cwd: str) -> Settled:
    """`result`, or that of a second run when the sandbox refused something and the gate allowed it.

    The first run, from `cwd`, may have done part of its work; the question says that the command runs again.
    """
    environment = ctx.environment
    if not isinstance(environment, Sandboxed):
        return Settled(result)
    if environment.sandbox_note:
        note, environment.sandbox_note = environment.sandbox_note, ""
        ctx.emit(StatusChanged(kind="sandbox", message=note))
        return Settled(result, note)
    confined = await environment.confinement()
    if confined.level == "none" or result.timed_out:
        return Settled(result)
    denial = denial_in(result.output, result.exit_code, confined)
    if denial is None:
        return Settled(result)
    folder = await ctx.in_thread(folder_for, denial.path, confined.home) if denial.path else None
    denial = Denial(folder, f"{denial.why}, and a yes makes {folder} writable" if folder else denial.why)
    decision = await ctx.gate.decide(_question(command, denial, ctx), ctx.scope)
    if not decision.allowed:
        return Settled(result, f"{denial.why}; that was not allowed: {decision.reason or 'choose another way'}")
    if folder is not None:
        environment.widen(confined.with_root(folder, "a yes"))
        again = await ctx.environment.execute(command, decision, ctx.scope, timeout_s=timeout_s, cwd=cwd)
        return Settled(again, f"{denial.why}; that was allowed, and the command ran again")
    again = await environment.execute_outside(command, decision, ctx.scope, timeout_s=timeout_s, cwd=cwd)
    return Settled(again, f"{denial.why}; it was allowed to run once outside the sandbox")


def _question(command: str, denial: Denial, ctx: ToolContext) -> Action:
    details = {"sandbox": "allow_path" if denial.path else "run_outside", "why": denial.why, "runs_again": True}
    return Action(
        kind="write" if denial.path else "command",
        tool="terminal",
        text=denial.path or command,
        cwd=ctx.environment.cwd,
        backend=ctx.environment.kind,
        route=ctx.route,
        session_id=ctx.session_id,
        task_id=ctx.task_id,
        details={**details, "command": command},
    )
