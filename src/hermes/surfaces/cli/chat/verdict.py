"""How a turn ended, as an exit code and as words for a person."""

from collections.abc import Mapping
from typing import Any

from hermes.surfaces.cli.exit_codes import Exit

EMPTY = "(empty)"


def exit_code(result: Mapping[str, Any]) -> Exit:
    """The exit code for the kernel's result."""
    reason = str(result.get("turn_exit_reason") or "")
    text = str(result.get("final_response") or "").strip()
    if result.get("interrupted"):
        return Exit.CANCELLED
    if result.get("error_reason") == "policy_blocked" or "content_filter" in reason:
        return Exit.REFUSED
    if reason.startswith(("max_iterations_reached", "budget_exhausted", "spend_cap", "deadline_exceeded")):
        return Exit.BUDGET
    if reason == "guardrail_halt":
        return Exit.TOOL
    if reason == "session_lost":
        return Exit.IN_USE
    if reason.startswith("local_processing_error"):
        return Exit.FAILED
    if result.get("failed") or reason == "partial_stream_recovery":
        return Exit.PROVIDER
    if not text or text == EMPTY:
        return Exit.EMPTY
    if result.get("partial"):
        return Exit.BUDGET  # the answer was cut by the model's own output limit
    return Exit.ANSWERED


def words_for(code: Exit, result: Mapping[str, Any]) -> str:
    """Why there is no full answer, and what to do next; empty when there is one."""
    said = "continue" if _is_broken(result) else "…"
    session = f"hermes chat --resume {result.get('session_id', 'ID')} -q {said}"
    match code:
        case Exit.EMPTY | Exit.REFUSED:
            return f"{why_for(code, result)}; ask again with: {session}"
        case Exit.BUDGET | Exit.PROVIDER | Exit.TOOL | Exit.CANCELLED:
            return f"{why_for(code, result)}; go on with: {session}"
        case _:
            return why_for(code, result)


def why_for(code: Exit, result: Mapping[str, Any]) -> str:
    """The same for someone who is still in the conversation, and so can simply go on."""
    error = str(result.get("error") or "").rstrip(".")
    match code:
        case Exit.EMPTY:
            return "the model ended without an answer"
        case Exit.REFUSED:
            return error or "the provider declined to answer this"
        case Exit.BUDGET:
            return error or _limit(str(result.get("turn_exit_reason") or ""))
        case Exit.PROVIDER:
            return _broken(error) if _is_broken(result) else error or "the model could not answer"
        case Exit.TOOL:
            return "stopped because tools kept failing"
        case Exit.CANCELLED:
            return "Stopped"
        case Exit.IN_USE:
            return error
        case Exit.FAILED:
            return f"{error}; see: hermes doctor"
        case _:
            return ""


def _is_broken(result: Mapping[str, Any]) -> bool:
    return result.get("turn_exit_reason") == "partial_stream_recovery"


def _broken(error: str) -> str:
    why = f" ({error})" if error else ""
    return f"the answer broke off{why}; what came is kept, say continue for the rest"


def _limit(reason: str) -> str:
    if reason.startswith("max_iterations"):
        return "the turn used all its model calls (--max-turns)"
    return "the answer was cut at the model's output limit"
