"""The session of an agent: loading it, following it where it goes on, and running its turns."""

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hermes.config.sections import agent as agent_section
from hermes.config.sections import top as top_section
from hermes.errors import ProviderError, SessionInUse, SessionMoved
from hermes.ops import EventStored, MessageAppended, SessionRecord, StoreOp
from hermes.runtime.context import TurnContext
from hermes.runtime.conversation_loop import run_turn
from hermes.runtime.guardrails import Guardrails, IterationBudget
from hermes.runtime.options import AgentOptions
from hermes.runtime.outcome import Outcome
from hermes.runtime.platform_hints import platform_hint
from hermes.runtime.project_rules import cap_of
from hermes.runtime.prompt import (
    SYSTEM_MESSAGE,
    BuiltPrompt,
    DateLine,
    EnvironmentHint,
    FixedText,
    Identity,
    ProjectRules,
    PromptReport,
    build_prompt,
    tool_share,
)
from hermes.runtime.redaction import clean_content, clean_outcome
from hermes.runtime.session import session_rows
from hermes.runtime.session.context_watch import ContextWatch, compress_share
from hermes.runtime.session.history import PROJECT, History, from_caller, from_record
from hermes.runtime.setup.assembly import Assembly, assemble
from hermes.runtime.setup.environment_setup import NO_MESSAGES, reach
from hermes.runtime.setup.process import RandomIds
from hermes.runtime.turn import SteerBox, Turn
from hermes.runtime.turn_input import TurnInput
from hermes.scope import TurnScope
from hermes.seams import PromptSource, Sink, ToolView
from hermes.tools.registry import registry
from hermes.types import Content, JsonObject, Message, StatusChanged, TurnStarted, text_of

if TYPE_CHECKING:
    from hermes.runtime.session.compression import Compression

LEAN = "lean prompt: only file, terminal and todo tools are on offer, in few words (see prompt.profile)"
log = logging.getLogger("hermes")


