"""Put a gate together: the home's policy and grants, the environment it looks at, the store, and who is asked."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes.config import paths
from hermes.ops import ApprovalRecorded
from hermes.seams import Decision, Environment, EventStore
from hermes.tools.approval.gate import ApprovalGate, Ask, DiskView, Judge, Record, Tell
from hermes.tools.approval.grants import HomeGrants, HomePolicy
from hermes.tools.approval.question import ApprovalQuestion
from hermes.tools.approval.real_paths import RealPaths

MAX_SCRIPT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GateParts:
    """What a gate is made of."""

    home: Path
    settings: Mapping[str, Any]
    environment: Environment
    workspace: str  # the folder the work belongs to, wherever commands have moved since; on the host
    store: EventStore
    in_thread: Callable[..., Awaitable[Any]]
    ask: Ask | None = None
    judge: Judge | None = None
    is_remote: bool = False
    is_bypassed: Callable[[str], bool] = lambda _session: False
    tell: Tell | None = None


def make_gate(parts: GateParts) -> ApprovalGate:
    """The gate of one session or task. Raises `ConfigError` for a policy that contradicts itself."""
    return ApprovalGate(
        policy=HomePolicy(parts.home, parts.settings),
        grants=HomeGrants(parts.home),
        record=_recorder(parts.store),
        sight=_sight(parts),
        ask=parts.ask,
        judge=parts.judge,
        is_remote=parts.is_remote,
        is_bypassed=parts.is_bypassed,
        in_thread=parts.in_thread,
        tell=parts.tell,
    )


def _sight(parts: GateParts) -> DiskView:
    environment = parts.environment
    terminal = parts.settings.get("terminal") or {}
    mounts = bool(terminal.get("docker_volumes") or terminal.get("docker_mount_cwd_to_workspace"))
    if environment.kind != "local":
        return DiskView(
            home="/root", own_home="/root/.hermes", workspace=environment.cwd or None, has_host_mounts=mounts
        )
    home = os.path.realpath(Path.home())
    # The root holds every profile's home; all of them are the runtime's own.
    own_home = os.path.realpath(_root_of(parts.home))
    return DiskView(
        home=home,
        own_home=own_home,
        workspace=os.path.realpath(parts.workspace),
        read_script=_read_script,
        real=RealPaths(home, own_home),
    )


def _root_of(home: Path) -> Path:
    root = paths.root_home()
    return root if home.is_relative_to(root) else home


def _recorder(store: EventStore) -> Record:
    async def record(question: ApprovalQuestion, decision: Decision) -> None:
        action = question.action
        await store.commit(
            ApprovalRecorded(
                session_id=action.session_id or None,
                route=action.route,
                tool=action.tool,
                action=action.text,
                verdict="allow" if decision.allowed else "deny",
                scope=decision.scope,
                rule=decision.rule,
                reason=_why(question, decision),
                decided_by=decision.decided_by,
            )
        )

    return record


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
