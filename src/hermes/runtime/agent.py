"""`AIAgent`: the public face of the kernel. One agent works on one session, one turn at a time."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hermes.config.sections import agent as agent_section
from hermes.errors import ProviderError, SessionInUse, SessionMoved, StoreError, UserError
from hermes.ops import MessageAppended, SessionRecord, StoreOp
from hermes.runtime.context import TurnContext
from hermes.runtime.conversation_loop import run_turn
from hermes.runtime.facade import CallerSink, background, run_sync
from hermes.runtime.guardrails import Guardrails, IterationBudget
from hermes.runtime.options import Keywords, fold, refuse_unlike
from hermes.runtime.outcome import Outcome
from hermes.runtime.prompt import FixedText, build_prompt
from hermes.runtime.redaction import CleanSink, clean_content, clean_outcome
from hermes.runtime.session import session_rows
from hermes.runtime.session.context_watch import ContextWatch
from hermes.runtime.session.history import History, from_caller, from_record
from hermes.runtime.setup.assembly import Assembly, assemble
from hermes.runtime.setup.environment_setup import news_from_background, reach
from hermes.runtime.setup.process import RandomIds
from hermes.runtime.sinks import ContractCallbacks, Tee, Unheard, inline_sink
from hermes.runtime.turn import SteerBox, Turn
from hermes.runtime.turn_input import TurnInput
from hermes.scope import TurnScope
from hermes.seams import PromptSource, Sink, ToolView
from hermes.types import Content, Message, StatusChanged, TurnStarted, text_of

if TYPE_CHECKING:
    from hermes.models.providers.windows import Window
    from hermes.runtime.session.compression import Compression

MAX_STARTS = 3  # of a turn whose session somebody else had while it was beginning
log = logging.getLogger("hermes")


class AIAgent:
    """An agent with the keywords of the contract: which model, which tools, whose session, what limits, who listens.

    `run_conversation` blocks and calls the callbacks in the calling thread; `arun_conversation` is awaited on any
    running loop. `interrupt` and `steer` may be called from any thread. See `docs/` for what each keyword does.
    """

    __signature__ = Keywords()

    def __init__(self, **keywords: Any) -> None:
        self._options = fold(keywords)
        self._assembly: Assembly | None = None
        self._steer = SteerBox()
        self._turn_lock = threading.Lock()  # held while a turn runs: one at a time
        self._scope: TurnScope | None = None
        self._interrupt_message: str | None = None
        self._outcome: Outcome | None = None
        self._compression: Compression | None = None
        self._watch: ContextWatch | None = None
        self._earlier: tuple[str, ...] = ()  # the ids that the session had before it was compressed
        self._told: set[str] = set()  # what of an existing session is not as asked, and was said
        self._is_elsewhere = False  # somebody else works on the session, as far as is known here
        self._news = ""  # from background processes, that no turn has stored yet
        self.iteration_budget = self._options.limits.iteration_budget or IterationBudget(
            self._options.limits.max_iterations
        )
        self.session_id = self._options.session.session_id or RandomIds().session()

    # -- turns ---------------------------------------------------------------------------------------------------

    def run_conversation(
        self,
        user_message: Any,
        system_message: str | None = None,
        conversation_history: Iterable[Mapping[str, Any]] | None = None,
        task_id: str | None = None,
        stream_callback: Callable[..., Any] | None = None,
        persist_user_message: Any = None,
    ) -> dict[str, Any]:
        """Run one turn to its end and return the contract's result dict."""
        background.refuse_own_thread()
        refuse_unlike("stream_callback", stream_callback)
        said = TurnInput.of(user_message, persist_user_message, system_message, conversation_history, task_id)
        callbacks = ContractCallbacks(self._options.callbacks, stream_callback)
        sink = CallerSink(callbacks.deliver)
        return run_sync(self._guarded_turn(said, sink), sink, self.interrupt)

    async def arun_conversation(
        self,
        user_message: Any,
        system_message: str | None = None,
        conversation_history: Iterable[Mapping[str, Any]] | None = None,
        task_id: str | None = None,
        stream_callback: Callable[..., Any] | None = None,
        persist_user_message: Any = None,
    ) -> dict[str, Any]:
        """`run_conversation` for callers that have a loop; callbacks are called on it, between events."""
        refuse_unlike("stream_callback", stream_callback)
        said = TurnInput.of(user_message, persist_user_message, system_message, conversation_history, task_id)
        return await self._guarded_turn(said, inline_sink(self._options.callbacks, stream_callback))

    def chat(self, message: str, stream_callback: Callable[..., Any] | None = None) -> str:
        """One turn; only its final text."""
        text: str = self.run_conversation(message, stream_callback=stream_callback)["final_response"]
        return text

    def compress(self, focus_topic: str | None = None) -> dict[str, Any]:
        """Sum up the session now, `focus_topic` above all; it goes on under the `session_id` in the answer."""
        background.refuse_own_thread()
        sink = CallerSink(ContractCallbacks(self._options.callbacks, None).deliver)
        return run_sync(self._compress(focus_topic, sink), sink, self.interrupt)

    async def acompress(self, focus_topic: str | None = None) -> dict[str, Any]:
        """`compress` for callers that have a loop."""
        return await self._compress(focus_topic, inline_sink(self._options.callbacks, None))

    def interrupt(self, message: str | None = None) -> None:
        """Stop the turn that is running, if one is. Ready again within a second; nothing of the turn goes on."""
        scope = self._scope
        if scope is not None:
            self._interrupt_message = message
            scope.cancel_threadsafe("interrupted by the user")

    def clear_interrupt(self) -> None:
        """Forget the message of an earlier interrupt."""
        self._interrupt_message = None

    @property
    def is_interrupted(self) -> bool:
        scope = self._scope
        return scope is not None and scope.cancelled

    def steer(self, text: str) -> bool:
        """Tell the model something after its current round of tools; False when no turn is running."""
        if self._scope is None:
            return False
        self._steer.put(text)
        return True

    @property
    def model_in_use(self) -> tuple[str, "Window"] | None:
        """The model that the next call goes to, and what it reads at once; None before the first turn."""
        client = self._assembly.client if self._assembly is not None else None
        return (client.model.name, client.window) if client is not None else None

    def close(self, *, keep_background: bool = False) -> None:
        """Stop what runs and release what is held. The session stays resumable.

        Its background processes end, too, unless they are to be kept, here or by `terminal.keep_background`.
        """
        asyncio.run_coroutine_threadsafe(self.aclose(keep_background=keep_background), background.get()).result(10)

    async def aclose(self, *, keep_background: bool = False) -> None:
        """`close` for callers that have a loop."""
        self.interrupt()
        if self._watch is not None:
            self._watch.end()
        if self._assembly is not None:
            is_kept = keep_background or self._is_elsewhere
            await self._assembly.close(*(() if is_kept else (*self._earlier, self.session_id)))

    # -- one turn, step by step ----------------------------------------------------------------------------------

    async def _assembled(self) -> Assembly:
        if self._assembly is None:
            self._assembly = await assemble(self._options, self.session_id)
        return self._assembly

    @property
    def _parts(self) -> Assembly:
        assert self._assembly is not None
        return self._assembly

    async def _guarded_turn(self, said: TurnInput, sink: Sink | None) -> dict[str, Any]:
        scope = self._begin_work()
        try:
            parts = self._assembly or await self._assembled()
            scope.timeout_s = parts.turn_timeout_s
            heard = self._heard(parts, sink)
            for _ in range(MAX_STARTS - 1):
                try:
                    return await self._run(parts, said, heard, scope)
                except SessionMoved as error:  # nothing of the turn is stored yet, and it begins again
                    if scope.cancelled or scope.expired:
                        raise
                    log.info("the turn begins anew: %s", error)
                    self._scope = scope = TurnScope("turn", timeout_s=parts.turn_timeout_s)
            return await self._run(parts, said, heard, scope)
        except SessionInUse:
            self._is_elsewhere = True
            raise
        finally:
            await self._end_work()

    def _begin_work(self) -> TurnScope:
        """Take the agent for one piece of work, the only one until `_end_work`; an interrupt ends its scope."""
        if not self._turn_lock.acquire(blocking=False):
            raise UserError("a turn of this agent is already running; interrupt it, steer it, or wait for its end")
        self._scope = scope = TurnScope("turn")
        self._interrupt_message = None
        return scope

    async def _end_work(self) -> None:
        """Whatever happened, the session is free again, and so is the agent."""
        scope, self._scope = self._scope, None
        try:
            store = self._assembly.store if self._assembly is not None else None
            if store is not None and scope is not None and (release := store.lease.releasing()):
                store.lease.rest()
                async with scope.cleanup():
                    await store.commit(*release)
        except (StoreError, TimeoutError) as error:
            log.warning("session %s could not be given back, and is free in a short while: %s", self.session_id, error)
        finally:
            self._turn_lock.release()

    def _heard(self, parts: Assembly, sink: Sink | None) -> Sink:
        """Where the events of a piece of work go: without secrets to whoever listens."""
        callbacks = self._options.callbacks
        if sink is None and callbacks.sink is None and not callbacks.verbose_logging:
            return Unheard()
        listeners = [each for each in (sink, callbacks.sink, self._log_sink()) if each is not None]
        return CleanSink(Tee(*listeners), parts.services.redactor)

    async def _compress(self, focus: str | None, sink: Sink | None) -> dict[str, Any]:
        from hermes.runtime.session.compression import CompressionRequest  # noqa: PLC0415 - paid by the first compression

        scope = self._begin_work()
        try:
            parts = await self._assembled()
            scope.timeout_s = parts.turn_timeout_s
            heard = self._heard(parts, sink)
            record = await parts.store.load(self.session_id)
            if record is not None and record.continued_by:
                record = await self._follow_stored(record.continued_by)
            if record is not None:
                await parts.store.take(record)
            compression, done = self._compressing(), None
            wish = CompressionRequest(
                session_id=self.session_id, sink=heard, scope=scope, focus=focus or "", force=True
            )
            async with scope:
                done = await compression.run(wish)
            if done is None:
                why = "it was interrupted" if scope.cancelled else compression.why_not or "the time is used up"
                return {"status": "unchanged", "session_id": self.session_id, "reason": why}
            self._follow(done.record)
            return done.as_dict()
        except (SessionInUse, SessionMoved) as error:
            return {"status": "unchanged", "session_id": self.session_id, "reason": str(error)}
        finally:
            await self._end_work()

    def _compressing(self) -> "Compression":
        from hermes.runtime.session.compression import Compression  # noqa: PLC0415 - paid by the first compression

        if self._compression is None:
            self._compression = Compression(self._parts, self._prompt_after, self._watching())
        return self._compression

    def _watching(self) -> ContextWatch:
        if self._watch is None:
            parts = self._parts
            self._watch = ContextWatch(parts.client, parts.compress_share, self._options.session.context_engine)
        return self._watch

    async def _make_room(self, said: TurnInput, turn: Turn, refused: ProviderError | None) -> bool:
        """Compress the session of a turn that is under way; the turn goes on in the one that took its place."""
        from hermes.runtime.session.turn_rotation import CallerWords, compress_turn, named_window  # noqa: PLC0415 - paid by the first one

        if refused is not None and (named := named_window(refused)) is not None:
            turn.client.refused_window(named)
        told = CallerWords(said.message if said.stored_message is not None else None, said.history is not None)
        done = await compress_turn(self._compressing(), turn, refused, told)
        if done is None:
            return False
        self._follow(done.record)
        turn.system = self._with_ephemeral(done.system)
        return True

    def _follow(self, record: SessionRecord) -> None:
        """The session goes on under another id."""
        self.session_id, self._earlier = record.session_id, record.earlier

    async def _follow_stored(self, session_id: str) -> SessionRecord | None:
        """Go to the session that a compression, here or in another process, has put in this one's place."""
        parts = self._parts
        record, seen = await parts.store.load(session_id), {session_id}
        # Compressed once more, since we were told of this one; a damaged file may lead in a circle.
        while record is not None and record.continued_by and record.continued_by not in seen:
            seen.add(record.continued_by)
            record = await parts.store.load(record.continued_by)
        if record is not None:
            parts.store.follow(record)
            parts.follow_results(record.session_id)
            self._follow(record)
        return record

    async def _run(self, parts: Assembly, said: TurnInput, sink: Sink, scope: TurnScope) -> dict[str, Any]:
        record, history, pending = await self._past(parts, said)
        if history.tasks is not None:
            parts.restore_tasks(history.tasks)
        view = await parts.tools(record)
        system = record.system_prompt if record and record.system_prompt else await self._prompt(said.system_message)
        kept = record.model_config if record else None
        config = kept or session_rows.new_config(self._options, said.system_message)
        if record is None:
            opening = session_rows.created(parts, self.session_id, system, view, config)
        else:
            opening = session_rows.reopened(parts, record, system, view)
        turn = self._new_turn(said, view, system, scope, sink, history)
        turn.model_config = config
        turn.pending = [*opening, parts.store.taking(), *pending, self._user_row(turn, said)]
        if record is not None and (news := await self._heard_meanwhile(parts)):
            turn.tell(news)
        parts.client.new_turn()
        turn.watch.begin(turn, is_new=record is None)
        turn.untold.append(TurnStarted(self.session_id, turn.ctx.turn_id, parts.client.model.name))
        if record is not None and record.system_prompt:
            turn.untold += self._kept(view, session_rows.unheeded(self._options, said.system_message, config))
        parts.store.lease.on_lost = lambda: scope.cancel("the session is somebody else's")
        await run_turn(turn)
        self._is_elsewhere, self._news = parts.store.lease.lost is not None, ""
        self._outcome = outcome = turn.outcome
        if outcome.interrupted:
            outcome.interrupt_message = self._interrupt_message
        asked = parts.client.model
        outcome.base_url = asked.base_url
        if not outcome.model:  # nobody has answered
            outcome.model, outcome.provider = asked.name, asked.provider
        clean_outcome(outcome, parts.services.redactor)
        if self._options.session.auto_title and outcome.completed and (record is None or not record.title):
            parts.titles.begin(self.session_id, turn.history.last_user, outcome.final_response)
        if said.history is None and said.stored_message is None and not outcome.failed:
            parts.store.keep_warm(parts.warm, turn.history)
        sink.emit(outcome.record(self.session_id, turn.ctx.turn_id))
        return outcome.as_dict(self.session_id, list(turn.history.dicts))

    def _kept(self, view: ToolView, unheeded: str) -> list[StatusChanged]:
        """What the session keeps although something else is asked for now, said once."""
        told = [unheeded] if unheeded else []
        if barred := sorted(view.barred()):
            told.append(f"switched off by the toolsets of this run, and not run if the model asks: {', '.join(barred)}")
        fresh = [sentence for sentence in told if sentence not in self._told]
        self._told.update(fresh)
        return [StatusChanged("option", sentence) for sentence in fresh]

    async def _past(self, parts: Assembly, said: TurnInput) -> tuple[SessionRecord | None, History, list[StoreOp]]:
        """The stored session, its history for this turn, and what must be stored to make the two agree."""
        warm = None
        if said.history is None:
            warm, record = await parts.store.load_warm(parts.warm)
        else:
            record = await parts.store.load_cold(parts.warm)
        if record is not None:
            if record.continued_by:
                warm, record = None, await self._follow_stored(record.continued_by)
            self._earlier = record.earlier if record is not None else ()
        parts.store.refuse_used(record)
        if said.history is not None:
            given = [parts.services.redactor.redact_all(dict(message)) for message in said.history]
            return record, *from_caller(given, record, self.session_id)
        if warm is not None:
            return record, warm, []
        return record, *(from_record(record) if record is not None else (History(), []))

    async def _heard_meanwhile(self, parts: Assembly) -> str:
        """News from background processes. They tell it once, so it is kept until a turn has stored it."""
        news = await news_from_background(parts.services.environment, *self._earlier, self.session_id)
        self._news = "\n".join(filter(None, (self._news, news)))
        return self._news

    async def _prompt(self, told: str | None, *more: PromptSource, session_id: str = "") -> str:
        parts, options = self._parts, self._options.session
        sources = [*parts.prompt_sources(is_again=bool(session_id)), *more]
        if trouble := await reach(parts.services.environment):
            sources.append(FixedText("6-trouble", "volatile", trouble))
        if told:
            sources.append(FixedText("1-caller", "context", told))
        session = {
            "session_id": session_id or self.session_id,
            "model": parts.client.model.name,
            "pass_session_id": options.pass_session_id,
        }
        return parts.services.redactor.redact(await build_prompt(sources, session))

    async def _prompt_after(self, session_id: str, told: str | None) -> str:
        """The prompt of the session that a compression begins: as it would be today, and a word about that."""
        from hermes.context.summary import SYSTEM_NOTE  # noqa: PLC0415 - paid by the first compression

        return await self._prompt(told, FixedText("8-summary", "volatile", SYSTEM_NOTE), session_id=session_id)

    def _log_sink(self) -> Sink | None:
        if not self._options.callbacks.verbose_logging or self._options.callbacks.quiet_mode:
            return None
        from hermes.runtime.sinks import LogSink  # noqa: PLC0415 - for who asks

        return LogSink(self._options.callbacks)

    def _with_ephemeral(self, system: str) -> str:
        ephemeral = self._options.session.ephemeral_system_prompt
        return f"{system}\n\n{self._parts.services.redactor.redact(ephemeral)}" if ephemeral else system

    def _new_turn(
        self, said: TurnInput, view: ToolView, system: str, scope: TurnScope, sink: Sink, history: History
    ) -> Turn:
        parts, limits = self._parts, self._options.limits
        turn_id = parts.services.ids.new("turn")
        if limits.iteration_budget is None:
            self.iteration_budget = IterationBudget(limits.max_iterations)
        ctx = TurnContext(
            session_id=self.session_id,
            turn_id=turn_id,
            task_id=said.task_id or self.session_id,
            services=parts.services,
            tools=view,
            scope=scope,
            sink=sink,
            user_task=text_of(said.message),
        )
        if self._outcome is not None:
            ctx.outcome.totals, ctx.outcome.cost_usd = self._outcome.totals, self._outcome.cost_usd
        return Turn(
            ctx=ctx,
            outcome=ctx.outcome,
            client=parts.client,
            history=history,
            system=self._with_ephemeral(system),
            tools=view.definitions(),
            options=parts.request_options,
            budget=self.iteration_budget,
            max_iterations=limits.max_iterations,
            max_calls=parts.settings.of(agent_section.Section).max_calls_per_message,
            steer=self._steer,
            lease=parts.store.lease,
            stood_in=parts.services.environment.cwd,
            prefill=parts.prefill,
            tool_delay_s=self._options.tools.tool_delay,
            guardrails=Guardrails(parts.guardrails),
            earlier=self._earlier,
            watch=self._watching(),
            make_room=partial(self._make_room, said) if parts.compress_share is not None else None,
        )

    def _user_row(self, turn: Turn, said: TurnInput) -> StoreOp:
        """Take the user's message into the history; what is stored may differ from what the model reads."""
        row = turn.remember(Message(role="user", content=said.message))
        if said.stored_message is None:
            return row
        clean = clean_content(said.stored_message, turn.ctx.services.redactor)
        stored = replace_content(row, clean)
        turn.history.dicts[-1] = {**turn.history.dicts[-1], "content": text_of(clean)}
        return stored


def replace_content(row: MessageAppended, content: Content) -> MessageAppended:
    """The same row with other words."""
    return MessageAppended(row.session_id, Message(role="user", content=content, timestamp=row.message.timestamp))
