"""When the sandbox was in a command's way, offer through the gate to let it pass: one path, or one run outside."""

import re
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from hermes.scope import TurnScope
from hermes.seams import Action, Decision, ExecResult, ToolContext
from hermes.tools.environments.sandbox import Sandbox
from hermes.types import StatusChanged

_READ_ONLY = (
    re.compile(r"read-only file system[^\n'\"]{0,40}['\"](/[^'\"\n]+)['\"]", re.IGNORECASE),
    re.compile(r"['\"\u2018](/[^'\"\u2019\n]+)['\"\u2019]:? ?[^\n]{0,60}read-only file system", re.IGNORECASE),
    re.compile(r"(?:^|[\s(])(/[^\s:'\"]+): [^\n]{0,60}read-only file system", re.IGNORECASE | re.MULTILINE),
)
_NO_PRIVILEGE = re.compile(r"no new privileges|bwrap: |must be setuid root|Operation not permitted", re.IGNORECASE)
_NO_NETWORK = re.compile(r"Network is unreachable|Could not resolve host|Temporary failure in name resolution")


class Denial(Struct, frozen=True):
    """The sandbox was in the way: of writing at `path`, or of something that only the outside allows."""

    path: str | None
    why: str


def denial_in(output: str, exit_code: int, *, network: bool) -> Denial | None:
    """What the sandbox refused, read from what the command said; None when it was not the sandbox."""
    if exit_code == 0:
        return None
    for pattern in _READ_ONLY:
        found = pattern.search(output)
        if found:
            return Denial(found[1], f"the sandbox keeps {found[1]} read-only")
    if "read-only file system" in output.lower():
        return Denial(None, "the sandbox keeps a folder read-only that the command writes to")
    if not network and _NO_NETWORK.search(output):
        return Denial(None, "the sandbox has no network (terminal.sandbox_network: false)")
    if _NO_PRIVILEGE.search(output):
        return Denial(None, "the command needs a privilege that the sandbox does not give")
    return None


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

    @property
    def sandbox(self) -> Sandbox | None: ...


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
    sandbox = environment.sandbox
    if sandbox is None or result.timed_out:
        return Settled(result)
    denial = denial_in(result.output, result.exit_code, network=sandbox.options.network)
    if denial is None:
        return Settled(result)
    folder = await ctx.in_thread(sandbox.folder_for, denial.path) if denial.path else None
    denial = Denial(folder, f"{denial.why}, and a yes makes {folder} writable" if folder else denial.why)
    decision = await ctx.gate.decide(_question(command, denial, ctx), ctx.scope)
    if not decision.allowed:
        return Settled(result, f"{denial.why}; that was not allowed: {decision.reason or 'choose another way'}")
    if folder is not None:
        sandbox.allow(folder)
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
