"""`AIAgent`: the public face of the kernel. One agent works on one session, one turn at a time."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from msgspec.structs import replace

from hermes.errors import OutputError, SessionInUse, SessionMoved, StoreError, UserError
from hermes.runtime.facade import CallerSink, background, run_sync
from hermes.runtime.guardrails import IterationBudget
from hermes.runtime.options import AgentOptions, Explained, fold, refuse_unlike
from hermes.runtime.redaction import CleanSink
from hermes.runtime.session.session import AgentSession
from hermes.runtime.setup.assembly import Assembly
from hermes.runtime.sinks import ContractCallbacks, Tee, Unheard, inline_sink
from hermes.runtime.turn_input import TurnInput
from hermes.scope import TurnScope
from hermes.seams import Sink
from hermes.types import JsonObject
from hermes.work_mode import WorkMode

if TYPE_CHECKING:
    from typing import Self, Unpack

    from hermes.confinement.plan import OpensFolders
    from hermes.models.providers.windows import Window
    from hermes.runtime.agent_keywords import AgentKeywords, Wanted
    from hermes.runtime.delegation.family import Family
    from hermes.runtime.delegation.running_child import RunningChild
    from hermes.runtime.output_schema import OutputSchema
    from hermes.runtime.prompt import PromptReport

Data = TypeVar("Data")
OnText: TypeAlias = Callable[[str | None], object] | None  # is called with each piece of the answer
MAX_STARTS = 10  # of a turn whose session somebody else had while it was beginning
log = logging.getLogger("hermes")


class AIAgent:
    """A model that works with tools on one session, one turn at a time; each keyword is told in `AgentKeywords`.

    `run_conversation` blocks and calls the callbacks in the calling thread; `arun_conversation` is awaited on any
    running loop. `interrupt` and `steer` may be called from any thread. docs/library.md shows all of it at work.
    """

    __signature__ = Explained("signature")
    __doc__ = Explained("explanation")  # a text, made when it is read

    def __init__(self, **keywords: "Unpack[AgentKeywords]") -> None:
        self._set_up(fold(keywords))

    @classmethod
    def of(cls, options: AgentOptions) -> "AIAgent":
        """An agent whose keywords are folded already: a child of another one."""
        agent = cls.__new__(cls)
        agent._set_up(options)
        return agent

    def _set_up(self, options: AgentOptions) -> None:
        self._options = options
        self._session = AgentSession(options)
        self._turn_lock = threading.Lock()  # held while a turn runs: one at a time
        self._scope: TurnScope | None = None

    @property
    def session_id(self) -> str:
        """The id that the session goes on under; a compression changes it."""
        return self._session.session_id

    @session_id.setter
    def session_id(self, session_id: str) -> None:
        self._session.session_id = session_id

    @property
    def iteration_budget(self) -> IterationBudget:
        """The model calls of the newest turn, or those that were given to several agents."""
        return self._session.budget

    # -- turns ---------------------------------------------------------------------------------------------------

    def run_conversation(  # noqa: PLR0913 - the contract's
        self,
        user_message: Any,
        system_message: str | None = None,
        conversation_history: Iterable[Mapping[str, Any]] | None = None,
        task_id: str | None = None,
        stream_callback: OnText = None,
        persist_user_message: Any = None,
        *,
        output_schema: "Wanted | None" = None,
    ) -> dict[str, Any]:
        """Run one turn to its end and return the contract's result dict.

        Of an answer that has to fit an `output_schema`, `output` is the value; one that does not fit is a failed turn.
        """
        background.refuse_own_thread()
        refuse_unlike("stream_callback", stream_callback)
        said = TurnInput.of(user_message, persist_user_message, system_message, conversation_history, task_id)
        said = self._wanting(said, output_schema)
        callbacks = ContractCallbacks(self._options.callbacks, stream_callback)
        sink = CallerSink(callbacks.deliver)
        return run_sync(self._guarded_turn(said, sink), sink, self.interrupt)

    async def arun_conversation(  # noqa: PLR0913 - the contract's
        self,
        user_message: Any,
        system_message: str | None = None,
        conversation_history: Iterable[Mapping[str, Any]] | None = None,
        task_id: str | None = None,
        stream_callback: OnText = None,
        persist_user_message: Any = None,
        *,
        output_schema: "Wanted | None" = None,
    ) -> dict[str, Any]:
        """`run_conversation` for callers that have a loop; callbacks are called on it, between events."""
        refuse_unlike("stream_callback", stream_callback)
        said = TurnInput.of(user_message, persist_user_message, system_message, conversation_history, task_id)
        said = self._wanting(said, output_schema)
        return await self._guarded_turn(said, inline_sink(self._options.callbacks, stream_callback))

    def _wanting(self, said: TurnInput, output_schema: "Wanted | None") -> TurnInput:
        wanted: OutputSchema | None = self._options.model.output_schema
        if output_schema is not None:
            from hermes.runtime.output_schema import OutputSchema as Schema  # for who wants one

            wanted = Schema.of(output_schema)
        return said if wanted is None else replace(said, output=wanted)

    async def acontinue_turn(self) -> dict[str, Any]:
        """Go on with the last turn, which was cut off: nothing is said anew, and earlier model calls count."""
        said = self._wanting(TurnInput(message="", goes_on=True), None)
        return await self._guarded_turn(said, inline_sink(self._options.callbacks, None))

    @overload
    def chat(self, message: str, stream_callback: OnText = None) -> str: ...
    @overload
    def chat(self, message: str, stream_callback: OnText = None, *, output_schema: type[Data]) -> Data: ...
    @overload
    def chat(self, message: str, stream_callback: OnText = None, *, output_schema: Mapping[str, Any]) -> Any: ...
    def chat(self, message: str, stream_callback: OnText = None, *, output_schema: "Wanted | None" = None) -> Any:
        """One turn; only its final text, or the value that fits the `output_schema`, else `OutputError`."""
        result = self.run_conversation(message, stream_callback=stream_callback, output_schema=output_schema)
        return self._answer(result, output_schema)

    @overload
    async def achat(self, message: str, stream_callback: OnText = None) -> str: ...
    @overload
    async def achat(self, message: str, stream_callback: OnText = None, *, output_schema: type[Data]) -> Data: ...
    @overload
    async def achat(self, message: str, stream_callback: OnText = None, *, output_schema: Mapping[str, Any]) -> Any: ...
    async def achat(
        self, message: str, stream_callback: OnText = None, *, output_schema: "Wanted | None" = None
    ) -> Any:
        """`chat` for callers that have a loop."""
        result = await self.arun_conversation(message, stream_callback=stream_callback, output_schema=output_schema)
        return self._answer(result, output_schema)

    def _answer(self, result: dict[str, Any], output_schema: "Wanted | None") -> Any:
        if result["failed"] and not result["final_response"]:
            log.warning("there is no answer: %s", result.get("error"))
        is_data = output_schema is not None
        if (is_data or self._options.model.output_schema is not None) and "output" not in result:
            raise OutputError(result)
        return result["output" if is_data else "final_response"]

    def compress(self, focus_topic: str | None = None) -> dict[str, Any]:
        """Sum up the session now, `focus_topic` above all; it goes on under the `session_id` in the answer."""
        background.refuse_own_thread()
        sink = CallerSink(ContractCallbacks(self._options.callbacks, None).deliver)
        return run_sync(self._compress(focus_topic, sink), sink, self.interrupt)

    async def acompress(self, focus_topic: str | None = None) -> dict[str, Any]:
        """`compress` for callers that have a loop."""
        return await self._compress(focus_topic, inline_sink(self._options.callbacks, None))

    async def amcp_servers(self) -> list[JsonObject]:
        """The MCP servers of this session as they are now."""
        servers = (await self._session.assembled()).services.memo.get("mcp")
        return servers.facts() if servers is not None else []

    async def areload_mcp(self) -> list[str]:
        """Connect the MCP servers anew, and offer what they have; sentences about it."""
        from hermes.runtime.session.tool_refresh import reload_servers  # rare

        self._begin_work()
        try:
            return await reload_servers(self._session, await self._heard(None))
        finally:
            await self._end_work()

    async def adescribe_prompt(self, system_message: str | None = None) -> "PromptReport":
        """The prompt and tools that a session begun now would have, part by part; nothing is sent or stored."""
        await self._session.assembled()
        return await self._session.describe_prompt(system_message)

    def interrupt(self, message: str | None = None) -> None:
        """Stop the turn that is running, if one is. Ready again within a second; nothing of the turn goes on."""
        scope = self._scope
        if scope is not None:
            self._session.interrupt_message = message
            scope.cancel_threadsafe("interrupted by the user")

    def clear_interrupt(self) -> None:
        """Forget the message of an earlier interrupt."""
        self._session.interrupt_message = None

    @property
    def is_interrupted(self) -> bool:
        scope = self._scope
        return scope is not None and scope.cancelled

    def steer(self, text: str) -> bool:
        """Tell the model something after its current round of tools; False when no turn is running."""
        if self._scope is None:
            return False
        self._session.steer.put(text)
        return True

    @property
    def work_mode(self) -> WorkMode:
        """How far the session goes by itself: `agent.work_mode.change("plan")` acts at once, also in a turn."""
        return self._options.tools.work_mode

    @property
    def children(self) -> "tuple[RunningChild, ...]":
        """The children that work for the running turn, those of a child behind it."""
        family = self._family()
        return family.at_work() if family is not None else ()

    def stop_child(self, name: str) -> bool:
        """Stop one child, the turn goes on; False when none of this name is at work. From the turn's own loop."""
        family = self._family()
        return family is not None and family.stop(name)

    def _family(self) -> "Family | None":
        made = self._session.assembly
        family: Family | None = made.services.memo.get("family") if made is not None else None
        return family

    def note_event(self, kind: str, about: str, body: JsonObject) -> None:
        """Store this event for listeners with the first commit of the next turn, where events are stored at all.

        It takes the place of one that was noted for a turn which could not begin.
        """
        self._session.noted = [(kind, about, body)]

    async def tell_reset(self, reason: str) -> None:
        """Tell hooks that the conversation goes on in another session than this one."""
        made = self._session.assembly
        if made is not None:
            about = {"session_id": self.session_id, "platform": self._options.session.platform or "cli"}
            await made.services.hooks.observe("on_session_reset", {**about, "reason": reason})

    @property
    def model_in_use(self) -> tuple[str, "Window"] | None:
        """The model that the next call goes to, and what it reads at once; None before the first turn."""
        made = self._session.assembly
        return (made.client.model.name, made.client.window) if made is not None else None

    @property
    def border(self) -> "OpensFolders | None":
        """Where one more folder can be opened for this session; None before its first turn, or where there is none."""
        from hermes.confinement.plan import OpensFolders  # rarely asked for

        made = self._session.assembly
        environment: object = None if made is None else made.services.environment
        return environment if isinstance(environment, OpensFolders) else None

    def close(self, *, keep_background: bool = False) -> None:
        """Stop what runs and release what is held. The session stays resumable.

        Its background processes end, too, unless they are to be kept, here or by `terminal.keep_background`.
        """
        asyncio.run_coroutine_threadsafe(self.aclose(keep_background=keep_background), background.get()).result(10)

    async def aclose(self, *, keep_background: bool = False) -> None:
        """`close` for callers that have a loop."""
        self.interrupt()
        await self._session.close(keep_background=keep_background)

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.aclose()

    # -- one piece of work at a time ---------------------------------------------------------------------------------

    async def _assembled(self) -> Assembly:
        return await self._session.assembled()

    async def _guarded_turn(self, said: TurnInput, sink: Sink | None) -> dict[str, Any]:
        session, scope = self._session, self._begin_work()
        try:
            heard = await self._heard(sink)
            scope.timeout_s = session.turn_timeout_s
            for _ in range(MAX_STARTS - 1):
                try:
                    return self._kept(await session.run(said, heard, scope))
                except SessionMoved as error:  # nothing of the turn is stored yet, and it begins again
                    if scope.cancelled or scope.expired:
                        raise
                    log.info("the turn begins anew: %s", error)
                    self._scope = scope = self._new_scope(session.turn_timeout_s)
            return self._kept(await session.run(said, heard, scope))
        except SessionInUse:
            session.is_elsewhere = True
            raise
        finally:
            await self._end_work()

    def _kept(self, result: dict[str, Any]) -> dict[str, Any]:
        if self._options.callbacks.save_trajectories:
            from hermes.runtime.trajectory import keep_turn  # for who asks

            keep_turn(result, *self._session.beginning)
        return result

    @property
    def told_first(self) -> tuple[str, str]:
        """The system prompt and the tools of the newest turn, where trajectories are kept."""
        return self._session.beginning

    async def _compress(self, focus: str | None, sink: Sink | None) -> dict[str, Any]:
        scope = self._begin_work()
        try:
            heard = await self._heard(sink)
            scope.timeout_s = self._session.turn_timeout_s
            return await self._session.compress(focus, heard, scope)
        finally:
            await self._end_work()

    def _begin_work(self) -> TurnScope:
        """Take the agent for one piece of work, the only one until `_end_work`; an interrupt ends its scope."""
        if not self._turn_lock.acquire(blocking=False):
            raise UserError("a turn of this agent is already running; interrupt it, steer it, or wait for its end")
        self._scope = scope = self._new_scope()
        self._session.interrupt_message = None
        return scope

    def _new_scope(self, timeout_s: float | None = None) -> TurnScope:
        link = self._options.parent
        return TurnScope("turn", timeout_s, link.scope if link is not None else None)

    async def _end_work(self) -> None:
        """Whatever happened, the session is free again, and so is the agent."""
        scope, self._scope = self._scope, None
        try:
            made = self._session.assembly
            store = made.store if made is not None else None
            if store is not None and scope is not None and (release := store.lease.releasing()):
                store.lease.rest()
                async with scope.cleanup():
                    await store.commit(*release)
        except (StoreError, TimeoutError) as error:
            log.warning("session %s could not be given back, and is free in a short while: %s", self.session_id, error)
        finally:
            self._turn_lock.release()

    async def _heard(self, sink: Sink | None) -> Sink:
        """Where the events of a piece of work go: without secrets to whoever listens."""
        assembly = self._session.assembly or await self._session.assembled()
        callbacks = self._options.callbacks
        if sink is None and callbacks.sink is None and not callbacks.verbose_logging:
            return Unheard()
        listeners = [each for each in (sink, callbacks.sink, self._log_sink()) if each is not None]
        return CleanSink(Tee(*listeners), assembly.services.redactor)

    def _log_sink(self) -> Sink | None:
        if not self._options.callbacks.verbose_logging or self._options.callbacks.quiet_mode:
            return None
        from hermes.runtime.log_sink import LogSink  # for who asks

        return LogSink(self._options.callbacks)
