"""Put a gate together: the home's policy and grants, what it may look at on the disk, and where it records."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from hermes.config import paths
from hermes.confinement.policy import ConfinedEnvironment, Confinement
from hermes.ops import ApprovalRecorded, StoreOp
from hermes.seams import Decision, Environment, EventStore
from hermes.tools.approval.gate import ApprovalGate, DiskView, OnCall, Record
from hermes.tools.approval.grants import HomeGrants, HomePolicy
from hermes.tools.approval.made_here import Makings
from hermes.tools.approval.question import ApprovalQuestion
from hermes.tools.approval.real_paths import RealPaths
from hermes.tools.git_access.start_remotes import StartRemotes
from hermes.tools.network.ask_host import NetworkCall

MAX_SCRIPT_BYTES = 1 << 20


def make_gate(
    home: Path,
    settings: Mapping[str, Any],
    sight: DiskView,
    store: EventStore,
    in_thread: Callable[..., Awaitable[Any]],
    redact: Callable[[str], str] = str,
) -> ApprovalGate:
    """The gate of a session or task with nobody to ask; `dataclasses.replace` adds whoever is.

    `redact` is for a store that keeps what it is given. Raises `ConfigError` for a policy that contradicts itself.
    """
    return ApprovalGate(
        policy=HomePolicy(home, settings),
        grants=HomeGrants(home),
        record=_recorder(store, redact),
        sight=sight,
        in_thread=in_thread,
    )


def disk_view(home: Path, settings: Mapping[str, Any], backend: str, workspace: str) -> DiskView:
    """What may be looked at where commands run in `backend`; the work belongs to its folder `workspace`."""
    if backend != "local":
        terminal = settings.get("terminal") or {}
        mounts = bool(terminal.get("docker_volumes") or terminal.get("docker_mount_cwd_to_workspace"))
        return DiskView(home="/root", own_home="/root/.hermes", workspace=workspace or None, has_host_mounts=mounts)
    user_home = os.path.realpath(Path.home())
    # The root holds every profile's home; all of them are the runtime's own.
    own_home = os.path.realpath(_root_of(home))
    return DiskView(
        home=user_home,
        own_home=own_home,
        workspace=os.path.realpath(workspace),
        read_script=_read_script,
        real=RealPaths(user_home, own_home),
    )


def border_of(environment: Environment) -> Callable[[], Awaitable[Confinement | None]] | None:
    """How the gate learns what the programs of `environment` are held by; None for another machine or a container."""
    return environment.confinement if isinstance(environment, ConfinedEnvironment) else None


@runtime_checkable
class KnowsMakings(Protocol):
    """An environment that can tell what its session has made."""

    def makings(self) -> Makings: ...


def makings_of(environment: Environment) -> Callable[[], Makings] | None:
    """How the gate learns what the session of `environment` has made; None where nothing can be looked at."""
    return environment.makings if isinstance(environment, KnowsMakings) else None


@runtime_checkable
class AsksForHosts(Protocol):
    """An environment whose programs may want hosts that a person has to grant."""

    def asks_for_hosts(self, call: NetworkCall) -> None: ...


def on_call_of(environment: Environment) -> OnCall | None:
    """How `environment` learns in whose name its programs ask; None where they ask for nothing."""
    if not isinstance(environment, AsksForHosts):
        return None
    return lambda gate, action, scope: environment.asks_for_hosts(NetworkCall(gate, action, scope))


@runtime_checkable
class HasRemotes(Protocol):
    """An environment that remembers where the workspace pushed to when the session began."""

    @property
    def remotes(self) -> StartRemotes: ...


def with_remotes(sight: DiskView, environment: Environment) -> DiskView:
    """`sight` with what `environment` knows of the remotes."""
    return replace(sight, pushes_home=environment.remotes.pushes_home) if isinstance(environment, HasRemotes) else sight


def _root_of(home: Path) -> Path:
    root = paths.root_home()
    return root if home.is_relative_to(root) else home


@runtime_checkable
class CommitsLater(Protocol):
    """A store that writes something with its next commit."""

    def commit_later(self, op: StoreOp) -> None: ...


def _recorder(store: EventStore, redact: Callable[[str], str]) -> Record:
    later = store.commit_later if isinstance(store, CommitsLater) else None

    async def record(question: ApprovalQuestion, decision: Decision) -> None:
        action = question.action
        row = ApprovalRecorded(
            session_id=action.session_id or None,
            route=action.route,
            tool=action.tool,
            action=redact(action.text),
            verdict="allow" if decision.allowed else "deny",
            scope=decision.scope,
            rule=decision.rule,
            reason=redact(_why(question, decision)),
            decided_by=decision.decided_by,
        )
        if later is not None and _is_plain_call(question, decision):
            later(row)
        else:
            await store.commit(row)

    return record


def _is_plain_call(question: ApprovalQuestion, decision: Decision) -> bool:
    """Whether a tool is called that nobody has anything against: that it begins is stored by now, and the row may come
    with its result. What a person, a model or a grant has allowed is stored before it happens."""
    is_unasked = decision.allowed and decision.decided_by == "policy" and decision.rule == "effects"
    return is_unasked and question.action.kind == "tool" and not question.verdict.effects


def _why(question: ApprovalQuestion, decision: Decision) -> str:
    """The reason as the record keeps it: what the action would do, where that counted."""
    effects = "; ".join(question.lines) if question.verdict.effects else ""
    return f"{decision.reason} [{effects}]" if effects else decision.reason


def _read_script(path: str) -> bytes | None:
    try:
        file = Path(path)
        if not file.is_file() or file.stat().st_size > MAX_SCRIPT_BYTES:
            return None
        return file.read_bytes()
    except OSError:
        return None
