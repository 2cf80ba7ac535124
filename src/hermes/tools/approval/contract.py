"""The contract's functions, for callers that hold no gate: one decision in plain sync code, by session key.

They decide as the gate does, with the same policy, floor and grants. Where nobody can be asked the answer is no.
"""

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, Token
from pathlib import Path
from typing import Any, Literal

from hermes.config import paths
from hermes.config.load import load_settings
from hermes.config.settings import Settings
from hermes.tools.approval.analysis import View
from hermes.tools.approval.decide import REFUSED, Context, Verdict, decide
from hermes.tools.approval.grants import HomeGrants, policy_of, read_allowlist, write_allowlist
from hermes.tools.approval.grants import allow_always as _allow_always
from hermes.tools.approval.policy import EVERYWHERE, Grant, Policy, binding, path_class
from hermes.tools.approval.question import Answer
from hermes.tools.approval.queue import ApprovalQueue, Notify, Pending, answer_of
from hermes.tools.approval.terminal_prompt import ask_in_terminal

Callback = Callable[..., Any]
logger = logging.getLogger(__name__)

_session_key: ContextVar[str | None] = ContextVar("hermes_session_key", default=None)
_callback: ContextVar[Callback | None] = ContextVar("hermes_approval_callback", default=None)


class SessionApprovals:
    """What the functions of the contract share within a process: who bypasses, who is told, what waits unseen."""

    def __init__(self) -> None:
        self.queue = ApprovalQueue()
        self._lock = threading.Lock()  # guards the collections below
        self._yolo: set[str] = set()
        self.unseen: dict[str, dict[str, Any]] = {}  # questions that came while nobody was told of them, by session

    def set_yolo(self, session_key: str, *, on: bool) -> None:
        with self._lock:
            (self._yolo.add if on else self._yolo.discard)(session_key)

    def is_yolo(self, session_key: str) -> bool:
        with self._lock:
            return session_key in self._yolo

    def forget(self, session_key: str) -> None:
        with self._lock:
            self._yolo.discard(session_key)
            self.unseen.pop(session_key, None)
        self.queue.release(session_key)


desk = SessionApprovals()


# -- deciding -----------------------------------------------------------------------------------------------------


def check_all_command_guards(command: str, env_type: str, approval_callback: Callback | None = None) -> dict[str, Any]:
    """Whether `command` may run on `env_type`, after asking where that is needed.

    `approved` and `message` are always there; `hardline`, `user_deny`, `status`, `pattern_key`, `description`,
    `command` and `user_approved` where they apply. `status: approval_required` means that the question waits for
    somebody who is not there yet; the command must not run.
    """
    return _checked("command", command, env_type, approval_callback or _callback.get())


def check_execute_code_guard(code: str, env_type: str) -> dict[str, Any]:
    """`check_all_command_guards` for a Python script."""
    return _checked("code", code, env_type, _callback.get())


def _checked(kind: Literal["command", "code"], text: str, env_type: str, callback: Callback | None) -> dict[str, Any]:
    settings, session_key = load_settings(), get_current_session_key()
    policy = policy_of(settings.mapping)
    view, cwd = View(home=str(Path.home()), own_home=str(settings.home)), str(Path.cwd())
    analysis = view.code(text, cwd) if kind == "code" else view.command(text, cwd)
    context = _context(binding(f"{kind}  {text}", cwd), env_type, settings, session_key)
    kept = [one.grant for one in HomeGrants(settings.home).kept() if one.grant.session_id == session_key]
    verdict = decide(analysis, policy, kept, context)
    if verdict.outcome == "allow":
        return {"approved": True, "message": None}
    if verdict.outcome == "deny":
        return _blocked(verdict)
    answer = _asked(text, verdict, policy, session_key, callback)
    facts = {"pattern_key": verdict.reason, "description": verdict.reason, "command": text}
    if answer is None:
        submit_pending(session_key, facts)
        return {"approved": False, "message": REFUSED, "status": "approval_required", **facts}
    if answer == "deny":
        return {"approved": False, "message": REFUSED, "status": "blocked", **facts}
    _keep(answer, verdict, session_key, settings.home)
    return {"approved": True, "message": None, "user_approved": True, "description": verdict.reason}


