"""Approval: what a command would do, and whether it may."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes.tools.approval.analysis import analyse
    from hermes.tools.approval.contract import (
        approve_permanent,
        approve_session,
        check_all_command_guards,
        check_dangerous_command,
        check_execute_code_guard,
        clear_session,
        disable_session_yolo,
        enable_session_yolo,
        get_current_session_key,
        has_blocking_approval,
        is_approved,
        is_session_yolo_enabled,
        load_permanent_allowlist,
        prompt_dangerous_approval,
        register_gateway_notify,
        request_elicitation_consent,
        request_tool_approval,
        reset_current_session_key,
        resolve_gateway_approval,
        save_permanent_allowlist,
        set_approval_callback,
        set_current_session_key,
        submit_pending,
        unregister_gateway_notify,
    )
    from hermes.tools.approval.effects_model import Analysis, Effect, Severity, SimpleCommand
    from hermes.tools.approval.patterns import detect_dangerous_command, detect_hardline_command

    DANGEROUS_PATTERNS: list[tuple[str, str]]
    HARDLINE_PATTERNS: list[tuple[str, str]]

__all__ = [
    "DANGEROUS_PATTERNS",
    "HARDLINE_PATTERNS",
    "Analysis",
    "Effect",
    "Severity",
    "SimpleCommand",
    "analyse",
    "approve_permanent",
    "approve_session",
    "check_all_command_guards",
    "check_dangerous_command",
    "check_execute_code_guard",
    "clear_session",
    "detect_dangerous_command",
    "detect_hardline_command",
    "disable_session_yolo",
    "enable_session_yolo",
    "get_current_session_key",
    "has_blocking_approval",
    "is_approved",
    "is_session_yolo_enabled",
    "load_permanent_allowlist",
    "prompt_dangerous_approval",
    "register_gateway_notify",
    "request_elicitation_consent",
    "request_tool_approval",
    "reset_current_session_key",
    "resolve_gateway_approval",
    "save_permanent_allowlist",
    "set_approval_callback",
    "set_current_session_key",
    "submit_pending",
    "unregister_gateway_notify",
]

_HOMES = {
    "analyse": "analysis",
    **dict.fromkeys(("Analysis", "Effect", "Severity", "SimpleCommand"), "effects_model"),
    **dict.fromkeys(("detect_dangerous_command", "detect_hardline_command"), "patterns"),
}


def __getattr__(name: str) -> Any:
    """Each name is loaded when it is asked for: who needs a module of this folder needs no reader of commands."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ("DANGEROUS_PATTERNS", "HARDLINE_PATTERNS"):
        from hermes.tools.approval.patterns import published

        return published(is_hard=name == "HARDLINE_PATTERNS")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'contract')}"), name)
