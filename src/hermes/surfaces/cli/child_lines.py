"""Children on a screen: a live line for each while it works, and one line of what it came to."""

import time
from collections.abc import Callable

from msgspec import Struct

from hermes.surfaces.cli.output import cut, width_of
from hermes.types import ChildProgress

GOAL_CHARS, LEAST_GOAL_CHARS = 48, 12
SUMMARY_CHARS = 120
INDENT = "  "


class _ChildLine(Struct):
    """One child at work."""

    depth: int
    goal: str
    doing: str = "starting"
    tool_count: int = 0
    tokens: int = 0
    since: float = 0.0


class ChildLines:
    """The children of a turn, in the order they began, each below its parent."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._at_work: dict[tuple[str, ...], _ChildLine] = {}

    def begin(self) -> None:
        """A turn starts: nobody works for it yet."""
        self._at_work = {}

    def see(self, event: ChildProgress) -> str:
        """Take the news in; the line that stays when a child has ended, else nothing."""
        if event.stage == "complete":
            self._at_work.pop(event.path, None)
            return summary_line(event)
        line = self._at_work.get(event.path)
        if line is None:
            goal = " ".join(event.goal.split())
            line = self._at_work[event.path] = _ChildLine(len(event.path), goal, since=self._now())
        line.tool_count, line.tokens = event.tool_count, event.tokens
        if event.stage in ("tool", "thinking"):
            line.doing = event.tool_name or "thinking"
        return ""

    def live(self, width: int) -> list[str]:
        """One line per child at work: its task, what it does, how much it has read and written, how long it takes.

        Where `width` columns do not hold them, the words of the task are what is cut.
        """
        return [self._fitting(line, width) for _, line in sorted(self._at_work.items())]

    def _fitting(self, line: _ChildLine, width: int) -> str:
        head = f"{INDENT * line.depth}◦ "
        seconds = self._now() - line.since
        facts = f" · {line.doing} · {calls_words(line.tool_count)} · {_tokens(line.tokens)} · {seconds:.0f} s"
        room = width - width_of(head) - width_of(facts)
        return cut(f"{head}{cut(line.goal, min(GOAL_CHARS, max(LEAST_GOAL_CHARS, room)))}{facts}", width)


def calls_words(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


def summary_line(event: ChildProgress) -> str:
    """What a child came to, in one line: its words come last, since a screen cuts the end."""
    told = event.outcome or {}
    mark = "✓" if told.get("status") == "completed" else "✗"
    words = " ".join(str(told.get("summary") or told.get("error") or "").split())
    tokens = int(told.get("input_tokens") or 0) + int(told.get("output_tokens") or 0)
    took = f"{float(told.get('duration_seconds') or 0.0):.1f} s, {_tokens(tokens)}"
    ended = "" if mark == "✓" else f"{told.get('status')}{': ' if words else ''}"
    goal = cut(" ".join(event.goal.split()), GOAL_CHARS)
    return f"{INDENT * len(event.path)}{mark} {goal} ({took}): {ended}{cut(words, SUMMARY_CHARS)}"


def _tokens(count: int) -> str:
    return f"{count} tokens" if count < 10_000 else f"{count / 1000:.0f}k tokens"
