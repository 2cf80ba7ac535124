"""What a turn shows: the answer as it is written, a line for each call, and at the end what was really done."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

from hermes.config.sections.display import Section as Display
from hermes.surfaces.cli.chat.events import TurnTokens, printed
from hermes.surfaces.cli.chat.refused_words import refused_words
from hermes.surfaces.cli.child_lines import ChildLines
from hermes.surfaces.cli.interactive.diff_view import created_in
from hermes.surfaces.cli.interactive.markdown_blocks import Blocks
from hermes.surfaces.cli.interactive.markup import Painter, clean
from hermes.surfaces.cli.output import cut, width_of
from hermes.types import (
    BlockClosed,
    CallFinished,
    CallProgress,
    CallStarted,
    ChildProgress,
    Commentary,
    Event,
    MinorEvent,
    ModelAnswered,
    OutputTail,
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
BELOW_LINES = 5  # under a call that runs
KEPT_CALLS = 50  # that can be unfolded
TASK_LINES = 8
OWN = "!"  # begins the id of a command of the person's own, which no turn begins or ends
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


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call that is over, whole: what is unfolded on a key."""

    head: str
    args: dict[str, Any]
    output: str
    diff: str


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
        self._below: dict[str, list[str]] = {}  # by running call: the tail of its output, or how its children fare
        self._progress: dict[str, str] = {}  # by running call: how far it is, as its tool says
        self._asked_s = 0.0  # how long people have been waited for
        self._asked_since: float | None = None
        self._last = ""  # what was written last: text or call, which decides about empty lines
        self._created: set[str] = set()
        self.calls: deque[ShownCall] = deque(maxlen=KEPT_CALLS)
        self._children = ChildLines(now)
        self._last_tool = ""
        self._began = 0.0
        self._tokens = TurnTokens()
        self.context_tokens = 0
        self.is_thinking = False
        self.has_answer = False  # text was shown since the last call

    def begin(self) -> None:
        """A turn starts."""
        self._blocks, self._thought, self._tokens = Blocks(), Blocks(), TurnTokens()
        self._running = {each: since for each, since in self._running.items() if each.startswith(OWN)}
        self._last_tool, self._began, self.has_answer, self.is_thinking = "", self._now(), False, True
        self._below = {each: self._below[each] for each in self._running if each in self._below}
        self._created, self._last, self._progress = set(), "", {}
        self._children.begin()

    def end(self) -> None:
        """Nothing more comes; what was half written stays readable."""
        self._close_text()
        self._tell_cut_off()
        self.is_thinking = False
        if self._last:
            self._screen.write(self._paint.gap)
            self._last = ""
        self._screen.refresh()

    def asking(self, is_asking: bool) -> None:
        """While a person is asked, the time of running calls stands still."""
        now = self._now()
        if is_asking:
            self._asked_since = self._asked_since or now
        elif self._asked_since is not None:
            waited, self._asked_since = now - self._asked_since, None
            self._running = {each: (text, since + waited) for each, (text, since) in self._running.items()}

    def tell_below(self, call_id: str, lines: list[str]) -> None:
        """Show these lines under a running call, in place of those before: its output, or a line for each child."""
        self._below[call_id] = lines

    def live(self) -> list[tuple[str, str]]:
        """(style, line) of what is not there for good yet."""
        lines = [("thought", clean(line)) for line in self._thought.tail(3)]
        if self._look.display.streaming:
            lines += [("", clean(line)) for line in self._blocks.tail(TAIL_LINES)]
        now = self._now()
        now = min(now, self._asked_since) if self._asked_since is not None else now
        for each, (text, since) in self._running.items():
            took = f" ({max(0.0, now - since):.0f} s)"
            lines.append(("running", self._running_line(text, self._progress.get(each, ""), took)))
            lines += [("thought", f"  {clean(line)}") for line in self._below.get(each, ())[-BELOW_LINES:]]
        lines += [("running", clean(line)) for line in self._children.live(self._paint.width - 1)]
        if self.is_thinking and not lines:
            lines.append(("thought", f"working … ({now - self._began:.0f} s; Esc stops)"))
        return lines

    def emit(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._text(event.text)
            case ReasoningDelta():
                self._reasoning(event.text)
            case Commentary():
                if not event.already_streamed:
                    self.say_markdown(event.text)
            case CallStarted():
                self._close_text()
                self._running[event.call.id] = (self._call_text(event.call.name, event.args), self._now())
            case CallFinished():
                self._finished(event)
            case StatusChanged():
                is_quiet = event.kind == "prompt"
                self._put("call", self._paint.line(f"· {event.message}", "dim" if is_quiet else "yellow"))
            case SessionRotated():
                self.context_tokens = 0
            case TurnFinished():
                self._turn_finished(event)
            case MinorEvent():
                if not self._minor(event):
                    return
            case _:
                assert_never(event)
        self._screen.refresh()

    def _minor(self, event: MinorEvent) -> bool:
        """Take in an event that others may pass over; False when it changes nothing here."""
        match event:
            case BlockClosed():
                self._close_text()
            case OutputTail() if event.call_id in self._running:
                self.tell_below(event.call_id, event.text.splitlines())
            case CallProgress() if event.call_id in self._running:
                self._progress[event.call_id] = " ".join(clean(event.words).split())
            case ModelAnswered():
                self.context_tokens = event.usage.prompt_tokens or self.context_tokens
                self._tokens.add(event.usage)
            case TasksChanged():
                self._put("call", "".join(self._task_line(line) for line in _task_lines(event.tasks)))
            case ChildProgress():
                if line := self._children.see(event):
                    self._put("call", self._paint.line(clean(line), "dim"))
            case StepStarted():
                self.is_thinking = True
            case _:
                return False
        return True

    def _turn_finished(self, event: TurnFinished) -> None:
        self._close_text()
        self._tell_cut_off()
        if record := self._record(event):
            self._screen.write((self._paint.gap if self._last else "") + record)
            self._last = "record"

    def _reasoning(self, text: str) -> None:
        if self._look.show_reasoning:
            for block in self._thought.feed(text):
                self._screen.write(self._paint.style(clean(block.text), "dim") + "\n")

    def say_markdown(self, text: str) -> None:
        """Show a whole text."""
        blocks = Blocks()
        for block in [*blocks.feed(text), *blocks.finish()]:
            self._put("text", self._paint.block(block))
        self.has_answer = True

    def _put(self, kind: str, drawn: str) -> None:
        """Write for good: an empty line before words, none between words and the call that they announce."""
        if drawn:
            is_apart = kind == "text" and self._last in ("text", "call")
            self._screen.write((self._paint.gap if is_apart else "") + drawn)
            self._last = kind

    def _task_line(self, line: str) -> str:
        done = line.lstrip().startswith(("☑", "☒"))
        return self._paint.line(line, *(("dim",) if done else ("cyan",) if "▶" in line else ()))

    def _text(self, text: str) -> None:
        self._close_thought()
        self.has_answer, self.is_thinking = True, False
        for block in self._blocks.feed(text):
            self._block(self._paint.block(block))

    def _block(self, drawn: str) -> None:
        if self._look.display.streaming:
            self._put("text", drawn)
        else:
            self._kept_back.append(drawn)

    def _close_text(self) -> None:
        self._close_thought()
        rest = [self._paint.block(block) for block in self._blocks.finish()]
        for drawn in (*self._kept_back, *rest):
            self._put("text", drawn)
        self._blocks, self._kept_back = Blocks(), []

    def _close_thought(self) -> None:
        for block in self._thought.finish():
            self._put("text", self._paint.style(clean(block.text), "dim") + "\n")

    def _tell_cut_off(self, *ids: str) -> None:
        """Calls that were running when they were stopped stay on the screen: they may have had their effect."""
        for each in ids or [one for one in self._running if not one.startswith(OWN)]:
            text, since = self._running.pop(each)
            self._progress.pop(each, None)
            tail = self._below.pop(each, [])
            if self._look.display.tool_progress != "off":
                ended = f" (stopped after {self._now() - since:.0f} s)"
                head = cut(f"✗ {text}", max(8, self._paint.width - len(ended))) + ended
                printed_so_far = self._paint.output("\n".join(tail), BELOW_LINES)
                self._put("call", self._paint.line(head, "red") + printed_so_far)
                self.calls.append(ShownCall(head, {}, "\n".join(tail), ""))

    def _finished(self, event: CallFinished) -> None:
        if event.result.status == "unknown" and event.call.id in self._running:
            self._tell_cut_off(event.call.id)
            return
        text, since = self._running.pop(event.call.id, (self._call_text(event.call.name, event.args), self._now()))
        self._below.pop(event.call.id, None)
        self._progress.pop(event.call.id, None)
        self.has_answer, self.is_thinking = False, True
        shown = self._look.display.tool_progress
        details, output = event.result.details, printed(text_of(event.result.content))
        exit_code = details.get("exit_code")
        is_ok = event.result.status == "ok" and not exit_code and not details.get("refused")
        diff = str(details.get("diff") or "")
        self._created |= created_in(diff)
        took = (event.result.duration_ms or (self._now() - since) * 1000) / 1000
        refused = refused_words(details)
        tail = refused or f" ({took:.1f} s{f', exit code {exit_code}' if exit_code else ''})"
        whole = output or text_of(event.result.content)  # where no words are in it, all of it is shown
        self.calls.append(ShownCall(f"{'✓' if is_ok else '✗'} {text}{tail}", event.args, whole, diff))
        if shown == "off" or (shown == "new" and event.call.name == self._last_tool and is_ok):
            return
        self._last_tool = event.call.name
        head = cut(f"{'✓' if is_ok else '✗'} {text}", max(8, self._paint.width - len(tail)))
        drawn = self._paint.style(head + tail, "green" if is_ok else "red") + "\n"
        if event.call.name == "todo" and is_ok:
            drawn = ""  # the list itself is shown
        elif diff and self._look.display.inline_diffs:
            drawn += self._paint.diff(diff)
        elif not refused:
            drawn += self._paint.output(output, VERBOSE_LINES if shown == "verbose" else OUTPUT_LINES)
        self._put("call", drawn)

    def _running_line(self, text: str, progress: str, since: str) -> str:
        """One line, whatever is said of it: where both do not fit, how far the call is comes before its arguments."""
        room = max(8, self._paint.width - width_of(since) - 2)
        if not progress:
            return f"● {text}{since}"
        progress = cut(progress, room * 2 // 3)
        return f"● {cut(text, max(8, room - width_of(progress) - 3))} · {progress}{since}"

    def _call_text(self, name: str, args: dict[str, Any]) -> str:
        wanted = [args.get(key) for key in TELLING if key in args] or list(args.values())
        preview = next((value for value in wanted if isinstance(value, str) and value), "")
        return cut(" ".join(f"{name} {clean(preview)}".split()), max(20, self._paint.width - 12))

    def _record(self, event: TurnFinished) -> str:
        """What was really done, from the machine's record and not from what the model says."""
        here = f"{self._look.cwd()}/"
        names = [path.removeprefix(here) for path in event.files_changed]
        lines = [f"{'created' if name in self._created else 'changed'} {name}" for name in names]
        left = len(lines) - SUMMARY_LINES
        more = [f"… and {left} more"] if left > 0 else []
        bad = sum(bool(one.get("exit_code")) for one in event.commands)
        if len(event.commands) > 1:
            ok = len(event.commands) - bad
            more.append(f"{ok} command{'' if ok == 1 else 's'} ok" + (f", {bad} failed" if bad else ""))
        end = [self._tokens.words] if self._tokens.words else []
        return "".join(self._paint.line(f"  {text}", "dim") for text in [*lines[:SUMMARY_LINES], *more, *end])


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
