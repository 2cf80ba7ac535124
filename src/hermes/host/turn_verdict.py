"""How a turn ended, in one word for programs and in a sentence for a person."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

EMPTY = "(empty)"


class TurnVerdict(Enum):
    """What became of a question; each surface maps it to what its protocol has for that."""

    ANSWERED = "answered"
    FAILED = "failed"  # something a person must change
    EMPTY = "empty"  # the model ended without saying anything
    REFUSED = "refused"  # the provider or the model declined to answer
    BUDGET = "budget"  # a limit on calls, money, tokens or time was reached first
    PROVIDER = "provider"  # the model could not be reached, or failed
    TOOL = "tool"  # stopped because tools kept failing
    IN_USE = "in_use"  # somebody else took the session over
    CANCELLED = "cancelled"


def verdict_of(result: Mapping[str, Any]) -> TurnVerdict:
    """The verdict on a turn, from the kernel's result."""
    reason = str(result.get("turn_exit_reason") or "")
    text = str(result.get("final_response") or "").strip()
    if result.get("interrupted"):
        return TurnVerdict.CANCELLED
    if result.get("error_reason") == "policy_blocked" or "content_filter" in reason:
        return TurnVerdict.REFUSED
    if reason.startswith(("max_iterations_reached", "budget_exhausted", "spend_cap", "deadline_exceeded")):
        return TurnVerdict.BUDGET
    if reason == "guardrail_halt":
        return TurnVerdict.TOOL
    if reason == "session_lost":
        return TurnVerdict.IN_USE
    if reason.startswith("local_processing_error"):
        return TurnVerdict.FAILED
    if result.get("failed") or reason == "partial_stream_recovery":
        return TurnVerdict.PROVIDER
    if not text or text == EMPTY:
        return TurnVerdict.EMPTY
    if result.get("partial"):
        return TurnVerdict.BUDGET  # the answer was cut by the model's own output limit
    return TurnVerdict.ANSWERED


def why_for(verdict: TurnVerdict, result: Mapping[str, Any]) -> str:
    """Why there is no full answer, for someone who is still in the conversation; empty when there is one."""
    error = str(result.get("error") or "").rstrip(".")
    match verdict:
        case TurnVerdict.EMPTY:
            return "the model ended without an answer"
        case TurnVerdict.REFUSED:
            return error or "the provider declined to answer this"
        case TurnVerdict.BUDGET:
            return error or _limit(str(result.get("turn_exit_reason") or ""))
        case TurnVerdict.PROVIDER:
            return _broken(error) if is_broken(result) else error or "the model could not answer"
        case TurnVerdict.TOOL:
            return "stopped because tools kept failing"
        case TurnVerdict.CANCELLED:
            return "Stopped"
        case TurnVerdict.IN_USE:
            return error
        case TurnVerdict.FAILED:
            return f"{error}; see: hermes doctor"
        case _:
            return ""


def is_broken(result: Mapping[str, Any]) -> bool:
    """Whether the answer ends in the middle, and what came of it is kept."""
    return result.get("turn_exit_reason") == "partial_stream_recovery"


def _broken(error: str) -> str:
    why = f" ({error})" if error else ""
    return f"the answer broke off{why}; what came is kept, say continue for the rest"


def _limit(reason: str) -> str:
    if reason.startswith("max_iterations"):
        return "the turn used all its model calls (--max-turns)"
    return "the answer was cut at the model's output limit"
