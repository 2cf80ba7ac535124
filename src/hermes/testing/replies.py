"""The words of a script: what a scripted model or server answers, turn by turn.

    script = [calls("terminal", command="ls"), fault("rate_limit", retry_after=1), says("Three files.")]

Replies are values: join them with `+` (`thinks("hm") + says("Both:") + calls("a") + calls("b", x=1)`), and refine
them with `timed`, `with_usage`, `finishing` and `failing`. `ScriptedModel` and `ScriptedServer` take the same ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from hermes.typed import from_json
from hermes.types import FinishReason, JsonObject, Usage


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One tool call. `arguments` is text, so that it may be broken; an empty `id` is filled in when it is sent."""

    name: str
    arguments: str = "{}"
    id: str = ""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a reply comes: a wait before its first byte, text in pieces of `chunk_size`, a wait between pieces."""

    latency_s: float = 0.0
    chunk_size: int = 16
    chunk_delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong, by the name it has in `hermes.testing.server.faults`."""

    name: str
    options: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer of a model. Build it with `says`, `calls`, `thinks` and `fault`."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    usage: Usage | None = None  # None: a plausible count is made up
    reports_usage: bool = True
    finish: FinishReason | None = None  # None: `tool_calls` with calls, else `stop`
    pace: Pace = Pace()
    fault: Fault | None = None

    def __add__(self, other: "Reply") -> "Reply":
        """Both in one answer; where both set the same thing beside words and calls, the right one wins."""
        return Reply(
            text=self.text + other.text,
            thinking=self.thinking + other.thinking,
            calls=self.calls + other.calls,
            usage=other.usage or self.usage,
            reports_usage=self.reports_usage and other.reports_usage,
            finish=other.finish or self.finish,
            pace=other.pace if other.pace != Pace() else self.pace,
            fault=other.fault or self.fault,
        )

    @property
    def finish_reason(self) -> FinishReason:
        """Why the model stopped."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    def timed(self, *, latency_s: float = 0.0, chunk_size: int = 16, chunk_delay_s: float = 0.0) -> "Reply":
        """The same words at another pace."""
        return replace(self, pace=Pace(latency_s, chunk_size, chunk_delay_s))

    def with_usage(self, **tokens: int | None) -> "Reply":
        """The same words with these token counts, by the field names of `hermes.types.Usage`."""
        return replace(self, usage=Usage(**tokens))

    def without_usage(self) -> "Reply":
        """The same words from a provider that does not say what they cost."""
        return replace(self, reports_usage=False)

    def finishing(self, reason: FinishReason) -> "Reply":
        """The same words, ended for another reason (`length`, `content_filter`, `incomplete`)."""
        return replace(self, finish=reason)

    def failing(self, name: str, /, **options: Any) -> "Reply":
        """The same words, with a fault on the way: `says("a long text").failing("reset", after=2)`."""
        return replace(self, fault=Fault(name, options))


def says(text: str) -> Reply:
    """The model answers with `text`."""
    return Reply(text=text)


def thinks(text: str) -> Reply:
    """The model reasons; add what it then does: `thinks("...") + says("...")`."""
    return Reply(thinking=text)


def calls(name: str, /, **arguments: Any) -> Reply:
    """The model calls the tool `name` with these arguments."""
    return Reply(calls=(ScriptedCall(name, msgspec.json.encode(arguments).decode()),))


def calls_with(name: str, arguments: str, *, call_id: str = "") -> Reply:
    """The model calls `name` with `arguments` as it wrote them: broken, cut off, or under an id of your choice."""
    return Reply(calls=(ScriptedCall(name, arguments, call_id),))


def fault(name: str, /, **options: Any) -> Reply:
    """The provider fails in the way called `name`. Faults in mid-answer have a text to fail in."""
    return Reply(text="This answer does not get to its end.", fault=Fault(name, options))


class _ScriptEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One reply in a script file."""

    says: str = ""
    thinks: str = ""
    calls: list[dict[str, Any]] = []
    usage: Usage | None = None
    reports_usage: bool = True
    finish: FinishReason | None = None
    latency_s: float = 0.0
    chunk_size: int = 16
    chunk_delay_s: float = 0.0
    fault: str = ""
    options: dict[str, Any] = {}


def load_script(file: Path) -> list[Reply]:
    """The replies in a JSON file: a list of objects such as `{"says": "hi"}`, `{"fault": "stall", "options": {}}`,
    `{"calls": [{"name": "terminal", "arguments": {"command": "ls"}}]}`. `msgspec.ValidationError` names what is wrong.
    """
    return [_from_entry(entry) for entry in from_json(file.read_bytes(), list[_ScriptEntry])]


def _from_entry(entry: _ScriptEntry) -> Reply:
    made = Reply(
        text=entry.says,
        thinking=entry.thinks,
        calls=tuple(_calls_from(entry.calls)),
        usage=entry.usage,
        reports_usage=entry.reports_usage,
        finish=entry.finish,
        pace=Pace(entry.latency_s, entry.chunk_size, entry.chunk_delay_s),
    )
    if not entry.fault:
        return made
    started = made if made.text or made.calls else made + fault(entry.fault)
    return started.failing(entry.fault, **entry.options)


def _calls_from(entries: list[dict[str, Any]]) -> Iterable[ScriptedCall]:
    for entry in entries:
        arguments = entry.get("arguments", {})
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        yield ScriptedCall(str(entry["name"]), text, str(entry.get("id", "")))