def check_dangerous_command(command: str, env_type: str, approval_callback: Callback | None = None) -> dict[str, Any]:
    """`check_all_command_guards` under its older name; there is one set of guards."""
    return check_all_command_guards(command, env_type, approval_callback)


def prompt_dangerous_approval(
    command: str,
    description: str,
    timeout_seconds: float | None = None,
    allow_permanent: bool = True,
    approval_callback: Callback | None = None,
) -> Answer:
    """Ask and return once, session, always or deny. A callback that raises, silence and no terminal are deny."""
    choices = ("once", "session", "always", "deny") if allow_permanent else ("once", "session", "deny")
    callback = approval_callback or _callback.get()
    if callback is None:
        limit = timeout_seconds if timeout_seconds is not None else policy_of(load_settings().mapping).timeout
        return ask_in_terminal(command, description, choices, limit)
    try:
        return answer_of(callback(command, description, allow_permanent=allow_permanent), choices)
    except Exception:  # the border to a surface: whatever fails there is a no
        logger.exception("the approval callback failed")
        return "deny"


def request_tool_approval(tool_name: str, reason: str, rule_key: str = "") -> dict[str, Any]:
    """Ask about a call that a plugin's rule wants a person to see; the yes is kept under `plugin_rule:…`."""
    settings, session_key = load_settings(), get_current_session_key()
    digest = hashlib.sha256(reason.encode()).hexdigest()[:12]
    key = f"plugin_rule:{rule_key or f'{tool_name}:{digest}'}"
    if is_approved(session_key, key):
        return {"approved": True, "message": None}
    verdict = Verdict(outcome="ask", reason=reason, rule=key, keys=(key,), scopes=("once", "session", "always"))
    answer = _asked(tool_name, verdict, policy_of(settings.mapping), session_key, _callback.get())
    if answer == "session":
        approve_session(session_key, key)
    elif answer == "always":
        approve_permanent(key)
    if answer in ("once", "session", "always"):
        return {"approved": True, "message": None, "user_approved": True, "description": reason}
    return {"approved": False, "message": REFUSED, "status": "blocked", "pattern_key": key, "description": reason}


def request_elicitation_consent(message: str, description: str) -> str:
    """Ask whether a server's question to the person may be shown: accept or decline."""
    return "decline" if prompt_dangerous_approval(message, description, allow_permanent=False) == "deny" else "accept"


# -- what was approved --------------------------------------------------------------------------------------------


def approve_session(session_key: str, key: str) -> None:
    """Approve a key for the rest of the session, wherever the effect is."""
    _grants().keep(Grant(scope="session", key=key, path_class=EVERYWHERE, session_id=session_key))


def approve_permanent(key: str) -> None:
    """Approve a key for good: it is written to `command_allowlist`."""
    _allow_always(paths.hermes_home(), key)


def is_approved(session_key: str, key: str) -> bool:
    """Whether the key is approved for the session or for good."""
    kept = (one.grant for one in _grants().kept())
    granted = any(grant.session_id == session_key and grant.key == key for grant in kept)
    return granted or key in load_permanent_allowlist()


def clear_session(session_key: str) -> None:
    """Forget what the session was allowed, and answer what it waits for with no."""
    desk.forget(session_key)
    _grants().clear(session_key)


def load_permanent_allowlist() -> set[str]:
    """`command_allowlist` as config.yaml has it."""
    return set(read_allowlist(paths.hermes_home()) or ())


def save_permanent_allowlist(entries: Iterable[str]) -> None:
    """Make `command_allowlist` these entries; everything else in config.yaml stays as it is."""
    write_allowlist(paths.hermes_home(), sorted(entries))


# -- without asking -----------------------------------------------------------------------------------------------


def enable_session_yolo(session_key: str) -> None:
    """Ask nothing in this session. The hardline floor and deny rules still hold."""
    desk.set_yolo(session_key, on=True)


def disable_session_yolo(session_key: str) -> None:
    """Ask again."""
    desk.set_yolo(session_key, on=False)


def is_session_yolo_enabled(session_key: str) -> bool:
    return desk.is_yolo(session_key)


# -- questions that are answered elsewhere ------------------------------------------------------------------------


def register_gateway_notify(session_key: str, cb: Notify) -> None:
    """Tell `cb(facts)` of every question of the session."""
    desk.queue.register(session_key, cb)


