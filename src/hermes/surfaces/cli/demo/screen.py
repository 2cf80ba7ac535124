"""What the demo shows: words as they come, calls as they end, children, and titles between scenes."""

import json
from collections.abc import Iterable
from typing import Any, assert_never

from hermes.surfaces.cli.child_lines import summary_line
from hermes.surfaces.cli.interactive.markdown_blocks import Block, Blocks
from hermes.surfaces.cli.interactive.markup import Painter, columns_of, folded
from hermes.surfaces.cli.output import Output, cut
from hermes.tools.results.tool_result import unfenced
from hermes.types import (
    CallFinished,
    CallStarted,
    ChildProgress,
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
TELLING = ("command", "path", "pattern", "code", "item")  # the argument to show of a call


class DemoScreen:
    """`Sink` that writes to stdout."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._is_speaking = False
        self._painter = Painter(out) if out.is_terminal else None
        self._blocks = Blocks()
        self.calls: list[CallFinished] = []

    def emit(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._speak(event.text)
            case CallStarted():
                self._hush()
            case CallFinished():
                self._hush()
                self.calls.append(event)
                self._finished(event)
            case ChildProgress():
                self._child(event)
            case TurnFinished() | SessionRotated() | StatusChanged() | Commentary() | ReasoningDelta() | MinorEvent():
                return  # the demo shows words and work, nothing about them
            case _:
                assert_never(event)

    def close(self) -> None:
        self._hush()

    def _child(self, event: ChildProgress) -> None:
        self._hush()
        if event.stage == "start":
            self._out.line(self._out.style(f"  ◦ a child begins: {event.goal}", "dim"))
        elif event.stage == "complete":
            self._out.line(summary_line(event))

    def _speak(self, text: str) -> None:
        """Words as they come; in a terminal block by block, drawn as Markdown and broken between words."""
        if not self._is_speaking:
            self._out.write("\n")
        self._is_speaking = True
        if self._painter is None:
            self._out.write(text)
        else:
            self._show(self._blocks.feed(text))

    def _show(self, blocks: Iterable[Block]) -> None:
        assert self._painter is not None
        for block in blocks:
            self._out.write(self._painter.block(block))

    def _hush(self) -> None:
        if self._is_speaking and self._painter is not None:
            self._show(self._blocks.finish())
        elif self._is_speaking:
            self._out.write("\n")
        self._is_speaking = False

    def _finished(self, event: CallFinished) -> None:
        found = _decoded(event)
        is_good = event.result.status == "ok" and not found.get("exit_code")
        mark = self._out.style("✓", "green") if is_good else self._out.style("✗", "red")
        first = next((str(event.args[name]) for name in TELLING if name in event.args), "")
        room = columns_of(self._out) - len(event.call.name) - 4 if self._out.is_terminal else 72
        words = cut(" ".join(first.split()), max(8, min(72, room)))
        self._out.line(f"{mark} {self._out.style(event.call.name, 'bold')} {words}")
        for line in shown_lines(event.call.name, found):
            shown = cut(line, max(8, columns_of(self._out) - 4)) if self._out.is_terminal else line
            self._out.line(f"    {self._coloured(shown)}")

    def _coloured(self, line: str) -> str:
        if line.startswith(("+", "-")) and not line.startswith(("+++", "---")):
            return self._out.style(line, "green" if line.startswith("+") else "red")
        return self._out.style(line, "dim")


def shown_lines(tool: str, found: dict[str, Any]) -> list[str]:
    """The end of a command's output, the lines of a diff; nothing of what was merely read."""
    if tool in ("read_file", "search_files"):
        return []
    text = str(found.get("diff") or found.get("output") or found.get("error") or found.get("result") or "")
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip() or found.get("diff")]
    return lines[-SHOWN_LINES:]


def _decoded(event: CallFinished) -> dict[str, Any]:
    try:
        found = json.loads(unfenced(text_of(event.result.content)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def tell(out: Output, text: str) -> None:
    """Words of the demo itself, broken between words in a terminal; a command stays one line, to be copied."""
    for line in out.typed(text).split("\n"):
        is_whole = not out.is_terminal or line.startswith("  ")
        for row in [line] if is_whole else folded(line, columns_of(out)):
            out.line(row)
