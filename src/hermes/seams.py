"""The seams: what each part owes the others. Every protocol has a fake in `hermes.testing` and a contract suite."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

from msgspec import Struct, field

from hermes.confinement.policy import AnyConfinement
from hermes.ops import SessionRecord, StoreOp
from hermes.scope import TurnScope
from hermes.types import Content, Event, ImagePart, JsonObject, Message, ModelEvent, StatusChanged, ToolDefinition

Result = TypeVar("Result")
Body: TypeAlias = bytes | tuple[bytes, ...]  # of a request: whole, or in pieces, so that a long one need not be copied

_JOINED_AT = 16  # so many pieces of a history become one: long ones are not copied for every request


# -- models ------------------------------------------------------------------------------------------------------


class Unit(Struct, frozen=True, eq=False):
    """One wire turn: a user message, an assistant message, or all results of one assistant message.

    A unit never changes, so each encoding of it is made once and kept.
    """

    messages: Sequence[Message]
    context: str = ""  # volatile text that goes to the model after this unit's own, and nowhere else
    _encoded: dict[str, bytes] = field(default_factory=dict)

    def encoded(self, key: str, encode: "Callable[[Unit], bytes]") -> bytes:
        """The bytes of this unit in the form named `key`."""
        found = self._encoded.get(key)
        if found is None:
            found = self._encoded[key] = encode(self)
        return found


class UnitLog(Sequence[Unit]):
    """The units of a history as of now. The list behind it only grows, so nothing is copied for a request.

    `memo` is the history's own, and starts anew when units are replaced.
    """

    __slots__ = ("_count", "_memo", "_units")

    def __init__(self, units: list[Unit], memo: dict[str, tuple[int, Any]]) -> None:
        self._units = units
        self._count = len(units)
        self._memo = memo

    def recall(self, key: str, nothing: Result) -> tuple[int, Result]:
        """Of how many units, counted from the first, something was made before, and what that was."""
        known = self._memo.get(key)
        return (0, nothing) if known is None or known[0] > self._count else known

    def remember(self, key: str, count: int, made: object) -> None:
        """Keep what was made of the first `count` units."""
        self._memo[key] = (count, made)

    def pieces(self, key: str, encode: Callable[[Unit], bytes], apart: int) -> list[bytes]:
        """The encoded units, the last `apart` of them one by one; see `ModelRequest.pieces`."""
        nothing: tuple[list[bytes], Unit | None] = ([], None)
        count, (pieces, newest) = self.recall(key, nothing)
        if count and self._units[count - 1] is not newest:
            count, pieces = count - 1, pieces[:-1]  # it has been given context since
        if count < self._count:
            pieces = [*pieces, *map(encode, self._units[count : self._count])]
            if len(pieces) >= _JOINED_AT + apart:
                pieces[:-apart] = [b",".join(pieces[:-apart])]
            self.remember(key, self._count, (pieces, self._units[self._count - 1]))
        return pieces

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Unit: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Unit, ...]: ...
    def __getitem__(self, place: int | slice) -> Unit | tuple[Unit, ...]:
        if isinstance(place, slice):
            return tuple([self._units[index] for index in range(*place.indices(self._count))])
        return self._units[range(self._count)[place]]


class RequestOptions(Struct, frozen=True, kw_only=True):
    """What is asked of one call beside its words."""

    max_tokens: int | None = None
    reasoning: JsonObject | None = None
    service_tier: str | None = None
    extra_body: JsonObject = field(default_factory=dict)  # merged last
    tool_choice: str = "auto"
    stream: bool = True
    output_schema: JsonObject | None = None  # the provider is asked to hold the answer to it, where it can


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One request, before its wire form. `units` and `tools` of the next request begin with these."""

    system: str
    tools: tuple[ToolDefinition, ...]
    units: Sequence[Unit]
    options: RequestOptions = RequestOptions()
    session_id: str = ""
    shared_chars: int = 0  # of `system`, that other sessions begin with as well: the part worth a cache of its own

    def pieces(self, key: str, encode: Callable[[Unit], bytes], apart: int = 1) -> list[bytes]:
        """The encoded units, to be joined with commas: the last `apart` of them one by one, all before in few pieces.

        Units of a log that were sent before are neither encoded again nor looked at one by one. The newest unit may
        still be given context, and so is never part of the joined piece: `apart` is at least 1.
        """
        units = self.units
        if isinstance(units, UnitLog):
            return units.pieces(key, encode, apart)
        return [unit.encoded(key, encode) for unit in units]


