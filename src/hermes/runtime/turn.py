"""A turn under way: what stays the same for all its requests, and what it has come to so far."""

import asyncio
from collections.abc import Awaitable, Callable
from threading import Lock
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from hermes.errors import ProviderError
from hermes.models.client import ModelClient
from hermes.ops import ContextAttached, EventStored, MessageAppended, SessionChanged, StoreOp
from hermes.runtime.context import TurnContext
from hermes.runtime.guardrails import Guardrails, IterationBudget
from hermes.runtime.outcome import Outcome
from hermes.runtime.parts import TurnFacts
from hermes.runtime.redaction import clean_message
from hermes.runtime.requests import sendable
from hermes.runtime.session.context_watch import ContextWatch
from hermes.runtime.session.history import History
from hermes.runtime.session.lease import SessionLease
from hermes.runtime.steps import TurnProgress
from hermes.seams import ModelRequest, RequestOptions, Unit
from hermes.types import Event, JsonObject, Message, ToolDefinition

if TYPE_CHECKING:
    from hermes.runtime.fork import Fork
    from hermes.runtime.output_schema import OutputCheck


class SteerBox:
    """Thread-safe: a surface puts words in, the loop takes them out after a round of tools."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._lock = Lock()  # guards _said

    def put(self, text: str) -> None:
        with self._lock:
            self._said.append(text)

    def take(self) -> str:
        """Everything said so far, in order; empty when nothing was."""
        if not self._said:
            return ""
        with self._lock:
            said, self._said = self._said, []
        return "\n".join(said)


class Turn(Struct, kw_only=True):
    """The loop's one piece of state."""

    ctx: TurnContext
    client: ModelClient
    history: History
    system: str
    tools: tuple[ToolDefinition, ...]
    options: RequestOptions
    budget: IterationBudget
    max_iterations: int
    max_calls: int  # of one answer, that are run
    steer: SteerBox
    lease: SessionLease
    outcome: Outcome  # the one of `ctx`, where the calls of scripts add to it
    guardrails: Guardrails = field(default_factory=Guardrails)
    tool_delay_s: float = 0.0
    prefill: tuple[Unit, ...] = ()
    progress: TurnProgress = field(default_factory=TurnProgress)
    pending: list[StoreOp] = field(default_factory=list)  # to be committed with the next request, or at the end
    untold: list[Event] = field(default_factory=list)  # what nobody is shown before that is committed
    stood_in: str = ""  # the folder, as the session's row has it
    ran: tuple[str, ...] = ()  # the tools of the last round
    model_config: JsonObject = field(default_factory=dict)  # of the session's row
    earlier: tuple[str, ...] = ()  # the ids that the session had before it was compressed
    is_new: bool = True  # nothing was said in the session before
    title: str | None = None  # of the session, when the turn began
    stores_events: bool = False
    goes_on: bool = False  # its context is told already
    watch: ContextWatch
    full_again_at: int = 0  # tokens: below, it was tried in vain to make room
    refusals: int = 0
    at_end: Callable[[Outcome], list[StoreOp]] | None = None  # what else the last commit tells
    cache_key: str = ""  # by which a provider knows requests that begin alike; empty is the session's id
    shared_chars: int = 0  # of the system prompt, that other sessions begin with as well
    platform: str = "cli"  # the way in
    output: "OutputCheck | None" = None  # of the answer, where data is wanted
    make_room: "Callable[[Turn, ProviderError | None], Awaitable[bool]] | None" = None  # by compressing the session

    @property
    def session_id(self) -> str:
        return self.ctx.session_id

    def facts(self) -> TurnFacts:
        """What parts may know of the turn, as it stands."""
        return TurnFacts(
            session_id=self.ctx.session_id,
            earlier=self.earlier,
            is_new=self.is_new,
            title=self.title,
            said=self.history.last_user,
            history=self.history.dicts,
            model=self.client.model.name,
            turn_id=self.ctx.turn_id,
            fork=self.fork,
        )

    def fork(self) -> "Fork":
        """The conversation as it stands, to go on with apart from the session."""
        from hermes.runtime.fork import Fork  # paid by who does

        request, replace = self.request(self.tools), msgspec.structs.replace
        plain = replace(request, units=tuple(request.units), options=replace(self.options, output_schema=None))
        return Fork(request=plain, ctx=self.ctx, client=self.client)

    def remember(self, message: Message) -> MessageAppended:
        """Take `message` into the history; the returned row must reach the store before anything acts on it."""
        clean = clean_message(message, self.ctx.services.redactor)
        stamped = msgspec.structs.replace(clean, timestamp=self.ctx.services.clock.now())
        self.history.add(stamped)
        return MessageAppended(self.ctx.session_id, stamped, is_clean=True)

    def tell(self, text: str) -> None:
        """Say something to the model beside the newest message; replayed there, never part of the transcript."""
        clean = self.ctx.services.redactor.redact(text)
        self.history.builder.attach(clean)
        self.pending.append(ContextAttached(self.ctx.session_id, clean))

    def take_pending(self) -> list[StoreOp]:
        ops, self.pending = self.pending, []
        return ops

    async def commit(self, *ops: StoreOp) -> None:
        """Write what is pending and `ops`, then show what waited for it.

        An interrupt meanwhile takes effect when it is known to be written.
        """
        try:
            await self.ctx.services.store.commit(*self.take_pending(), *ops)
        except asyncio.CancelledError as stopped:
            if stopped.__cause__ is None:
                self.show()
            raise
        self.show()

    def show_later(self, event: Event) -> None:
        """Show `event` when what is pending is stored."""
        self.untold.append(event)

    def show(self) -> None:
        """Everything that waited to be shown is stored now."""
        if self.untold:
            events, self.untold = self.untold, []
            for event in events:
                self.ctx.sink.emit(event)

    def drop(self) -> None:
        """Nothing more of this turn can be stored, so nothing more of it is shown."""
        self.pending, self.untold = [], []

    def ending(self, outcome: Outcome | None = None) -> list[StoreOp]:
        """What the last commit of the turn tells beside its own: where the session stands now, and that it is free.

        `outcome` is how the turn ends with this commit, where that is not known to the turn itself yet.
        """
        if not self.lease.fence:
            return []  # given back already, or somebody else's by now
        cwd = self.ctx.services.environment.cwd
        moved: list[StoreOp] = [] if cwd == self.stood_in else [SessionChanged(self.session_id, {"cwd": cwd})]
        self.stood_in = cwd
        if self.at_end is not None:
            moved += self.at_end(outcome or self.outcome)
        if self.stores_events:
            verdict = (outcome or self.outcome).verdict()
            moved.append(EventStored(self.session_id, "turn_finished", self.ctx.turn_id, verdict))
        return [*moved, *self.lease.releasing()]

    def request(self, tools: tuple[ToolDefinition, ...]) -> ModelRequest:
        """All that was said so far, for a call with these tools."""
        units = sendable(self.history.builder.finish())
        return ModelRequest(
            system=self.system,
            tools=tools,
            units=(*self.prefill, *units) if self.prefill else units,
            options=self.options,
            session_id=self.cache_key or self.ctx.session_id,
            shared_chars=self.shared_chars,
        )
