"""One script to run: what it is, what it may use, and how its end is told to whoever asked for it."""

import asyncio
from collections.abc import Mapping
from types import CodeType
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from hermes.seams import Decision
from hermes.tools.code_execution.outcome import Limits, Output

Mode: TypeAlias = Literal["project", "strict"]


class Order(Struct, frozen=True, kw_only=True):
    """One script to run."""

    code: str
    compiled: CodeType | None = None  # for our own Python; None where only the script's Python can read it
    folder: str = ""  # where it is to lie on this machine, as its compiled form says, too
    tools: tuple[str, ...]
    limits: Limits
    mode: Mode
    decision: Decision
    passthrough: tuple[str, ...] = ()


class Stopped(asyncio.CancelledError):
    """The cancellation that stopped a script, with its output until then."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self.output = output


def limits_of(settings: Mapping[str, Any]) -> tuple[Limits, Mode]:
    """What the section `code_execution` says."""
    section = settings.get("code_execution") or {}
    limits = Limits(
        timeout_s=float(section.get("timeout", Limits().timeout_s)),
        max_calls=int(section.get("max_tool_calls", Limits().max_calls)),
    )
    return limits, "strict" if section.get("mode") == "strict" else "project"