class Model(Protocol):
    """A model behind one wire protocol.

    `stream` yields deltas and, last, exactly one `ModelResponse`; or raises `ProviderError`. It neither retries
    nor writes the ledger. Leaving the iterator closes the request.
    """

    @property
    def name(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]: ...


class HttpLimits(Struct, frozen=True):
    """Seconds for each wait of one request, all below the scope's own deadline."""

    connect_s: float = 30.0
    first_byte_s: float = 300.0
    idle_s: float = 120.0


DEFAULT_LIMITS = HttpLimits()


def whole(body: Body) -> bytes:
    """The body in one piece."""
    return body if isinstance(body, bytes) else b"".join(body)


class HttpStream(Protocol):
    """The byte seam under every transport.

    Yields the body of a 2xx answer as it arrives; other statuses, broken connections and passed limits are raised
    as the errors of `hermes.models.http.errors`. Closing the iterator closes that request's socket at once.
    """

    def post_stream(
        self, url: str, headers: Mapping[str, str], body: Body, scope: TurnScope, limits: HttpLimits = DEFAULT_LIMITS
    ) -> AsyncIterator[bytes]: ...
    async def close(self) -> None: ...


# -- state -------------------------------------------------------------------------------------------------------


class EventStore(Protocol):
    """Durable events. What `commit` has acknowledged survives a crash of the process and, by default, of the power."""

    async def commit(self, *ops: StoreOp) -> tuple[int, ...]:
        """Write all `ops` in one transaction; return a row id for each. On error nothing of them is stored.

        A caller that is cancelled meanwhile gets its cancellation when it is known what became of the write: without a
        cause if it was made, from the error if it failed.
        """

    async def load(self, session_id: str, after: int = 0) -> SessionRecord | None:
        """The session as it stands, or None; of its messages those above row id `after`. Nothing of it is kept here."""

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes once by content; return their sha256."""

    async def get_blob(self, digest: str) -> bytes: ...
    async def close(self) -> None: ...


# -- approval and processes --------------------------------------------------------------------------------------

Route: TypeAlias = Literal[
    "foreground", "background", "pty", "code", "mcp", "plugin", "cron", "subagent", "batch", "acp", "person"
]


class Action(Struct, frozen=True, kw_only=True):
    """Something with an effect that a tool wants to do."""

    kind: Literal["command", "write", "network", "code", "tool"]
    tool: str
    text: str  # the command, the path, the URL, the script
    cwd: str = ""
    backend: str = "local"
    route: Route = "foreground"
    session_id: str = ""
    task_id: str = ""
    details: JsonObject = field(default_factory=dict)


class Decision(Struct, frozen=True, kw_only=True):
    """The gate's word on one action. A supervisor starts nothing without an allowed one."""

    allowed: bool
    reason: str = ""  # for the model when denied: choose another way, never how to lift the rule
    rule: str = ""
    scope: str = "once"
    decided_by: str = "policy"
    outside: bool = False  # a rule or a yes sends it outside the border
    read_only: bool = False  # what runs by it may change nothing of the person's

    @classmethod
    def own(cls, purpose: str) -> "Decision":
        """For the runtime's own children (rg, git, a model server): no model chose what they do."""
        return cls(allowed=True, reason=purpose, rule="runtime", decided_by="runtime")

    @property
    def is_own(self) -> bool:
        """Whether it is for a child of the runtime's own."""
        return self.decided_by == "runtime"


class Gate(Protocol):
    """The one place that decides on effects. Every decision is a row in the store; nobody to ask means deny."""

    async def decide(self, action: Action, scope: TurnScope) -> Decision: ...


