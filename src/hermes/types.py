"""The vocabulary that all layers share: messages, calls, results, usage, requests and events.

Values, never part of a cycle: the garbage collector need not look at them (`gc=False`), however many a session has.
"""

from operator import attrgetter
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
ResultStatus: TypeAlias = Literal["ok", "failed", "cancelled", "unknown"]
FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter", "incomplete"]
JsonObject: TypeAlias = dict[str, Any]


# -- messages ----------------------------------------------------------------------------------------------------


class TextPart(Struct, frozen=True, gc=False, tag_field="type", tag="text"):
    """A run of text inside a multi-part message."""

    text: str


class ImagePart(Struct, frozen=True, gc=False, tag_field="type", tag="image", omit_defaults=True):
    """A picture: an http(s) or data URL, or `blob:<sha256>` once the store has taken the bytes out of the row."""

    url: str
    media_type: str = ""
    detail: str = ""


class OpaquePart(Struct, frozen=True, gc=False, tag_field="type", tag="opaque"):
    """A part in a shape we do not know; kept whole, sent only to the protocol it came from."""

    raw: JsonObject


Part: TypeAlias = TextPart | ImagePart | OpaquePart
Content: TypeAlias = str | tuple[Part, ...]


class ToolCall(Struct, frozen=True, gc=False, omit_defaults=True):
    """One call the model asked for. `arguments` is the JSON text as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str = "{}"
    provider_data: JsonObject | None = None


class Message(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One stored event of a conversation. Never edited after it was stored; a later one supersedes it."""

    role: Role
    content: Content | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    status: ResultStatus | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: Any = None
    codex_reasoning_items: Any = None
    codex_message_items: Any = None
    platform_message_id: str | None = None
    token_count: int | None = None
    timestamp: float | None = None
    id: int | None = None


THOUGHTS = ("reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items", "codex_message_items")
NO_THOUGHTS = (None,) * len(THOUGHTS)
thoughts_of = attrgetter(*THOUGHTS)  # of a message, one for each of these


