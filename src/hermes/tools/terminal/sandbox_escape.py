"""When the sandbox was in a command's way, offer through the gate to let it pass: one path, or one run outside."""

import os
import re
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from hermes.confinement.deciding_rule import deciding_rule
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
_NO_PRIVILEGE = re.compile(r"no new privileges|bwrap: |must be setuid root", re.IGNORECASE)
_NO_SOCKET = re.compile(
    r"Cannot connect to the (?:Docker|Podman) daemon|docker\.sock|podman\.sock|system bus", re.IGNORECASE
)
# What no yes to a command's question opens: it is hidden or believed by other programs.
_GUARDED = ("secret", "hermes", "socket", "protected", "self-running", "git-config")
_NO_NETWORK = re.compile(r"Network is unreachable|Could not resolve host|Temporary failure in name resolution")


class Denial(Struct, frozen=True):
    """The sandbox was in the way: of writing at `path`, or of something that only the outside allows."""

    path: str | None
    why: str
    is_final: bool = False  # nobody is asked: it is told


def denial_in(output: str, exit_code: int, confined: Confinement) -> Denial | None:
    """What the sandbox was in the way of; None when it was not.

    Only the kernel sees what a program is refused; what is known here is what the command says of it. So a path counts
    when the border does keep it, and every sentence tells where it is from.
    """
    if exit_code == 0:
        return None
    patterns = (*_READ_ONLY, _DENIED) if confined.level == "files" else _READ_ONLY
    for found in (match for pattern in patterns for match in pattern.finditer(output)):
        real = os.path.realpath(found[1])
        rule = deciding_rule(confined, real)
        if rule is not None and rule.access == "write":
            continue  # whatever it says, the border lets it
        if rule is not None and rule.kind in _GUARDED:
            return Denial(None, f"the border keeps {found[1]} from commands: {rule.why}", is_final=True)
        return Denial(real, f"the command says that it could not write {found[1]}, which the border keeps as it is")
    if "read-only file system" in output.lower():
        why = "the command says that something is read-only; the border keeps much so, but it is not known what"
        return Denial(None, why, is_final=True)
    if _NO_SOCKET.search(output):
        why = "sockets of this machine, such as that of docker, are out of sight inside the border"
        return Denial(None, why, is_final=True)
    if not confined.network and not confined.namespaces and _NO_NETWORK.search(output):
        return Denial(None, "commands have no network here")
    if _NO_PRIVILEGE.search(output):
        return Denial(None, "the command says that it needs a privilege, and inside the border there is none")
    return None


def folder_for(path: str, confined: Confinement) -> str | None:
    """The folder that must be writable for a write at `path`; None when more than that would open with it.

    The whole home or more is too much, and so is a folder that holds something hidden or guarded.
    """
    found = Path(path)
    while not found.exists():
        found = found.parent
    folder = os.path.realpath(found if found.is_dir() else found.parent)
    guarded = (rule.path for rule in confined.of_kind("secret", "hermes", "socket"))
    is_too_much = is_below(confined.home or "/", folder) or any(is_below(path, folder) for path in guarded)
    return None if is_too_much else folder


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
    if denial.is_final:
        return Settled(result, denial.why)
    folder = await ctx.in_thread(folder_for, denial.path, confined) if denial.path else None
    if folder is not None and denial.path is not None:
        why = f"{denial.why}; a yes makes {folder} writable and runs the command again"
        denial = Denial(f"{folder}/{os.path.basename(denial.path)}", why)  # noqa: PTH119
    else:
        denial = Denial(None, f"{denial.why}; a yes runs it once more, outside the border")
    decision = await ctx.gate.decide(_question(command, denial, ctx), ctx.scope)
    if not decision.allowed:
        return Settled(result, f"{denial.why}; that was not allowed: {decision.reason or 'choose another way'}")
    if folder is not None:
        environment.widen(confined.with_root(folder, "a yes"))
        again = await ctx.environment.execute(command, decision, ctx.scope, timeout_s=timeout_s, cwd=cwd)
        return Settled(again, f"{folder} was opened, as allowed, and the command ran again")
    again = await environment.execute_outside(command, decision, ctx.scope, timeout_s=timeout_s, cwd=cwd)
    return Settled(again, "it was allowed to run once outside the border")


def _question(command: str, denial: Denial, ctx: ToolContext) -> Action:
    details = {"why": denial.why, "runs_again": True, **({} if denial.path else {"sandbox": "run_outside"})}
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