class SpawnSpec(Struct, frozen=True, kw_only=True):
    """A child process to be. `env` is complete: nothing is inherited beside it."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    stdin: bytes | None = None
    owner: str = ""  # the call or session it belongs to
    merge_stderr: bool = True  # else its end is kept apart, see `Child.stderr_tail`
    pass_fds: tuple[int, ...] = ()
    keep_stdin: bool = False  # leave stdin open for `Child.write`
    linger_s: float = 0.3  # what descendants get to finish once the program itself has ended
    await_start: bool = True  # else `spawn` returns at once without a pid, and `wait` raises a failure to start
    max_processes: int = 0  # end the child when it has more processes than this; 0 is no limit
    confinement: AnyConfinement | None = None  # a supervisor starts nothing without


class Child(Protocol):
    """A running call child: it dies with its call and with the runtime."""

    @property
    def pid(self) -> int: ...
    @property
    def is_gone(self) -> bool: ...
    def output(self) -> AsyncIterator[bytes]: ...
    async def wait(self) -> int:
        """The exit code, negative for a signal, once nothing of the child is left."""

    async def exited(self) -> int:
        """The exit code as soon as the program itself has ended; see `SpawnSpec.linger_s` for what it left."""

    async def stop(self, grace_s: float = 1.0) -> None:
        """TERM, grace, KILL for the child and everything that descends from it."""

    async def write(self, data: bytes) -> None:
        """Send to the child's stdin (`keep_stdin`); raises `BrokenPipeError` when nobody reads it any more."""

    def close_stdin(self) -> None: ...
    def stderr_tail(self) -> bytes: ...
    def release(self) -> None:
        """Close the runtime's ends; what still runs is stopped. Call it in a `finally`."""


class Supervisor(Protocol):
    """The one place that starts processes. It owns every child until the child is gone."""

    async def spawn(self, decision: Decision, spec: SpawnSpec) -> Child: ...
    async def close(self) -> None: ...


class ExecResult(Struct, frozen=True, kw_only=True):
    """What a command left: output as text, and where the whole of it is when that was cut."""

    output: str
    exit_code: int
    cwd: str
    backend: str
    timed_out: bool = False
    interrupted: bool = False
    total_bytes: int = 0
    spill_path: str | None = None  # on the host: the complete output, when `output` is head and tail
    notes: tuple[str, ...] = ()  # what was put back or dropped after it, in sentences for the model


class FileInfo(Struct, frozen=True, kw_only=True):
    """What `stat` says of a path, links followed; `is_link` tells that there was one."""

    path: str  # absolute, links resolved
    kind: Literal["file", "dir", "fifo", "device", "socket", "other"]
    size: int
    mtime_ns: int
    mode: int
    is_link: bool = False


class OpenBuffers(Protocol):
    """An editor that may hold a file in words that it has not saved; a session's memo has it as `OPEN_BUFFERS`."""

    async def text(self, path: str) -> str | None:
        """The words of the file as they are in the editor; None where it cannot say."""


OPEN_BUFFERS = "open_buffers"