class AgentSession:
    """One agent's session. Its id changes when it is compressed, here or by somebody else."""

    def __init__(self, options: AgentOptions) -> None:
        limits = options.limits
        self.options = options
        self.session_id = options.session.session_id or RandomIds().session()
        self.assembly: Assembly | None = None  # made by the first piece of work
        self.budget = limits.iteration_budget or IterationBudget(limits.max_iterations)
        self.steer = SteerBox()
        self.interrupt_message: str | None = None
        self.is_elsewhere = False  # somebody else works on the session, as far as is known here
        self.noted: list[tuple[str, str, JsonObject]] = []  # events that the next turn's first commit stores
        self.beginning = ("", "[]")  # of the newest turn: prompt and tools
        self._outcome: Outcome | None = None
        self._compression: Compression | None = None
        self._watch: ContextWatch | None = None
        self._earlier: tuple[str, ...] = ()  # the ids that the session had before it was compressed
        self._asked_format: JsonObject | None = None  # of the provider, in the newest turn
        self._told: set[str] = set()  # what of an existing session is not as asked, and was said

    async def assembled(self) -> Assembly:
        """What the agent is made of, made now if need be."""
        if self.assembly is None:
            link = self.options.parent
            if link is None:
                self.assembly = await assemble(self.options, self.session_id)
            else:
                self.assembly = await assemble(self.options, self.session_id, link.process, link.settings)
        return self.assembly

    @property
    def turn_timeout_s(self) -> float | None:
        """Seconds that a turn may take; None is no limit."""
        given = self.options.limits.turn_timeout_s
        return (self._assembly.settings.of(agent_section.Section).turn_timeout if given is None else given) or None

    async def run(self, said: TurnInput, sink: Sink, scope: TurnScope) -> dict[str, Any]:
        """One turn, and the contract's result dict. `SessionMoved` when nothing of it is stored: it may begin anew."""
        assembly = self._assembly
        parts = assembly.services.parts
        parts.begin()
        record, history, pending = await self._past(said)
        parts.history_read(history)
        view = await assembly.tools.view(record)
        config = (record.model_config if record else None) or session_rows.new_config(self.options, said.system_message)
        built = BuiltPrompt()
        if record is None or not record.system_prompt:
            built = await self._prompt(config, view)
        system = record.system_prompt if record and record.system_prompt else built.text
        if record is None:
            opening = session_rows.created(assembly, self.session_id, system, view, config)
        else:
            opening = session_rows.reopened(record, system, view)
        turn = self._new_turn(said, view, system, scope, sink, history)
        turn.model_config = config
        turn.is_new, turn.title = record is None, record.title if record else None
        turn.pending = [*opening, assembly.store.taking(), *pending]
        if said.goes_on:
            turn.outcome.api_calls = history.answers
            turn.goes_on = history.answers > 0
        else:
            turn.pending.append(self._user_row(turn, said))
        if assembly.store.stores_events:
            turn.stores_events = True
            about = {"model": assembly.client.model.name}
            turn.pending += [EventStored(self.session_id, *each) for each in self.noted]
            turn.pending.append(EventStored(self.session_id, "turn_started", turn.ctx.turn_id, about))
        assembly.client.new_turn()
        turn.watch.begin(turn, is_new=record is None)
        turn.untold.append(TurnStarted(self.session_id, turn.ctx.turn_id, assembly.client.model.name))
        if record is not None and record.system_prompt:
            turn.untold += self._kept(view, session_rows.unheeded(self.options, said.system_message, config))
        if registry.files:
            from hermes.tools.registration.user_files import left_out_files  # for who has files of their own

            broken = [one for one in left_out_files(assembly.settings.home, registry) if one not in self._told]
            self._told.update(broken)
            turn.untold += [StatusChanged("option", sentence) for sentence in broken]
        if record is None and assembly.tools.is_lean:
            turn.untold.append(StatusChanged("prompt", LEAN))
        turn.untold += (*built.told, *parts.untold)
        parts.tell = turn.show_later
        assembly.store.lease.on_lost = lambda: scope.cancel("the session is somebody else's")
        if self.options.callbacks.save_trajectories or self.options.model.records_calls:
            self.beginning = (turn.system, view.to_json())
        if said.output is not None or self._asked_format is not None:
            from hermes.runtime.output_schema import want_data  # for who does

            self._asked_format = want_data(turn, said.output, self._asked_format)
        await run_turn(turn)
        return await self._result(turn, said, sink)

    async def _result(self, turn: Turn, said: TurnInput, sink: Sink) -> dict[str, Any]:
        """What came of a turn, once everybody who has to know it does."""
        assembly, parts = self._assembly, self._assembly.services.parts
        parts.untold.clear()
        self.noted.clear()
        self.is_elsewhere = assembly.store.lease.lost is not None
        self._outcome = outcome = turn.outcome
        if outcome.interrupted:
            outcome.interrupt_message = self.interrupt_message
        asked = assembly.client.model
        outcome.base_url = asked.base_url
        if not outcome.model:  # nobody has answered
            outcome.model, outcome.provider = asked.name, asked.provider
        clean_outcome(outcome, assembly.services.redactor)
        if getattr(assembly.services.hooks, "heard", None):
            await self._tell_end(turn, outcome)
        parts.tell = sink.emit
        await parts.turn_ended(turn.facts(), outcome.final_response if outcome.completed else None)
        if said.history is None and said.stored_message is None and not outcome.failed:
            assembly.store.keep_warm(assembly.warm, turn.history)
        sink.emit(outcome.record(self.session_id, turn.ctx.turn_id))
        return outcome.as_dict(self.session_id, list(turn.history.dicts))

    async def _tell_end(self, turn: Turn, outcome: Outcome) -> None:
        from hermes.runtime.turn_hooks import OF_ENDS, ended, heard  # for who has hooks

        if (hooks := heard(turn.ctx.services.hooks, OF_ENDS)) is not None:
            await ended(hooks, turn, outcome, self.options.session.platform or "cli")

    async def compress(self, focus: str | None, sink: Sink, scope: TurnScope) -> dict[str, Any]:
        """Sum up the session now; what came of it, or why nothing did."""
        from hermes.runtime.session.compression import CompressionRequest  # paid by the first compression

        assembly = self._assembly
        assembly.services.parts.begin()
        assembly.services.parts.tell = sink.emit
        try:
            record = await assembly.store.load(self.session_id)
            if record is not None and record.continued_by:
                record = await self.follow_stored(record.continued_by)
            if record is not None:
                await assembly.store.take(record)
            compression, done = self._compressing(), None
            request = CompressionRequest(
                session_id=self.session_id, sink=sink, scope=scope, focus=focus or "", force=True
            )
            async with scope:
                done = await compression.run(request)
        except (SessionInUse, SessionMoved) as error:
            return {"status": "unchanged", "session_id": self.session_id, "reason": str(error)}
        if done is None:
            why = "it was interrupted" if scope.cancelled else compression.why_not or "the time is used up"
            return {"status": "unchanged", "session_id": self.session_id, "reason": why}
        self._follow(done.record)
        return done.as_dict()

    async def close(self, *, keep_background: bool = False) -> None:
        """Release what is held; what runs in the background ends unless it is kept or the session is another's."""
        if self._watch is not None:
            self._watch.end()
        if self.assembly is not None:
            is_kept = keep_background or self.is_elsewhere
            await self.assembly.close(*(() if is_kept else (*self._earlier, self.session_id)))

    @property
    def _assembly(self) -> Assembly:
        assert self.assembly is not None
        return self.assembly

    # -- loading and following ---------------------------------------------------------------------------------------

    async def _past(self, said: TurnInput) -> tuple[SessionRecord | None, History, list[StoreOp]]:
        """The stored session, its history for this turn, and what must be stored to make the two agree."""
        assembly, warm = self._assembly, None
        if said.history is None:
            warm, record = await assembly.store.load_warm(assembly.warm)
        else:
            record = await assembly.store.load_cold(assembly.warm)
        if record is not None:
            if record.continued_by:
                warm, record = None, await self.follow_stored(record.continued_by)
            self._earlier = record.earlier if record is not None else ()
        assembly.store.refuse_used(record)
        if said.history is not None:
            given = [assembly.services.redactor.redact_all(dict(message)) for message in said.history]
            return record, *from_caller(given, record, self.session_id)
        if warm is not None:
            return record, warm, []
        if record is None:
            return None, History(), []
        known = await assembly.services.parts.recovered(record) if record.open_calls else {}
        return record, *from_record(record, known)

    def _follow(self, record: SessionRecord) -> None:
        """The session goes on under another id."""
        self.session_id, self._earlier = record.session_id, record.earlier

    async def follow_stored(self, session_id: str) -> SessionRecord | None:
        """Go to the session that a compression, here or in another process, has put in this one's place."""
        assembly, old = self._assembly, self.session_id
        record, seen = await assembly.store.load(session_id), {session_id}
        # Compressed once more, since we were told of this one; a damaged file may lead in a circle.
        while record is not None and record.continued_by and record.continued_by not in seen:
            seen.add(record.continued_by)
            record = await assembly.store.load(record.continued_by)
        if record is not None:
            assembly.store.follow(record)
            self._follow(record)
            await assembly.services.parts.session_moved(old, record.session_id)
        return record

    def _kept(self, view: ToolView, unheeded: str) -> list[StatusChanged]:
        """What the session keeps although something else is asked for now, said once."""
        told = [unheeded] if unheeded else []
        if barred := sorted(view.barred()):
            told.append(f"switched off by the toolsets of this run, and not run if the model asks: {', '.join(barred)}")
        fresh = [sentence for sentence in told if sentence not in self._told]
        self._told.update(fresh)
        return [StatusChanged("option", sentence) for sentence in fresh]

    # -- what a turn is made of --------------------------------------------------------------------------------------

    def _new_turn(
        self, said: TurnInput, view: ToolView, system: str, scope: TurnScope, sink: Sink, history: History
    ) -> Turn:
        assembly, limits, watch = self._assembly, self.options.limits, self._watching()
        link = self.options.parent
        turn_id = assembly.services.ids.new("turn")
        if limits.iteration_budget is None:
            self.budget = IterationBudget(limits.max_iterations)
        ctx = TurnContext(
            session_id=self.session_id,
            turn_id=turn_id,
            task_id=said.task_id or self.session_id,
            services=assembly.services,
            tools=view,
            scope=scope,
            sink=sink,
            user_task=history.last_user if said.goes_on else text_of(said.message),
            route="subagent"
            if link is not None
            else "cron"
            if self.options.session.platform == "cron"
            else "foreground",
            budget=self.budget,
        )
        if self._outcome is not None:
            ctx.outcome.totals, ctx.outcome.cost_usd = self._outcome.totals, self._outcome.cost_usd
        return Turn(
            ctx=ctx,
            outcome=ctx.outcome,
            client=assembly.client,
            history=history,
            system=self._with_ephemeral(system),
            tools=view.definitions(),
            options=assembly.request_options,
            budget=self.budget,
            max_iterations=limits.max_iterations,
            max_calls=assembly.settings.of(agent_section.Section).max_calls_per_message,
            steer=self.steer,
            lease=assembly.store.lease,
            stood_in=assembly.services.environment.cwd,
            prefill=assembly.prefill,
            tool_delay_s=self.options.tools.tool_delay,
            guardrails=Guardrails(assembly.guardrails),
            earlier=self._earlier,
            watch=watch,
            make_room=partial(self._make_room, said) if watch.share is not None else None,
            at_end=None if link is None else link.at_end,
            cache_key="" if link is None else self.options.session.parent_session_id or "",
            shared_chars=0 if link is None else link.shared_chars(system),
            platform=self.options.session.platform or "cli",
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

    async def describe_prompt(self, system_message: str | None) -> PromptReport:
        """What a session that begins now would be told and offered."""
        tools = self._assembly.tools
        view = await tools.view(None)
        built = await self._prompt(session_rows.new_config(self.options, system_message), view)
        shares = tuple(tool_share(one) for one in view.definitions())
        return PromptReport("lean" if tools.is_lean else "full", built.parts, shares, built.told)

    async def _prompt(
        self, config: JsonObject, view: ToolView, *more: PromptSource, session_id: str = ""
    ) -> BuiltPrompt:
        """The prompt of a session with this config, which learns where its project is."""
        assembly, services = self._assembly, self._assembly.services
        trouble = await reach(services.environment)
        config.setdefault(PROJECT, services.environment.cwd)
        options = session_rows.prompt_options(config)
        sources = [*self._prompt_sources(config, view), *services.parts.prompt(), *more]
        if trouble:
            sources.append(FixedText("6-trouble", "volatile", trouble))
        session: JsonObject = {
            "session_id": session_id or self.session_id,
            "model": assembly.client.model.name,
            "provider": assembly.client.model.provider,
            "tools": sorted(view.names() - view.barred()),
            "skip_memory": "skip_memory" in options,
            "pass_session_id": "pass_session_id" in options,
        }
        return await build_prompt(sources, session, services.redactor.redact)

    async def _prompt_after(self, session_id: str, config: JsonObject) -> str:
        """The prompt of the session that a compression begins: as it would be today, and a word about that."""
        from hermes.context.summary import SYSTEM_NOTE  # paid by the first compression

        assembly = self._assembly
        view = await assembly.tools.view(await assembly.store.load(self.session_id, NO_MESSAGES))
        note = FixedText("8-summary", "volatile", SYSTEM_NOTE)
        built = await self._prompt(config, view, note, session_id=session_id)
        if (tell := assembly.services.parts.tell) is not None:
            for event in built.told:
                if event.kind != "prompt":  # what it began with was said when it began
                    tell(event)
        return built.text

    def _prompt_sources(self, config: JsonObject, view: ToolView) -> list[PromptSource]:
        """What the kernel says in the prompt; a later one of the same session keeps the rules of its project."""
        assembly, asked = self._assembly, session_rows.prompt_options(config)
        services, top = assembly.services, assembly.settings.of(top_section.Section)
        has_files = "skip_context_files" not in asked
        hint = platform_hint(self.options.session.platform or "", top.platform_hints)
        sources: list[PromptSource] = [
            Identity(assembly.settings.home, has_files or "load_soul_identity" in asked),
            FixedText("2-guidance", "stable", " ".join(view.guidance()), "the tools on offer"),
            EnvironmentHint(services.environment),
            FixedText("6-platform", "stable", hint, f"platform {self.options.session.platform}"),
            FixedText("1-caller", "context", config.get(SYSTEM_MESSAGE) or "", "the caller"),
            DateLine(services.clock.now(), top.timezone),
        ]
        if has_files:
            cap = cap_of(top.context_file_max_chars, services.window())
            sources.append(ProjectRules(services.environment, config[PROJECT], cap))
        return sources

    def _with_ephemeral(self, system: str) -> str:
        ephemeral = self.options.session.ephemeral_system_prompt
        return f"{system}\n\n{self._assembly.services.redactor.redact(ephemeral)}" if ephemeral else system

    # -- compression -------------------------------------------------------------------------------------------------

    def _compressing(self) -> "Compression":
        from hermes.runtime.session.compression import Compression  # paid by the first compression

        if self._compression is None:
            self._compression = Compression(self._assembly, self._prompt_after, self._watching())
        return self._compression

    def _watching(self) -> ContextWatch:
        if self._watch is None:
            made = self._assembly
            share = compress_share(made.options, made.settings)
            self._watch = ContextWatch(made.client, share, made.options.session.context_engine)
        return self._watch

    async def _make_room(self, said: TurnInput, turn: Turn, refused: ProviderError | None) -> bool:
        """Compress the session of a turn that is under way; the turn goes on in the one that took its place."""
        from hermes.runtime.session.turn_rotation import (  # paid by the first one
            CallerWords,
            compress_turn,
            named_window,
        )

        if refused is not None and (named := named_window(refused)) is not None:
            turn.client.refused_window(named)
        told = CallerWords(said.message if said.stored_message is not None else None, said.history is not None)
        done = await compress_turn(self._compressing(), turn, refused, told)
        if done is None:
            return False
        self._follow(done.record)
        turn.system = self._with_ephemeral(done.system)
        view = await self._assembly.tools.view(done.record)
        if view.definitions() != turn.tools:  # by MCP servers
            turn.tools, turn.ctx = view.definitions(), replace(turn.ctx, tools=view)
        return True


def replace_content(row: MessageAppended, content: Content) -> MessageAppended:
    """The same row with other words."""
    return MessageAppended(row.session_id, Message(role="user", content=content, timestamp=row.message.timestamp))