class ToolResult(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What came of one call. `details` is for surfaces and the turn's record, never for the model."""

    call_id: str
    name: str
    content: Content
    status: ResultStatus = "ok"
    duration_ms: float = 0.0
    details: JsonObject = field(default_factory=dict)


def text_of(content: Content | None) -> str:
    """The words of `content`, pictures left out."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


# -- the model's side --------------------------------------------------------------------------------------------


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens of one attempt by class; None is "the provider did not say", never zero.

    `input_tokens` excludes what was read from or written to the provider's cache.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def prompt_tokens(self) -> int | None:
        """Everything the model read, cached or not."""
        if self.input_tokens is None:
            return None
        return self.input_tokens + (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)


class ToolDefinition(Struct, frozen=True, gc=False):
    """A tool as offered to a model: `parameters` is JSON Schema."""

    name: str
    description: str
    parameters: JsonObject


class ModelResponse(Struct, frozen=True, gc=False, kw_only=True):
    """One complete answer, whichever protocol it came over."""

    message: Message
    finish_reason: FinishReason
    usage: Usage = Usage()
    model: str = ""
    partial: bool = False  # the stream died after some text; what arrived is in `message`
    broken_by: str = ""  # why, for a person
    tokens: JsonObject | None = None  # ids and log-probabilities


class TextDelta(Struct, frozen=True, gc=False, tag="text_delta"):
    """Provisional text; durable only once its message is stored."""

    text: str


class ReasoningDelta(Struct, frozen=True, gc=False, tag="reasoning_delta"):
    """Provisional reasoning text."""

    text: str


class MinorEvent(Struct, frozen=True, gc=False):
    """The base of events that a listener may pass over without misleading anybody: one more costs no surface a line."""


class CallAnnounced(MinorEvent, frozen=True, gc=False, tag="call_announced"):
    """The model has begun to write a call to this tool."""

    name: str


ModelDelta: TypeAlias = TextDelta | ReasoningDelta | CallAnnounced
ModelEvent: TypeAlias = ModelDelta | ModelResponse


# -- events of a turn --------------------------------------------------------------------------------------------


class TurnStarted(MinorEvent, frozen=True, gc=False, tag="turn_started"):
    session_id: str
    turn_id: str
    model: str


class StepStarted(MinorEvent, frozen=True, gc=False, tag="step_started"):
    """An iteration begins; `previous` names the tools of the one before."""

    step: int
    previous: tuple[str, ...] = ()


class BlockClosed(MinorEvent, frozen=True, gc=False, tag="block_closed"):
    """Streamed text of this answer is complete; tools run next."""


class CallStarted(Struct, frozen=True, gc=False, tag="call_started"):
    """A call is about to run; its started row is already stored."""

    call: ToolCall
    args: JsonObject


class CallFinished(Struct, frozen=True, gc=False, tag="call_finished"):
    """A call has its result; the result is stored before the model sees it."""

    call: ToolCall
    args: JsonObject
    result: ToolResult


class OutputTail(MinorEvent, frozen=True, gc=False, tag="output_tail"):
    """The last lines of what a running call has printed so far; provisional, a few times a second."""

    call_id: str
    text: str


class CallProgress(MinorEvent, frozen=True, gc=False, tag="call_progress"):
    """How far a call has come, in whatever its tool counts."""

    call_id: str
    name: str
    progress: float
    total: float | None = None
    text: str = ""

    @property
    def words(self) -> str:
        """For the line of the call: what its tool says, and how much of how much is done."""
        done = f"{self.progress:g}" if not self.total else f"{self.progress:g} of {self.total:g}"
        return f"{self.text} ({done})" if self.text else done


class TasksChanged(MinorEvent, frozen=True, gc=False, tag="tasks_changed"):
    """The model has written its task list; `tasks` is all of it, each with id, content and status."""

    tasks: tuple[JsonObject, ...]


class Commentary(Struct, frozen=True, gc=False, tag="commentary"):
    """Text the model wrote beside its calls."""

    text: str
    already_streamed: bool


StatusKind: TypeAlias = Literal[
    "compression",
    "fallback",
    "guardrail",
    "memory",
    "option",
    "probe",
    "prompt",  # what a session begins with; the one kind that is no trouble
    "quarantine",
    "retry",
    "rules",  # trouble with the files that say how to work here
    "sandbox",
    "secret",
    "skills",
    "waiting",
    "warning",
]


class StatusChanged(Struct, frozen=True, gc=False, tag="status"):
    """Something a person waiting should know: a retry, a fallback, a warning."""

    kind: StatusKind
    message: str


class ModelAnswered(MinorEvent, frozen=True, gc=False, tag="model_answered"):
    model: str
    provider: str
    finish_reason: str
    usage: Usage


ChildStage: TypeAlias = Literal["start", "thinking", "tool", "text", "progress", "complete"]


class ChildProgress(MinorEvent, frozen=True, gc=False, kw_only=True, tag="child_progress"):
    """What a child of the turn is doing. `path` leads to it: the names of those above it, and its own."""

    stage: ChildStage
    path: tuple[str, ...]
    child_session_id: str
    task_index: int
    task_count: int
    goal: str
    model: str = ""
    toolsets: tuple[str, ...] = ()
    tool_count: int = 0  # calls so far
    tokens: int = 0
    seconds: float = 0.0
    tool_name: str = ""
    preview: str = ""
    args: JsonObject | None = None
    outcome: JsonObject | None = None  # of one that is complete: status, summary, files, tokens, cost


class PrefixBroken(MinorEvent, frozen=True, gc=False, tag="prefix_broken"):
    """The stable prefix of requests was given up, for one of the few allowed reasons."""

    reason: Literal["compression", "model_switch", "toolset_change", "quarantine", "plugin", "output_schema"]
    tokens_lost: int | None = None


class SessionRotated(Struct, frozen=True, gc=False, kw_only=True, tag="session_rotated"):
    """The session was compressed and goes on under another id; `previous` is closed and stays readable."""

    session_id: str
    previous: str


class TurnFinished(Struct, frozen=True, gc=False, kw_only=True, tag="turn_finished"):
    """The machine record of a turn: how it ended, and what was really done."""

    session_id: str
    turn_id: str
    exit_reason: str
    completed: bool
    api_calls: int
    files_changed: tuple[str, ...] = ()
    commands: tuple[JsonObject, ...] = ()  # {"command", "exit_code"}
    failed_calls: tuple[JsonObject, ...] = ()  # {"name", "error"}


# -- questions to people -----------------------------------------------------------------------------------------

QuestionKind: TypeAlias = Literal["approval", "edit", "clarify", "secret", "sudo"]


class Question(Struct, frozen=True, gc=False, kw_only=True):
    """Something a turn waits for a person to say. What is none of the `choices` is a no, unless there are none."""

    id: str
    kind: QuestionKind
    text: str
    choices: tuple[str, ...] = ()
    deadline: float = 0.0  # seconds of the clock at which silence becomes a no; 0 is never
    details: JsonObject = field(default_factory=dict)  # of an approval: command, effects, tool, cwd, pattern keys
    shown: JsonObject = field(default_factory=dict)  # for listeners of this process, never stored: the edit, whole


Event: TypeAlias = (
    TurnStarted
    | StepStarted
    | TextDelta
    | ReasoningDelta
    | CallAnnounced
    | BlockClosed
    | CallStarted
    | CallFinished
    | OutputTail
    | CallProgress
    | TasksChanged
    | Commentary
    | StatusChanged
    | ModelAnswered
    | ChildProgress
    | PrefixBroken
    | SessionRotated
    | TurnFinished
)