class Environment(Protocol):
    """Where commands run and files live: one per session, never another by itself.

    `cd` and exported variables, functions and aliases last from one command to the next. Every path is one of this
    environment; relative ones start at `cwd`. When the environment is gone its methods raise `ToolError`.
    """

    @property
    def kind(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def cwd(self) -> str: ...
    async def ready(self) -> str:
        """Where the session stands, once that is known for sure; `ToolError` when the backend cannot be reached."""

    async def execute(
        self,
        command: str,
        decision: Decision,
        scope: TurnScope,
        *,
        timeout_s: float | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
    ) -> ExecResult: ...
    async def stat(self, path: str) -> FileInfo | None: ...
    async def first_file(self, paths: Sequence[str]) -> str | None:
        """The first of `paths` that is a file, found in one journey to where the files are."""

    async def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes: ...
    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Replace the file atomically: the old bytes or the new ones, never a mixture. Makes parent folders."""

    async def remove(self, path: str) -> None: ...
    async def rename(self, old: str, new: str) -> None: ...
    async def list_dir(self, path: str) -> list[str]: ...
    async def close(self) -> None: ...


# -- tools -------------------------------------------------------------------------------------------------------


class ResultShelf(Protocol):
    """Large results of a session, each behind a handle `hermes://result/<id>`."""

    async def put(self, name: str, data: bytes) -> str:
        """Keep `data`; return its handle."""

    async def put_file(self, name: str, path: str) -> str:
        """Take over the file at `path` on the host, as it is and whatever its size; return its handle."""

    async def read(self, handle: str, offset: int = 0, size: int | None = None) -> bytes: ...
    async def size(self, handle: str) -> int: ...


class ToolContext(Protocol):
    """The narrow slice of a turn that a tool handler sees."""

    @property
    def session_id(self) -> str: ...
    @property
    def task_id(self) -> str: ...
    @property
    def call_id(self) -> str: ...
    @property
    def user_task(self) -> str | None:
        """What the user asked for in this turn."""

    @property
    def scope(self) -> TurnScope: ...
    @property
    def environment(self) -> Environment: ...
    @property
    def gate(self) -> Gate: ...
    @property
    def supervisor(self) -> Supervisor: ...
    @property
    def shelf(self) -> ResultShelf: ...
    @property
    def settings(self) -> Mapping[str, Any]:
        """The merged configuration, read only."""

    @property
    def memo(self) -> dict[str, Any]:
        """What tools of this task keep between calls (read times, todo list); rebuilt from history when cold."""

    @property
    def route(self) -> Route: ...
    async def in_thread(self, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        """Run blocking work in the kernel's pool of daemon threads."""

    def emit(self, event: Event) -> None: ...
    async def note(self, key: str, value: Any) -> None:
        """Add to this call's details: what surfaces and the turn's record show (diff, exit code, files)."""


class NestedCalls(Protocol):
    """Calls that a call makes itself, such as those of a script: through every stage that the model's own go through.

    They are journalled under ids of their own, never become messages, and may be made side by side; what they read
    and write decides which of them wait for each other.
    """

    def names(self) -> frozenset[str]:
        """The tools that can be called."""

    def check(self, name: str, args: JsonObject) -> JsonObject:
        """`args` as the offered schema wants them; `ToolError` when they do not fit it."""

    async def call(self, name: str, args: JsonObject, scope: TurnScope) -> Content:
        """The result of a checked call, within what is left of `scope`; what the handler raises is told in it."""


@runtime_checkable
class MakesCalls(Protocol):
    """A `ToolContext` whose handler may make calls of its own."""

    def nested(self) -> NestedCalls: ...


@runtime_checkable
class Sees(Protocol):
    """A `ToolContext` whose handler may have a model look at pictures; outside an agent there is none."""

    async def look(self, image: ImagePart, question: str) -> str:
        """What the model answers about `image`, a data URL; `ToolError` when no answer can be had.

        It is a model call like any other: in the ledger, under the caps, within what is left of the turn.
        """


@runtime_checkable
class AsksUser(Protocol):
    """A `ToolContext` whose handler may ask the person."""

    async def ask_user(self, question: str, choices: Sequence[str] | None) -> str:
        """What the person answers; `ToolError` at once where nobody can, and when nobody did in time."""
        ...


class Effects(Struct, frozen=True):
    """The resources one call reads and writes, as `kind:part/part`; a resource covers everything below it.

    `file:/srv/app` covers `file:/srv/app/main.py`. `barrier` is for effects that cannot be named: such a call runs
    alone, after all calls before it and before all calls after it.
    """

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    barrier: bool = False


class ToolRules(Struct, frozen=True, kw_only=True):
    """How calls of one tool are run and what is done with their results."""

    toolset: str = ""
    interactive: bool = False  # talks with a person: runs alone, no time limit counts
    agent_loop: bool = False  # needs a live turn
    read_only: bool = False  # the same call with the same result is no progress
    edits: bool = False  # changes files: the edit guard is asked first
    provenance: str = ""  # where content from outside comes from; it is fenced as data
    timeout_s: float | None = 300.0
    max_result_chars: float = 100_000
    spill: bool = True


class ToolView(Protocol):
    """The session's frozen view of the tools: what is offered, in stable order, and how each is called."""

    def definitions(self) -> tuple[ToolDefinition, ...]: ...
    def names(self) -> frozenset[str]: ...
    def barred(self) -> frozenset[str]:
        """Those that are switched off: on offer still, for the sake of the prompt's prefix, but they never run."""

    def guidance(self) -> tuple[str, ...]:
        """Sentences for the system prompt, from the tools that are offered."""
        ...

    def unwrap(self, name: str, args: JsonObject) -> tuple[str, JsonObject]:
        """The real tool and arguments of a call that goes through another tool; any other call as it is."""

    def check(self, name: str, args: JsonObject) -> JsonObject:
        """`args` in the types the offered schema asks for; `ToolError` when they do not fit it."""

    def effects(self, name: str, args: JsonObject, ctx: ToolContext) -> Effects:
        """What a call would touch; a barrier when that is unknown."""

    def rules(self, name: str) -> ToolRules: ...
    async def call(self, name: str, args: JsonObject, ctx: ToolContext) -> Content:
        """Run one validated call; raises `ToolError` (or anything a foreign handler raises)."""


class HookBus(Protocol):
    """Policy: any error, timeout or missing plugin denies. Observer: never affects the call, and is not waited for.

    Transform: changes a text; one that fails changes nothing.
    """

    async def allow(self, hook: str, payload: JsonObject) -> str | None:
        """None to go on, else the reason to refuse."""

    async def observe(self, hook: str, payload: JsonObject) -> None: ...
    async def transform(self, hook: str, value: str, payload: JsonObject) -> str: ...
    async def gather(self, hook: str, payload: JsonObject) -> list[Any]:
        """What the callbacks answer, in order; none of them can fail the caller."""


# -- prompt, context, output -------------------------------------------------------------------------------------


class PromptText(Struct, frozen=True):
    """What a source says in the prompt, where it has it from, and what a person should know about that."""

    text: str
    origin: str = ""
    told: tuple[StatusChanged, ...] = ()


class PromptSource(Protocol):
    """One part of the system prompt, built once per session. Order is by `tier`, then by `name`."""

    @property
    def name(self) -> str: ...
    @property
    def tier(self) -> Literal["stable", "context", "volatile"]: ...
    async def text(self, session: JsonObject) -> str | PromptText:
        """Its words; empty for none. `session` has session_id, model, provider, tools, skip_memory, pass_session_id."""
        ...


class ContextEngine(Protocol):
    """Decides when a history is too long and what takes its place. It never edits what it is given.

    `hermes.context.ContextEngine` is the base for engines of one's own.
    """

    last_error: str  # why the last `compress` could not make it shorter, where there is a reason to tell
    compression_count: int

    @property
    def name(self) -> str: ...
    def update_model(
        self, model: str, context_length: int, base_url: str = "", api_key: str = "", provider: str = ""
    ) -> None: ...
    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        """After every answer: `prompt_tokens`, `completion_tokens` and `total_tokens`, as the provider counted them."""

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Before every call: whether a prompt of that size leaves too little of the window.

        More tokens never make it False again.
        """

    def compress(
        self, messages: list[JsonObject], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[JsonObject] | Awaitable[list[JsonObject]]:
        """The messages a child session begins with in place of these; these themselves when they stay.

        They are fewer characters, end with the newest message, and hold no call without its result.
        """

    def has_content_to_compress(self, messages: list[JsonObject]) -> bool: ...
    def on_session_end(self, session_id: str, messages: list[JsonObject]) -> None: ...
    def on_session_start(self, session_id: str, **keywords: Any) -> None: ...


class Sink(Protocol):
    """Where events leave the kernel. It never blocks and never raises; what it writes is redacted."""

    def emit(self, event: Event) -> None: ...


class Clock(Protocol):
    """Wall time for records, monotonic time for durations."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...


class Ids(Protocol):
    """Fresh identifiers; a seeded one makes tests repeatable."""

    def session(self) -> str:
        """`YYYYMMDD_HHMMSS_` and six hex digits."""

    def new(self, prefix: str) -> str: ...
