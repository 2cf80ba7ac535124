"""Put an agent's parts together: this is where the capabilities are introduced to each other."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hermes.config import paths
from hermes.config.load import load_settings
from hermes.config.sections import agent as agent_section
from hermes.config.sections import checkpoints as checkpoints_section
from hermes.config.sections import compression as compression_section
from hermes.config.sections import context as context_section
from hermes.config.sections import terminal as terminal_section
from hermes.config.sections import top as top_section
from hermes.config.settings import Settings
from hermes.dicts import from_dict
from hermes.errors import UserError
from hermes.models.auxiliary import AuxiliaryClient, AuxiliaryParts
from hermes.models.client import ModelClient
from hermes.ops import SessionRecord
from hermes.programs import split_path
from hermes.runtime.context import Services
from hermes.runtime.guardrails import GuardrailConfig
from hermes.runtime.options import AgentOptions
from hermes.runtime.prompt import DateLine, EnvironmentHint, Identity, ProjectRules
from hermes.runtime.redaction import clean_message
from hermes.runtime.requests import build_units
from hermes.runtime.session.history_cache import HistoryCache, RedactingStore
from hermes.runtime.setup.environment_setup import Workplace, end_background, environment_for, stored_folder
from hermes.runtime.setup.gate import AgentGate
from hermes.runtime.setup.model_setup import client_options, introduced, model_chain, request_options
from hermes.runtime.setup.process import ProcessParts, shared
from hermes.runtime.setup.tool_view_cache import ToolViewCache
from hermes.runtime.titles import Titles
from hermes.seams import Environment, EventStore, PromptSource, RequestOptions, ToolView, Unit
from hermes.tools.environments.command_env import redactor_of, scrubbed
from hermes.tools.files.file_memory import REDACTOR
from hermes.tools.hooks import Hooks
from hermes.tools.registration.definitions import ViewRequest, has_foreign_files, permitted, project_of, session_tools
from hermes.tools.registration.manifest import ensure_builtins
from hermes.tools.registry import registry
from hermes.tools.results.shelf import FileShelf
from hermes.tools.view import SessionView
from hermes.types import Message

if TYPE_CHECKING:
    from hermes.models.box.model import BoxModel
    from hermes.runtime.call_checkpoints import CallCheckpoints
    from hermes.tools.registry import Registered

log = logging.getLogger("hermes")


class Assembly(Struct, frozen=True, kw_only=True):
    """The parts of one agent."""

    services: Services
    store: RedactingStore
    warm: HistoryCache
    views: ToolViewCache
    client: ModelClient
    boxes: "tuple[BoxModel, ...]"
    helper: AuxiliaryClient
    titles: Titles
    request_options: RequestOptions
    guardrails: GuardrailConfig
    prefill: tuple[Unit, ...]
    settings: Settings
    options: AgentOptions
    compress_share: float | None  # of the window, that a session may fill; None: it is never compressed by itself
    project: Path | None  # where the session stood when the agent was made; a `cd` later moves no tools

    @property
    def turn_timeout_s(self) -> float | None:
        """Seconds that a turn may take; None is no limit."""
        given = self.options.limits.turn_timeout_s
        return (self.settings.of(agent_section.Section).turn_timeout if given is None else given) or None

    async def tools(self, record: SessionRecord | None) -> ToolView:
        """The session's frozen view: as it was stored, else made now from the toolsets asked for.

        What was stored stays on offer; what is asked for now, and what the settings switch off, decides what may run.
        """
        stored = record.tool_definitions if record else None
        request = self._asked(is_new=not stored)
        is_ours = not request.brought and not has_foreign_files(self.settings.home, self.project)
        if stored and is_ours:
            if not registry.is_filled:
                ensure_builtins()
            return self.views.within(request, stored)
        if is_ours and (chosen := self.views.chosen(request)) is not None:
            return self.views.of(chosen)
        generation = registry.generation
        # In a thread: it may execute tool files and wait for availability checks.
        definitions, own = await self.services.pool.run(session_tools, request, stored)
        if is_ours and registry.generation == generation:
            self.views.choose(request, definitions)
        view = SessionView.from_json(definitions, registry, own) if own else self.views.of(definitions)
        return view.restricted(permitted(request, own)) if stored else view

    def _asked(self, *, is_new: bool) -> ViewRequest:
        wanted = self.options.tools
        off = self.settings.of(agent_section.Section).disabled_toolsets
        named = wanted.disabled_toolsets or ()
        return ViewRequest(
            home=self.settings.home,
            settings=self.settings.mapping,
            enabled=wanted.default_toolsets if is_new and wanted.enabled_toolsets is None else wanted.enabled_toolsets,
            disabled=tuple(dict.fromkeys((*named, *off))),
            project=self.project,
            window_tokens=self.services.window(),
            brought=self._brought(),
        )

    def _brought(self) -> "dict[str, Registered]":
        engine = self.options.session.context_engine
        if engine is None:
            return {}
        from hermes.runtime.engine_tools import engine_tools  # noqa: PLC0415 - for who has an engine of their own

        return engine_tools(engine)

    def frozen(self, view: ToolView) -> str:
        """The view as it is stored with the session."""
        assert isinstance(view, SessionView)
        return view.to_json()

    def restore_tasks(self, message: Message) -> None:
        """Put the task list in `message` back where the todo tool keeps it, unless there is one already."""
        if "todo" not in self.services.memo:
            from hermes.runtime.session.session_move import restored_tasks  # noqa: PLC0415 - for sessions that have one

            self.services.memo["todo"] = restored_tasks((message,))

    def follow_results(self, session_id: str) -> None:
        """Large results are those of this session from now on."""
        if isinstance(self.services.shelf, FileShelf):
            self.services.shelf.move_to(paths.results_dir(self.settings.home, session_id))

    def prompt_sources(self, *, is_again: bool = False) -> list[PromptSource]:
        """What the system prompt is made of; a later one of the same session keeps the rules of its project."""
        environment, options = self.services.environment, self.options.session
        has_soul = options.load_soul_identity or not options.skip_context_files
        sources: list[PromptSource] = [Identity(self.settings.home, has_soul), EnvironmentHint(environment)]
        if not options.skip_context_files:
            started_in = self.options.tools.cwd or str(Path.cwd()) if is_again and environment.kind == "local" else ""
            sources.append(ProjectRules(environment, started_in))
        zone = self.settings.of(top_section.Section).timezone
        return [*sources, DateLine(self.services.clock.now(), zone)]

    async def close(self, *ends: str) -> None:
        """Release everything. `ends` names the session that is over now; its background processes are, too."""
        await self.titles.close()
        if ends and not self.settings.of(terminal_section.Section).keep_background:
            await end_background(self.services.environment, *ends)
        for box in self.boxes:
            await box.aclose()
        await self.services.environment.close()


async def assemble(
    options: AgentOptions, session_id: str, parts: ProcessParts = shared, settings: Settings | None = None
) -> Assembly:
    """The parts that `options` and the settings ask for. Cheap: nothing is started, connected or imported early."""
    settings = settings or load_settings()
    inner = options.session.store or _store(options, settings, parts)
    redactor = redactor_of(settings, options.model.api_key)
    store = RedactingStore(inner, session_id, redactor)
    stood_in = await stored_folder(options, inner, session_id)
    environment = environment_for(options, settings, parts, Workplace(session_id, stood_in, redactor))
    persistence = client_options(settings, parts.window_memory)
    chain = model_chain(options, settings, parts.http)
    boxes = introduced(chain, lambda: parts.supervisor)
    client = ModelClient(chain, store, parts.clock, parts.ids, persistence)
    helper = AuxiliaryClient(
        AuxiliaryParts(
            settings=settings,
            http=parts.http,
            store=store,
            clock=parts.clock,
            ids=parts.ids,
            options=persistence,
            main=lambda: client.model,
        )
    )
    hooks = _hooks(settings, parts, environment, session_id)
    services = Services(
        store=store,
        environment=environment,
        supervisor=parts.supervisor,
        gate=AgentGate(
            options=options,
            settings=settings,
            session_id=session_id,
            pool=parts.pool,
            environment=environment,
            store=store,
            helper=helper,
            hooks=hooks,
        ),
        hooks=hooks,
        shelf=FileShelf(paths.results_dir(settings.home, session_id), parts.pool.run, clean=redactor.redact_bytes),
        window=lambda: None if (known := client.window).is_assumed else known.tokens,
        pool=parts.pool,
        clock=parts.clock,
        ids=parts.ids,
        log=log,
        settings=settings.mapping,
        memo={REDACTOR: redactor},
        redactor=redactor,
        checkpoints=_checkpoints(options, settings, parts),
        helper=helper,
    )
    return Assembly(
        services=services,
        store=store,
        warm=parts.warm,
        views=parts.views,
        client=client,
        boxes=boxes,
        helper=helper,
        titles=Titles(helper, store),
        request_options=request_options(options, settings),
        guardrails=GuardrailConfig.of(settings.mapping),
        prefill=tuple(
            build_units([clean_message(from_dict(raw), redactor) for raw in options.model.prefill_messages or ()])
        ),
        settings=settings,
        options=options,
        compress_share=_compress_share(options, settings),
        project=project_of(Path(environment.cwd), settings.home) if environment.kind == "local" else None,
    )


def _compress_share(options: AgentOptions, settings: Settings) -> float | None:
    section = settings.of(compression_section.Section)
    has_engine = options.session.context_engine is not None or settings.of(context_section.Section).engine != "none"
    return section.threshold if section.enabled and has_engine else None


def _hooks(settings: Settings, parts: ProcessParts, environment: Environment, session_id: str) -> Hooks:
    bus = Hooks(parts.pool)
    if "hooks" in settings.tree:
        from hermes.extensions.shell_hooks import HookPlace, join  # noqa: PLC0415 - for who has hooks

        # A hook runs outside the sandbox: what it calls by name is not looked for where commands can write.
        search = split_path(settings.environ, environment.cwd)
        env = {**scrubbed(settings.environ), "PATH": search.own}
        place = HookPlace(
            supervisor=lambda: parts.supervisor, env=env, cwd=lambda: environment.cwd, session_id=session_id
        )
        join(bus, settings, place)
    return bus


def _checkpoints(options: AgentOptions, settings: Settings, parts: ProcessParts) -> "CallCheckpoints | None":
    is_asked = "checkpoints_enabled" in options.given
    if not (options.tools.checkpoints_enabled if is_asked else settings.of(checkpoints_section.Section).enabled):
        return None
    from hermes.runtime.call_checkpoints import call_checkpoints  # noqa: PLC0415 - for sessions that take them

    return call_checkpoints(options, settings, parts)


def _store(options: AgentOptions, settings: Settings, parts: ProcessParts) -> EventStore:
    given = options.session.session_db
    if given is not None:
        store = getattr(given, "store", None)
        if store is None:
            raise UserError("session_db must be a hermes.state.SessionDB")
        found: EventStore = store
        return found
    return parts.store(settings)
