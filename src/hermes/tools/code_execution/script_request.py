"""One script to run: what it is, what it may use, and how its end is told to whoever asked for it."""

import asyncio
from collections.abc import Mapping
from types import CodeType
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from hermes.seams import Decision
from hermes.tools.code_execution.result_json import ScriptOutput
from hermes.tools.code_execution.script_limits import ScriptLimits
from hermes.tools.files.file_memory import FileMemo

Mode: TypeAlias = Literal["project", "strict"]


class ScriptRequest(Struct, frozen=True, kw_only=True):
    """One script to run."""

    code: str
    compiled: CodeType | None = None  # for our own Python; None where only the script's Python can read it
    folder: str = ""  # where it is to lie on this machine, as its compiled form says, too
    tools: tuple[str, ...]
    limits: ScriptLimits
    mode: Mode
    decision: Decision
    passthrough: tuple[str, ...] = ()


class Stopped(asyncio.CancelledError):
    """The cancellation that stopped a script, with its output until then."""

    def __init__(self, output: ScriptOutput) -> None:
        super().__init__()
        self.output = output


def limits_of(settings: Mapping[str, Any]) -> tuple[ScriptLimits, Mode]:
    """What the section `code_execution` says."""
    section = settings.get("code_execution") or {}
    limits = ScriptLimits(
        timeout_s=float(section.get("timeout", ScriptLimits().timeout_s)),
        max_calls=int(section.get("max_tool_calls", ScriptLimits().max_calls)),
    )
    return limits, "strict" if section.get("mode") == "strict" else "project"


def for_script(memo: dict[str, Any]) -> dict[str, Any]:
    """`memo` for one call of a script: everything is shared, but what the model was shown counts for nothing.

    A script does not have the pages that the model has seen, and may well read one page twice.
    """
    files = FileMemo.of(memo)
    own = dict(memo)
    for name, kept in memo.items():
        if kept is files:
            own[name] = replace(files, shown={}, last=FileMemo().last)
    return own
