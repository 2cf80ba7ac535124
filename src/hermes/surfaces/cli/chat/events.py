"""Where the events of a turn go: JSON lines on stdout for a script, short lines on stderr for a person."""

import time
from collections.abc import Callable
from typing import assert_never

import msgspec

from hermes.seams import Sink
from hermes.surfaces.cli.output import Output, cut, token_words
from hermes.types import (
    CallFinished,
    CallStarted,
    ChildProgress,
    Commentary,
    Event,
    JsonObject,
    MinorEvent,
    ModelAnswered,
    ReasoningDelta,
    SessionRotated,
    StatusChanged,
    TextDelta,
    TurnFinished,
    Usage,
    text_of,
)

SHOWN_CHARS = 160
_HELD_CHARS = 400


class JsonLines:
    """One JSON object a line, each with its `type`. When nobody reads any more, `on_gone` is called once."""

    def __init__(self, out: Output, on_gone: Callable[[], None]) -> None:
        self._out = out
        self._on_gone = on_gone
        self.gone: BrokenPipeError | None = None  # how that was noticed

    def emit(self, event: Event) -> None:
        if self.gone is not None:
            return
        try:
            self._out.json(event)
        except BrokenPipeError as error:
            self.gone = error
            self._on_gone()


class TurnTokens:
    """What the model calls of a turn read and wrote, as far as providers say."""

    def __init__(self) -> None:
        self._read = self._cached = self._written = 0

    def add(self, usage: Usage) -> None:
        self._read += usage.prompt_tokens or 0
        self._cached += usage.cache_read_tokens or 0
        self._written += usage.output_tokens or 0

    @property
    def words(self) -> str:
        """For the line at the end of the turn; empty when nobody has said anything."""
        return token_words(self._read, self._cached, self._written) if self._read else ""


class Progress:
    """A line for each tool call with its duration, and for what a waiting person should know."""

    def __init__(self, out: Output, *, verbose: bool, preview_chars: int) -> None:
        self._out = out
        self._verbose = verbose
        self._preview_chars = preview_chars
        self._thinking = False
        self._tokens = TurnTokens()
        self._started: dict[str, float] = {}

    def emit(self, event: Event) -> None:
        match event:
            case CallStarted():
                self._started[event.call.id] = time.monotonic()
            case CallFinished():
                self._finished(event)
            case StatusChanged():
                self._out.note(f"· {event.message}")
            case ReasoningDelta():
                self._think(event.text)
            case TextDelta():
                self._stop_thinking()
            case ModelAnswered():
                self._tokens.add(event.usage)
            case TurnFinished():
                self._record(event)
                if self._tokens.words:
                    self._out.note(f"· {self._tokens.words}")
            case Commentary():
                self._out.quote(event.text.strip())
            case ChildProgress():
                self._child(event)
            case SessionRotated() | MinorEvent():
                return  # the answer is printed when it is whole, with the session it is in
            case _:
                assert_never(event)

    def _child(self, event: ChildProgress) -> None:
        if event.stage == "complete":
            from hermes.surfaces.cli.child_lines import summary_line  # for who has children

            self._out.note(summary_line(event))

    def _think(self, text: str) -> None:
        if self._verbose:
            self._out.stderr.write(text)
            self._thinking = True

    def _stop_thinking(self) -> None:
        if self._thinking:
            self._out.note("")
            self._thinking = False

    def _finished(self, event: CallFinished) -> None:
        since = self._started.pop(event.call.id, time.monotonic())
        # Not the time until now: a call is told with those that ran beside it, when all of them are stored.
        took = event.result.duration_ms / 1000 or time.monotonic() - since
        details = event.result.details
        code = details.get("exit_code")
        mark = "✓" if event.result.status == "ok" and not code and not details.get("refused") else "✗"
        preview = next((str(value) for value in event.args.values() if isinstance(value, str) and value), "")
        shown = cut(" ".join(preview.split()), max(1, self._preview_chars))
        tail = _refused(details) or f" ({took:.1f} s{f', exit code {code}' if code else ''})"
        self._out.quote(f"{mark} {event.call.name} {shown}{self._out.typed(tail)}".replace("  ", " "))

    def _record(self, event: TurnFinished) -> None:
        if not self._verbose:
            return
        for path in event.files_changed:
            self._out.quote(f"changed {path}")
        for command in event.commands:
            self._out.quote(f"ran {command.get('command')} (exit code {command.get('exit_code')})")
        for failed in event.failed_calls:
            self._out.quote(f"failed {failed.get('name')}: {printed(str(failed.get('error')))}")


class Unheeded:
    """A line for each option, rules file and entry of the memory that is not taken; no more where nobody watches."""

    def __init__(self, out: Output) -> None:
        self._out = out

    def emit(self, event: Event) -> None:
        if isinstance(event, StatusChanged) and event.kind in ("memory", "option", "rules"):
            self._out.note(f"note: {event.message}")


class Unproven:
    """Keeps what came last of each kind of action, so that an answer that follows a failure can be flagged."""

    def __init__(self, inner: Sink | None) -> None:
        self._inner = inner
        self._last: dict[str, str] = {}

    def emit(self, event: Event) -> None:
        if isinstance(event, CallFinished):
            self._last[event.call.name] = _failure(event)
        if self._inner is not None:
            self._inner.emit(event)

    @property
    def called(self) -> frozenset[str]:
        """The tools that were used."""
        return frozenset(self._last)

    @property
    def doubts(self) -> list[str]:
        """A sentence for each kind of action whose last try did not succeed."""
        return [sentence for sentence in self._last.values() if sentence]


def _refused(details: JsonObject) -> str:
    if "refused" not in details:
        return ""
    from hermes.surfaces.cli.chat.refused_words import refused_words  # rare

    return refused_words(details)


def _failure(event: CallFinished) -> str:
    details, name = event.result.details, event.call.name
    code = details.get("exit_code")
    if details.get("command") and code:
        held = details.get("sandbox")  # a host that was refused, with how to grant it, and the like
        also = f" ({cut(_line(str(held)), _HELD_CHARS)})" if held else ""
        command = cut(_line(str(details["command"])), SHOWN_CHARS)
        return f"the last command ended with exit code {code}: {command}{also}"
    if event.result.status != "ok":
        why = _line(printed(text_of(event.result.content)))
        return f"the last call of {name} did not succeed: {cut(why, SHOWN_CHARS)}"
    return ""


def _line(text: str) -> str:
    return " ".join(text.split())


def printed(content: str) -> str:
    """The words in a tool's result, without the marks and the JSON around them; empty where there are none."""
    wordless = ""
    if content.startswith("<"):
        from hermes.tools.results.tool_result import unfenced  # for what came from outside

        content = wordless = unfenced(content)
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return content
    if not isinstance(found, dict):
        return content
    if found.get("error"):
        return str(found["error"])
    for name in ("output", "content", "message", "note", "result"):
        if isinstance(found.get(name), str):
            return str(found[name])
    return wordless  # the marks are for the model
