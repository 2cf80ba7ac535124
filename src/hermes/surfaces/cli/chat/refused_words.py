"""What a person reads about a call that was not allowed: who said no, and where the reason stands."""

from collections.abc import Mapping
from typing import Any

WHY = "why: hermes approvals why"


def refused_words(details: Mapping[str, Any]) -> str:
    """For the line of the call; empty when nobody refused it."""
    refused = details.get("refused")
    if not isinstance(refused, Mapping):
        return ""
    if str(refused.get("rule", "")).startswith("mode plan"):
        return ": plan mode changes nothing"
    match refused.get("by"):
        case "person":
            return ": you said no"
        case "nobody" if refused.get("scope") == "timeout":
            return f": nobody answered in time; {WHY}"
        case "nobody":
            return f": nobody was there to ask; {WHY}"
        case _:
            return f": not allowed; {WHY}"
