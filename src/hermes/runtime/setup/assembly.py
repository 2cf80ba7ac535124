"""Put an agent together: this is where its collaborators are introduced to each other, and its parts join."""

import logging

from msgspec import Struct

from hermes.config import paths
from hermes.config.load import load_settings
from hermes.config.settings import Settings
from hermes.models.auxiliary import AuxiliaryClient, AuxiliaryParts
from hermes.models.client import ModelClient
from hermes.runtime.context import Services
from hermes.runtime.guardrails import GuardrailConfig
from hermes.runtime.options import AgentOptions
from hermes.runtime.parts import Joining
from hermes.runtime.session.history_cache import HistoryCache, RedactingStore
from hermes.runtime.setup.caller_questions import question_to_user
from hermes.runtime.setup.environment_setup import Workplace, environment_for, stored_folder
from hermes.runtime.setup.gate import AgentGate
from hermes.runtime.setup.model_setup import (
    StartedModel,
    client_options,
    introduced,
    model_chain,
    prefill,
    recorder,
    request_options,
    unrecorded,
    with_plugins,
)
from hermes.runtime.setup.process import ProcessParts, shared, store_of
from hermes.runtime.setup.tool_view_cache import SessionTools
from hermes.seams import OPEN_BUFFERS, RequestOptions, Unit
from hermes.tools.environments.command_env import redactor_of
from hermes.tools.files.file_memory import REDACTOR
from hermes.tools.hooks import Hooks
from hermes.tools.results.shelf import FileShelf

log = logging.getLogger("hermes")


class Assembly(Struct, frozen=True, kw_only=True):
    """What one agent is made of."""

    services: Services
    store: RedactingStore
    warm: HistoryCache
    tools: SessionTools
    client: ModelClient
    started: tuple[StartedModel, ...]
    auxiliary: AuxiliaryClient
    request_options: RequestOptions
    guardrails: GuardrailConfig
    prefill: tuple[Unit, ...]
    settings: Settings
    options: AgentOptions

    async def close(self, *ended: str) -> None:
        """Release everything. `ended` names the session that is over now, by all the ids it had."""
        await self.services.parts.close(*ended)
        await self.store.commit_rest()
        for model in self.started:
            await model.aclose()
        await self.services.environment.close()


async def assemble(
    options: AgentOptions, session_id: str, process: ProcessParts = shared, settings: Settings | None = None
) -> Assembly:
    """What `options` and the settings ask for. Cheap: nothing is started, connected or imported early."""
    settings = settings or load_settings()
    options, told = with_plugins(options, settings)
    inner = store_of(options, settings, process)
    redactor = redactor_of(settings, options.model.api_key)
    store = RedactingStore(inner, session_id, redactor, stores_events=options.session.stores_events)
    stood_in = await stored_folder(options, inner, session_id)
    environment = environment_for(options, settings, process, Workplace(session_id, stood_in, redactor))
    lent = options.parent.account if options.parent is not None else None
    sent = recorder(options.model, process.http)
    persistence = client_options(settings, process.window_memory, lent, sent)
    chain = model_chain(options, settings, sent or process.http)
    folder = environment.cwd if environment.kind == "local" else None  # of this machine
    started = introduced(chain, lambda: process.supervisor, folder)
    client = ModelClient(chain, store, process.clock, process.ids, persistence)
    auxiliary = AuxiliaryClient(
        AuxiliaryParts(
            settings=settings,
            http=process.http,
            store=store,
            clock=process.clock,
            ids=process.ids,
            options=unrecorded(persistence),
            main=lambda: client.model,
        )
    )
    hooks = Hooks(process.pool)
    services = Services(
        store=store,
        environment=environment,
        supervisor=process.supervisor,
        gate=AgentGate(
            options=options,
            settings=settings,
            session_id=session_id,
            pool=process.pool,
            environment=environment,
            store=store,
            auxiliary=auxiliary,
            hooks=hooks,
        ),
        hooks=hooks,
        shelf=FileShelf(paths.results_dir(settings.home, session_id), process.pool.run, clean=redactor.redact_bytes),
        window=lambda: None if (known := client.window).is_assumed else known.tokens,
        pool=process.pool,
        clock=process.clock,
        ids=process.ids,
        log=log,
        settings=settings.mapping,
        memo={REDACTOR: redactor, OPEN_BUFFERS: options.tools.open_buffers},
        redactor=redactor,
        user_id=options.session.user_id,
        ask_user=question_to_user(options.callbacks.clarify_callback, settings, process.pool),
    )
    services.parts.untold += told
    services.parts.join_all(
        Joining(
            session_id=session_id,
            options=options,
            settings=settings,
            services=services,
            process=process,
            auxiliary=auxiliary,
            client=client,
        )
    )
    return Assembly(
        services=services,
        store=store,
        warm=process.warm,
        tools=SessionTools(process.views, options, settings, services),
        client=client,
        started=started,
        auxiliary=auxiliary,
        request_options=request_options(options, settings),
        guardrails=GuardrailConfig.of(settings.mapping),
        prefill=prefill(options.model, redactor),
        settings=settings,
        options=options,
    )
