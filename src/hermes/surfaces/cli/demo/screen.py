"""What the demo shows: the model's words, each call, and the part of its result that a person wants to see."""

import json
from typing import Any, assert_never

from hermes.surfaces.cli.output import Output, cut
from hermes.types import (
    CallFinished,
    CallStarted,
    Commentary,
    Event,
    MinorEvent,
    ReasoningDelta,
    SessionRotated,
    StatusChanged,
    TextDelta,
    TurnFinished,
    text_of,
)

SHOWN_LINES = 12
TELLING = ("command", "path", "pattern", "code")  # the argument to show of a call


class DemoScreen:
    """`Sink` that writes to stdout."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._is_speaking = False
        self.calls: list[CallFinished] = []

    def emit(self, event: Event) -> None:
        match event:
            case TextDelta():
                if not self._is_speaking:
                    self._out.write("\n")
                self._is_speaking = True
                self._out.write(event.text)
            case CallStarted():
                self._hush()
            case CallFinished():
                self._hush()
                self.calls.append(event)
                self._finished(event)
            case TurnFinished() | SessionRotated() | StatusChanged() | Commentary() | ReasoningDelta() | MinorEvent():
                return  # the demo shows words and work, nothing about them
            case _:
                assert_never(event)

    def close(self) -> None:
        self._hush()

    def _hush(self) -> None:
        if self._is_speaking:
            self._out.write("\n")
        self._is_speaking = False

    def _finished(self, event: CallFinished) -> None:
        found = _decoded(event)
        is_good = event.result.status == "ok" and not found.get("exit_code")
        mark = self._out.style("✓", "green") if is_good else self._out.style("✗", "red")
        first = next((str(event.args[name]) for name in TELLING if name in event.args), "")
        words = cut(" ".join(first.split()), 72)
        self._out.line(f"{mark} {self._out.style(event.call.name, 'bold')} {words}")
        for line in shown_lines(event.call.name, found):
            self._out.line(f"    {self._coloured(line)}")

    def _coloured(self, line: str) -> str:
        if line.startswith(("+", "-")) and not line.startswith(("+++", "---")):
            return self._out.style(line, "green" if line.startswith("+") else "red")
        return self._out.style(line, "dim")


def shown_lines(tool: str, found: dict[str, Any]) -> list[str]:
    """The end of a command's output, the lines of a diff; nothing of what was merely read."""
    if tool in ("read_file", "search_files"):
        return []
    text = str(found.get("diff") or found.get("output") or found.get("error") or "")
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    return lines[-SHOWN_LINES:]


def _decoded(event: CallFinished) -> dict[str, Any]:
    try:
        found = json.loads(text_of(event.result.content))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