def unregister_gateway_notify(session_key: str) -> None:
    """Tell nobody any more; what waits is a no."""
    desk.queue.unregister(session_key)


def resolve_gateway_approval(session_key: str, choice: str, resolve_all: bool = False) -> int:
    """Answer the oldest waiting question, or all; how many were answered."""
    return desk.queue.resolve(session_key, choice, everything=resolve_all)


def has_blocking_approval(session_key: str) -> bool:
    """Whether a question of the session waits."""
    return bool(desk.queue.waiting(session_key))


def submit_pending(session_key: str, approval: dict[str, Any]) -> None:
    """Keep a question that nobody was told of, so that a surface can show it later."""
    desk.unseen[session_key] = dict(approval)


# -- the session of this context ----------------------------------------------------------------------------------


def set_current_session_key(key: str) -> "Token[str | None]":
    """Name the session of this context; give the token to `reset_current_session_key`."""
    return _session_key.set(key)


def reset_current_session_key(token: "Token[str | None]") -> None:
    _session_key.reset(token)


def get_current_session_key(default: str = "default") -> str:
    """The session of this context, else that of the environment, else `default`."""
    return _session_key.get() or os.environ.get("HERMES_SESSION_KEY") or default


def set_approval_callback(callback: Callback | None) -> None:
    """Who is asked in this context: `(command, description, *, allow_permanent=True)` -> a choice."""
    _callback.set(callback)


# -- below --------------------------------------------------------------------------------------------------------


def asks_nothing(environ: Mapping[str, str]) -> bool:
    """Whether the person who started this process switched asking off for it (`HERMES_YOLO_MODE`)."""
    return environ.get("HERMES_YOLO_MODE", "").strip().lower() in ("1", "true", "yes", "on")


def _grants() -> HomeGrants:
    return HomeGrants(paths.hermes_home())


def _context(bound_to: str, env_type: str, settings: Settings, session_key: str) -> Context:
    terminal = settings.mapping.get("terminal") or {}
    return Context(
        backend=env_type,
        has_host_mounts=bool(terminal.get("docker_volumes") or terminal.get("docker_mount_cwd_to_workspace")),
        session_id=session_key,
        binding=bound_to,
        is_bypassed=desk.is_yolo(session_key) or asks_nothing(settings.environ),
    )


def _asked(
    command: str, verdict: Verdict, policy: Policy, session_key: str, callback: Callback | None
) -> Answer | None:
    """The answer, or None when nobody could be told of the question but somebody may come."""
    if callback is not None:
        permanent = "always" in verdict.scopes
        answer = prompt_dangerous_approval(command, verdict.reason, policy.timeout, permanent, callback)
        return answer_of(answer, (*verdict.scopes, "deny"))
    if desk.queue.is_registered(session_key):
        return _queued(command, verdict, policy, session_key)
    if os.environ.get("HERMES_GATEWAY_SESSION") and not os.environ.get("HERMES_CRON_SESSION"):
        return None
    return ask_in_terminal(command, verdict.reason, (*verdict.scopes, "deny"), policy.timeout)


def _queued(command: str, verdict: Verdict, policy: Policy, session_key: str) -> Answer:
    facts = {
        "command": command,
        "pattern_key": verdict.keys[0] if verdict.keys else verdict.reason,
        "pattern_keys": list(verdict.keys),
        "description": verdict.reason,
    }
    pending = Pending(facts, (*verdict.scopes, "deny"))
    if not desk.queue.put(session_key, pending):
        return "deny"
    try:
        return pending.answer.result(timeout=policy.gateway_timeout)
    except TimeoutError:
        return "deny"
    finally:
        desk.queue.drop(session_key, pending)


def _blocked(verdict: Verdict) -> dict[str, Any]:
    if verdict.is_hardline:
        return {"approved": False, "hardline": True, "status": "blocked", "message": f"{verdict.reason}. {REFUSED}"}
    return {"approved": False, "user_deny": True, "status": "blocked", "message": REFUSED}


def _keep(answer: Answer, verdict: Verdict, session_key: str, home: Path) -> None:
    if answer not in ("session", "always"):
        return
    grants = HomeGrants(home)
    for effect in verdict.effects:
        grants.keep(
            Grant(
                scope="always" if answer == "always" else "session",
                key=effect.key,
                path_class=path_class(effect),
                session_id=session_key,
            )
        )
