"""The contract's functions, for callers that hold no gate: one decision in plain sync code, by session key.

Each decision is the gate's own, with its row in the store of the home. Where nobody can be asked the answer is no.
"""

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, Token
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from hermes.config import paths
from hermes.config.load import load_settings
from hermes.config.sections.terminal import BACKENDS
from hermes.scope import TurnScope
from hermes.seams import Action, Route
from hermes.tools.approval.effects_model import PLUGIN_RULE
from hermes.tools.approval.gate import NOBODY, SettledQuestion
from hermes.tools.approval.gate_setup import disk_view
from hermes.tools.approval.grants import HomeGrants, policy_of, read_allowlist, write_allowlist
from hermes.tools.approval.grants import allow_always as _allow_always
from hermes.tools.approval.policy import EVERYWHERE, Grant
from hermes.tools.approval.question import Answer
from hermes.tools.approval.queue import ApprovalQueue, Notify, answer_of, ask_callback
from hermes.tools.approval.terminal_prompt import ask_in_terminal, terminal_ask
from hermes.tools.calling.loops import run_sync
from hermes.tools.environments.command_env import redactor_of
from hermes.types import JsonObject

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
    somebody who is not there yet; the command must not run. Raises `StoreError` when the decision cannot be recorded.
    """
    return _checked(_action("command", "terminal", command, env_type), approval_callback)


def check_execute_code_guard(code: str, env_type: str) -> dict[str, Any]:
    """`check_all_command_guards` for a Python script."""
    return _checked(_action("code", "execute_code", code, env_type))


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
    digest = hashlib.sha256(reason.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    key = f"{PLUGIN_RULE}{rule_key or f'{tool_name}:{digest}'}"
    details = {"rule": key, "why": reason}
    answer = _checked(_action("tool", tool_name, tool_name, "local", details))
    answer.pop("command", None)
    return answer


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


def _action(
    kind: Literal["command", "code", "tool"], tool: str, text: str, env_type: str, details: JsonObject | None = None
) -> Action:
    """The action of this context. A backend that nobody knows is taken for this machine, where most is asked about."""
    session_key = get_current_session_key()
    backend = env_type if env_type in BACKENDS else "local"
    route: Route = "code" if kind == "code" else "foreground"
    return Action(
        kind=kind,
        tool=tool,
        text=text,
        cwd=str(Path.cwd()) if backend == "local" else "",  # where a session elsewhere stands is not known here
        backend=backend,
        route="cron" if os.environ.get("HERMES_CRON_SESSION") else route,
        session_id=session_key,
        task_id=session_key,
        details=details or {},
    )


def _checked(action: Action, callback: Callback | None = None) -> dict[str, Any]:
    """The decision of the one gate on `action`, in the words of the contract."""
    callback = callback or _callback.get()
    settled = _settled(action, callback)
    question, decision = settled.question, settled.decision
    if decision.allowed:
        by_person = {"user_approved": True, "description": question.description}
        return {"approved": True, "message": None, **(by_person if decision.decided_by == "person" else {})}
    denied = {"approved": False, "message": decision.reason, "status": "blocked"}
    if decision.rule == "placeholder":
        return denied
    if question.verdict.outcome == "deny":
        return {**denied, ("hardline" if question.verdict.is_hardline else "user_deny"): True}
    key = action.details.get("rule") or question.description
    facts = {"pattern_key": key, "description": question.description, "command": question.command}
    can_wait = action.kind != "tool" and callback is None and not desk.queue.is_registered(action.session_id)
    if decision.rule == NOBODY and _in_chat(action) and can_wait:
        submit_pending(action.session_id, facts)
        denied["status"] = "approval_required"
    return {**denied, **facts}


def _settled(action: Action, callback: Callback | None) -> SettledQuestion:
    """What the gate says, and its row in the store of the home.

    The gate works on the tools' own loop: the caller may be any thread, also one whose loop stands still meanwhile.
    """
    from hermes.tools.calling.outside_agent import outside  # paid by the first decision

    settings, session_key, run = load_settings(), action.session_id, outside.pool.run
    is_remote = callback is None and (_in_chat(action) or desk.queue.is_registered(session_key))
    sight = disk_view(settings.home, settings.mapping, action.backend, action.cwd)
    gate = outside.gate(settings, sight, redactor_of(settings))
    if callback is not None:
        ask = ask_callback(callback, run, in_words=True)
    else:
        ask = desk.queue.ask(session_key) if is_remote else terminal_ask(run, gate.policy().timeout)
    gate = replace(
        gate,
        ask=ask,
        is_remote=is_remote,
        is_bypassed=lambda _session: asks_nothing(settings.environ) or desk.is_yolo(session_key),
        tell=outside.hooks.observe,
    )
    return run_sync(gate.settle(action, TurnScope("approval")), None)


def _in_chat(action: Action) -> bool:
    """Whether the action belongs to a chat, where somebody answers sooner or later."""
    return bool(os.environ.get("HERMES_GATEWAY_SESSION")) and action.route != "cron"
