"""What a turn shows: the answer as it is written, a line for each call, and at the end what was really done."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

from hermes.config.sections.display import Section as Display
from hermes.surfaces.cli.chat.events import TurnTokens, printed
from hermes.surfaces.cli.child_lines import ChildLines
from hermes.surfaces.cli.interactive.markdown_blocks import Blocks
from hermes.surfaces.cli.interactive.markup import Painter, clean
from hermes.surfaces.cli.output import cut
from hermes.types import (
    BlockClosed,
    CallFinished,
    CallStarted,
    ChildProgress,
    Commentary,
    Event,
    MinorEvent,
    ModelAnswered,
    ReasoningDelta,
    SessionRotated,
    StatusChanged,
    StepStarted,
    TasksChanged,
    TextDelta,
    TurnFinished,
    text_of,
)

TAIL_LINES = 8
OUTPUT_LINES = 5
VERBOSE_LINES = 40
SUMMARY_LINES = 10
TASK_LINES = 8
TELLING = ("command", "path", "pattern", "query", "url", "urls")  # the argument that says most about a call


class Screen(Protocol):
    """Where a turn is shown."""

    def write(self, text: str) -> None:
        """Add lines for good, above whatever is live."""

    def refresh(self) -> None:
        """Something live has changed."""


@dataclass(slots=True)
class Look:
    """What is shown and what is not; slash commands change it for the session."""

    display: Display
    show_reasoning: bool
    cwd: Callable[[], str] = str


class TurnView:
    """`Sink` of the interactive agent. What it writes is there for good; `live` is drawn anew until it is."""

    def __init__(self, screen: Screen, painter: Painter, look: Look, now: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._paint = painter
        self._look = look
        self._now = now
        self._blocks = Blocks()
        self._thought = Blocks()
        self._kept_back: list[str] = []  # drawn, but shown at the end only: `display.streaming` is off
        self._running: dict[str, tuple[str, float]] = {}
        self._children = ChildLines(now)
        self._last_tool = ""
        self._began = 0.0
        self._tokens = TurnTokens()
        self.context_tokens = 0
        self.is_thinking = False
        self.has_answer = False  # text was shown since the last call

    def begin(self) -> None:
        """A turn starts."""
        self._blocks, self._thought, self._running, self._tokens = Blocks(), Blocks(), {}, TurnTokens()
        self._last_tool, self._began, self.has_answer, self.is_thinking = "", self._now(), False, True

        self._children.begin()

    def end(self) -> None:
        """Nothing more comes; what was half written stays readable."""
        self._close_text()
        self._tell_cut_off()
        self.is_thinking = False
        self._screen.refresh()

    def live(self) -> list[tuple[str, str]]:
        """(style, line) of what is not there for good yet."""
        lines = [("thought", clean(line)) for line in self._thought.tail(3)]
        if self._look.display.streaming:
            lines += [("", clean(line)) for line in self._blocks.tail(TAIL_LINES)]
        now = self._now()
        for text, since in self._running.values():
            lines.append(("running", f"● {text} ({now - since:.0f} s)"))
        lines += [("running", clean(line)) for line in self._children.live()]
        if self.is_thinking and not lines:
            lines.append(("thought", f"working … ({now - self._began:.0f} s; Esc stops)"))
        return lines

    def emit(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._text(event.text)
            case ReasoningDelta():
                self._reasoning(event.text)
            case BlockClosed():
                self._close_text()
            case Commentary():
                if not event.already_streamed:
                    self.say_markdown(event.text)
            case CallStarted():
                self._close_text()
                self._running[event.call.id] = (self._call_text(event.call.name, event.args), self._now())
            case CallFinished():
                self._finished(event)
            case StatusChanged():
                self._screen.write(
                    self._paint.line(f"· {event.message}", "dim" if event.kind == "prompt" else "yellow")
                )
            case SessionRotated():
                self.context_tokens = 0
            case ModelAnswered():
                self.context_tokens = event.usage.prompt_tokens or self.context_tokens
                self._tokens.add(event.usage)
            case TurnFinished():
                self._close_text()
                self._tell_cut_off()
                self._screen.write(self._record(event))
            case TasksChanged():
                self._screen.write("".join(self._paint.line(line, "dim") for line in _task_lines(event.tasks)))
            case MinorEvent():
                self._minor(event)
            case _:
                assert_never(event)
        self._screen.refresh()

    def _minor(self, event: MinorEvent) -> None:
        if isinstance(event, StepStarted):
            self.is_thinking = True
        elif isinstance(event, ChildProgress) and (line := self._children.see(event)):
            self._screen.write(self._paint.line(clean(line), "dim"))

    def _reasoning(self, text: str) -> None:
        if self._look.show_reasoning:
            for block in self._thought.feed(text):
                self._screen.write(self._paint.style(clean(block.text), "dim") + "\n")

    def say_markdown(self, text: str) -> None:
        """Show a whole text."""
        blocks = Blocks()
        for block in [*blocks.feed(text), *blocks.finish()]:
            self._screen.write(self._paint.block(block))
        self.has_answer = True

    def _text(self, text: str) -> None:
        self._close_thought()
        self.has_answer, self.is_thinking = True, False
        for block in self._blocks.feed(text):
            self._block(self._paint.block(block))

    def _block(self, drawn: str) -> None:
        if self._look.display.streaming:
            self._screen.write(drawn)
        else:
            self._kept_back.append(drawn)

    def _close_text(self) -> None:
        self._close_thought()
        rest = [self._paint.block(block) for block in self._blocks.finish()]
        self._screen.write("".join([*self._kept_back, *rest]))
        self._blocks, self._kept_back = Blocks(), []

    def _close_thought(self) -> None:
        for block in self._thought.finish():
            self._screen.write(self._paint.style(clean(block.text), "dim") + "\n\n")

    def _tell_cut_off(self, *ids: str) -> None:
        """Calls that were running when they were stopped stay on the screen: they may have had their effect."""
        for each in ids or tuple(self._running):
            text, since = self._running.pop(each)
            if self._look.display.tool_progress != "off":
                self._screen.write(self._paint.line(f"✗ {text} (stopped after {self._now() - since:.0f} s)", "red"))

    def _finished(self, event: CallFinished) -> None:
        if event.result.status == "unknown" and event.call.id in self._running:
            self._tell_cut_off(event.call.id)
            return
        text, since = self._running.pop(event.call.id, (self._call_text(event.call.name, event.args), self._now()))
        self.has_answer, self.is_thinking = False, True
        shown = self._look.display.tool_progress
        is_ok = event.result.status == "ok"
        if shown == "off" or (shown == "new" and event.call.name == self._last_tool and is_ok):
            return
        self._last_tool = event.call.name
        took = (event.result.duration_ms or (self._now() - since) * 1000) / 1000
        exit_code = event.result.details.get("exit_code")
        ended = f", exit code {exit_code}" if exit_code else ""
        tail = f" ({took:.1f} s{ended})"
        head = cut(f"{'✓' if is_ok else '✗'} {text}", max(8, self._paint.width - len(tail)))
        self._screen.write(self._paint.style(head + tail, "green" if is_ok and not exit_code else "red") + "\n")
        diff = event.result.details.get("diff")
        if isinstance(diff, str) and diff and self._look.display.inline_diffs:
            self._screen.write(self._paint.diff(diff))
            return
        most = VERBOSE_LINES if shown == "verbose" else OUTPUT_LINES
        self._screen.write(self._paint.output(printed(text_of(event.result.content)), most))

    def _call_text(self, name: str, args: dict[str, Any]) -> str:
        wanted = [args.get(key) for key in TELLING if key in args] or list(args.values())
        preview = next((value for value in wanted if isinstance(value, str) and value), "")
        return cut(" ".join(f"{name} {clean(preview)}".split()), max(20, self._paint.width - 12))

    def _record(self, event: TurnFinished) -> str:
        """What was really done, from the machine's record and not from what the model says."""
        here = f"{self._look.cwd()}/"
        lines = [("dim", f"changed {path.removeprefix(here)}") for path in event.files_changed]
        lines += [("dim", f"ran {one.get('command')} (exit code {one.get('exit_code')})") for one in event.commands]
        lines += [("red", f"failed {one.get('name')}: {printed(str(one.get('error')))}") for one in event.failed_calls]
        end = [("dim", self._tokens.words)] if self._tokens.words else []
        left = len(lines) - SUMMARY_LINES
        more = [("dim", f"… and {left} more")] if left > 0 else []
        return "".join(self._paint.line(f"  {text}", colour) for colour, text in [*lines[:SUMMARY_LINES], *more, *end])


def _task_lines(tasks: Sequence[dict[str, Any]]) -> list[str]:
    """The task list, as many lines of it as fit beside an answer: what is open comes first when it is long."""
    marks = {"completed": "☑", "in_progress": "▶", "cancelled": "☒"}
    shown = list(tasks)
    if len(shown) > TASK_LINES:
        shown = [one for one in tasks if one.get("status") in ("pending", "in_progress")][:TASK_LINES] or shown[
            :TASK_LINES
        ]
    left = len(tasks) - len(shown)
    lines = [f"  {marks.get(str(one.get('status')), '☐')} {clean(str(one.get('content')))}" for one in shown]
    return [*lines, f"  … and {left} more"] if left else lines
