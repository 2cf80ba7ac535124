"""What a turn is handed: its collaborators and its one deadline; and the narrow slice of it that a tool sees."""

from collections.abc import Callable, Mapping, Sequence
from logging import Logger
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from hermes import seams
from hermes.errors import ToolError
from hermes.redact import Redactor
from hermes.runtime.guardrails import IterationBudget
from hermes.runtime.joined_parts import JoinedParts
from hermes.runtime.outcome import Outcome
from hermes.runtime.setup.caller_questions import DECIDE, AskUser
from hermes.scope import TurnScope
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.results.limits import ResultLimits
from hermes.types import Event, ImagePart, JsonObject, ToolCall

if TYPE_CHECKING:
    from hermes.state.recall import Recall

Result = TypeVar("Result")


class Services(Struct, frozen=True, kw_only=True):
    """What lives as long as a session: the parts that touch the world."""

    store: seams.EventStore
    environment: seams.Environment
    supervisor: seams.Supervisor
    gate: seams.Gate
    hooks: seams.HookBus
    shelf: seams.ResultShelf
    pool: DaemonPool
    clock: seams.Clock
    ids: seams.Ids
    log: Logger
    settings: Mapping[str, Any] = field(default_factory=dict)
    memo: dict[str, Any] = field(default_factory=dict)  # what tools keep between calls; rebuilt from history when cold
    redactor: Redactor = field(default_factory=Redactor)  # for everything that is stored, sent or shown
    # What the model can read, once that is known; results keep within a share of it.
    window: Callable[[], int | None] = lambda: None
    parts: JoinedParts = field(default_factory=JoinedParts)  # the capabilities that have joined
    ask_user: AskUser | None = None  # where somebody can answer
    user_id: str | None = None  # whose sessions may be looked into; None is all of them

    @property
    def limits(self) -> ResultLimits:
        """How long results may be."""
        return ResultLimits.of(self.settings, self.window())


class Prepared(Struct, frozen=True):
    """A call that may run: its real name, and arguments that fit the offered schema."""

    call: ToolCall  # as the model wrote it
    name: str
    args: JsonObject
    rules: seams.ToolRules
    place: int = 0  # among the calls of its message

    @property
    def shown(self) -> ToolCall:
        """The call under the name it runs by."""
        return self.call if self.call.name == self.name else replace(self.call, name=self.name)


class TurnContext(Struct, frozen=True, kw_only=True):
    """One turn's collaborators. The agent builds it; all below is handed it."""

    session_id: str
    turn_id: str
    task_id: str
    services: Services
    tools: seams.ToolView
    scope: TurnScope  # the one deadline; every wait below takes what is left
    sink: seams.Sink
    outcome: Outcome = field(default_factory=Outcome)  # what the turn has come to so far
    user_task: str | None = None  # the words of the user that this turn answers
    route: seams.Route = "foreground"
    budget: IterationBudget | None = None  # the model calls of the turn

    def for_call(self, asked: Prepared, scope: TurnScope) -> "CallContext":
        """The slice that the handler of the call sees."""
        return CallContext(
            turn=self,
            asked=asked,
            call_id=asked.call.id,
            scope=scope,
            session_id=self.session_id,
            task_id=self.task_id,
            user_task=self.user_task,
            memo=self.services.memo,
            route=self.route,
        )


class CallContext(Struct, frozen=True, kw_only=True):
    """`ToolContext` for one call of a turn."""

    turn: TurnContext
    asked: Prepared
    call_id: str
    scope: TurnScope
    session_id: str
    task_id: str
    user_task: str | None
    memo: dict[str, Any]  # the session's, but for a call that another call makes, as the next
    route: seams.Route
    details: JsonObject = field(default_factory=dict)  # becomes `ToolResult.details`

    @property
    def environment(self) -> seams.Environment:
        return self.turn.services.environment

    @property
    def gate(self) -> seams.Gate:
        from hermes.runtime.call_gate import CallGate  # an answer without calls does without

        return CallGate(self.turn.services.gate, self.details)

    @property
    def supervisor(self) -> seams.Supervisor:
        return self.turn.services.supervisor

    @property
    def shelf(self) -> seams.ResultShelf:
        return self.turn.services.shelf

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.turn.services.settings

    @property
    def hooks(self) -> seams.HookBus:
        return self.turn.services.hooks

    def nested(self) -> seams.NestedCalls:
        """For calls that this call makes itself."""
        from hermes.runtime.nested_calls import KernelCalls  # it is built on this module

        return KernelCalls(self)

    async def in_thread(self, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        return await self.turn.services.pool.run(function, *args, **kwargs)

    def emit(self, event: Event) -> None:
        self.turn.sink.emit(event)

    async def note(self, key: str, value: Any) -> None:
        self.details[key] = value

    async def ask_user(self, question: str, choices: Sequence[str] | None) -> str:
        ask = self.turn.services.ask_user
        if ask is None:
            raise ToolError(f"nobody can be asked here; {DECIDE}")
        return await ask(question, choices)

    def recall(self) -> "Recall | None":
        from hermes.state.recall import Recall  # for who looks back

        services = self.turn.services
        queries = getattr(services.store, "queries", None)
        return Recall(queries, self.session_id, services.user_id) if queries is not None else None

    async def look(self, image: ImagePart, question: str) -> str:
        return await self.turn.services.parts.look(self, image, question)


def _conforms(context: CallContext) -> seams.ToolContext:
    return context
