"""The agent's side of the protocol: each method, as calls of the host.

Nothing of the kernel is loaded before the first session.
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import MsgspecError

from hermes import __version__
from hermes.config.settings import Settings
from hermes.errors import HermesError
from hermes.host.installation import Installation
from hermes.host.wire.frames import BAD_PARAMS, WireError, WireRequest
from hermes.surfaces.acp import protocol
from hermes.surfaces.acp.connection import EditorConnection, bad_params, unknown_method
from hermes.typed import convert
from hermes.types import JsonObject

if TYPE_CHECKING:  # paid by the first session
    from hermes.host.host import Host
    from hermes.host.live_session import LiveSession
    from hermes.surfaces.acp.editor_session import EditorSession

P = TypeVar("P")
SETUP = "hermes-setup"
log = logging.getLogger(__name__)


class EditorAgent:
    """Everything that one editor may ask. `close` ends its sessions."""

    def __init__(self, connection: EditorConnection, installation: Installation) -> None:
        self._connection = connection
        self._installation = installation
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()  # guards `_host`: it is opened once, by whoever needs it first
        self._host: Host | None = None
        self._sessions: dict[str, EditorSession] = {}
        self._can_read_buffers = False
        self._methods: dict[str, Callable[[JsonObject], Awaitable[Any]]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close_one,
            "session/prompt": self._prompt,
            "session/cancel": self._cancel,
            "session/set_mode": self._set_mode,
            "session/set_model": self._set_model,
            "session/set_config_option": self._set_option,
        }

    async def handle(self, request: WireRequest) -> Any:
        """The result of a request; `WireError` when it is refused."""
        method = self._methods.get(request.method)
        if method is None:
            raise unknown_method(request)
        try:
            return await method(request.params)
        except MsgspecError as error:
            raise bad_params(error) from error
        except HermesError as error:
            raise _wire_error(error) from error

    async def close(self) -> None:
        """Stop all turns and let go of everything; bounded."""
        for session in self._sessions.values():
            session.leave()
        await self._stack.aclose()

    # -- the handshake -------------------------------------------------------------------------------------------------

    async def _initialize(self, params: JsonObject) -> JsonObject:
        asked = convert(params, protocol.InitializeParams)
        files = asked.client_capabilities.fs if asked.client_capabilities is not None else None
        self._can_read_buffers = bool(files and files.read_text_file)
        return {
            "protocolVersion": protocol.VERSION,
            "agentInfo": {"name": "hermes-agent", "version": __version__},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": {"fork": {}, "list": {}, "resume": {}, "close": {}},
            },
            "authMethods": self._auth_methods(),
        }

    def _auth_methods(self) -> list[JsonObject]:
        methods: list[JsonObject] = []
        if provider := self._provider():
            methods.append(
                {
                    "id": provider,
                    "name": f"{provider} runtime credentials",
                    "description": f"Use the model and key that are set up for {provider}.",
                }
            )
        setup = "Choose a model and its key in a terminal."
        methods.append(
            {"id": SETUP, "name": "Set up Hermes", "description": setup, "type": "terminal", "args": ["--setup"]}
        )
        return methods

    def _provider(self) -> str:
        """The name of the configured provider; empty when none is."""
        from hermes.models.providers.resolve import ModelQuery, resolve

        try:
            return resolve(self._installation.settings(), ModelQuery()).endpoint.provider
        except HermesError as error:
            log.info("no model is configured: %s", error)
            return ""

    async def _authenticate(self, params: JsonObject) -> JsonObject:
        asked = convert(params, protocol.AuthenticateParams)
        provider = self._provider()
        if asked.method_id not in {provider, SETUP} or not asked.method_id:
            raise WireError(BAD_PARAMS, f"there is no way to authenticate called {asked.method_id!r}")
        if not provider:
            raise WireError(protocol.AUTH_REQUIRED, "no model is set up yet; run: hermes setup")
        return {}

    # -- sessions ------------------------------------------------------------------------------------------------------

    async def _new(self, params: JsonObject) -> protocol.SessionReply:
        asked = convert(params, protocol.NewParams)
        live = await self._live(asked.cwd, None, asked.mcp_servers)
        session = self._opened(live.session_id, live)
        # Its rows come with its first message; an editor may be started anew before that, and ask for it by this id.
        await live.in_thread(live.db.set_meta, _head_key(session.acp_id), live.session_id)
        return await self._reply(session, with_id=True)

    async def _load(self, params: JsonObject) -> protocol.SessionReply:
        asked = convert(params, protocol.OpenParams)
        session = await self._open(asked)
        await self._replay(session)
        return await self._reply(session)

    async def _resume(self, params: JsonObject) -> protocol.SessionReply:
        asked = convert(params, protocol.OpenParams)
        session = await self._open(asked)
        await self._replay(session, is_shown=False)
        return await self._reply(session)

    async def _fork(self, params: JsonObject) -> protocol.SessionReply:
        asked = convert(params, protocol.OpenParams)
        parent = await self._open(asked)
        copy = await parent.live.branch()
        session = self._opened(copy, await self._live(asked.cwd or parent.live.cwd, copy, asked.mcp_servers))
        await self._replay(session, is_shown=False)
        return await self._reply(session, with_id=True)

    async def _list(self, params: JsonObject) -> protocol.ListReply:
        from hermes.surfaces.acp.session_pages import page_of

        asked = convert(params, protocol.ListParams)
        host = await self._hosted()
        db = host.db(self._installation.settings())
        from hermes.runtime.setup.process import shared

        return await shared.pool.run(page_of, db, asked.cwd, asked.cursor)

    async def _close_one(self, params: JsonObject) -> JsonObject:
        asked = convert(params, protocol.SessionParams)
        session = self._known(asked.session_id)
        del self._sessions[asked.session_id]
        session.leave()
        await session.live.close()
        return {}

    # -- turns ---------------------------------------------------------------------------------------------------------

    async def _prompt(self, params: JsonObject) -> protocol.PromptReply:
        asked = convert(params, protocol.PromptParams)
        return await self._known(asked.session_id).prompt(asked.prompt)

    async def _cancel(self, params: JsonObject) -> None:
        asked = convert(params, protocol.SessionParams)
        if (session := self._sessions.get(asked.session_id)) is not None:
            await session.cancel()

    async def _set_mode(self, params: JsonObject) -> JsonObject:
        from hermes.surfaces.acp.editor_modes import MODES, mode_named

        asked = convert(params, protocol.ModeParams)
        session, mode = self._known(asked.session_id), mode_named(asked.mode_id)
        if mode is None:
            names = ", ".join(each.id for each in MODES)
            raise WireError(BAD_PARAMS, f"there is no mode {asked.mode_id!r}; the modes are {names}")
        session.set_mode(mode)
        return {}

    async def _set_model(self, params: JsonObject) -> JsonObject:
        from hermes.surfaces.acp.model_list import model_changes

        asked = convert(params, protocol.ModelParams)
        session = self._known(asked.session_id)
        name, flags = model_changes(session.live.settings, asked.model_id)
        await session.live.reconfigure(**flags)
        if await session.live.exists():
            await session.live.in_thread(session.live.db.update_session_model, session.live.session_id, name)
        return {}

    async def _set_option(self, params: JsonObject) -> JsonObject:
        from hermes.surfaces.acp.editor_modes import POLICY, config_options, mode_of_policy

        asked = convert(params, protocol.ConfigParams)
        session, mode = self._known(asked.session_id), mode_of_policy(asked.value)
        if asked.config_id != POLICY:
            raise WireError(BAD_PARAMS, f"there is no option {asked.config_id!r}; there is {POLICY!r}")
        if mode is None:
            raise WireError(BAD_PARAMS, f"{POLICY} is ask, workspace_session or session, not {asked.value!r}")
        session.set_mode(mode)
        return {"configOptions": config_options(session.mode)}

    # -- behind them ---------------------------------------------------------------------------------------------------

    async def _hosted(self) -> "Host":
        async with self._opening:
            if self._host is None:
                from hermes.config.sections.top import Section as Top
                from hermes.host.host import Host
                from hermes.host.logs import logging_as_set
                from hermes.models.http.preload import preload
                from hermes.runtime.setup.process import shared

                self._stack.callback(preload())  # the first prompt is on its way
                settings = self._installation.settings()
                self._stack.enter_context(logging_as_set(settings, _to_stderr))
                self._stack.push_async_callback(shared.close)
                limit = settings.of(Top).max_concurrent_sessions
                self._host = await self._stack.enter_async_context(Host(limit))
        return self._host

    async def _live(
        self,
        cwd: str,
        session_id: str | None,
        servers: Sequence[JsonObject] | None = None,
        before: "LiveSession | None" = None,
    ) -> "LiveSession":
        """The live session of an id, or a new one, that works in `cwd` with these servers of the editor's.

        One that takes the place of another, `before`, has its servers and settings.
        """
        from hermes.host.agent_settings import AgentSettings
        from hermes.host.hosted_session import SessionStart
        from hermes.surfaces.acp.editor_buffers import EditorBuffers
        from hermes.surfaces.acp.editor_servers import servers_of

        if not Path(cwd).is_absolute() or not await asyncio.to_thread(Path(cwd).is_dir):
            raise WireError(BAD_PARAMS, f"cwd is the absolute path of a folder, not {cwd!r}")
        settings = before.settings if before is not None else self._installation.settings()
        self._check_model(settings)
        host = await self._hosted()
        buffers = EditorBuffers(self._connection) if self._can_read_buffers else None
        start = SessionStart(
            settings=settings,
            asked=AgentSettings(source="acp"),
            folder=cwd,
            work_mode="ask",
            open_buffers=buffers,
            mcp_servers=before.start.mcp_servers if before is not None else servers_of(servers or ()),
        )
        live = host.session(start, session_id)
        await live.open()
        return live

    def _check_model(self, settings: Settings) -> None:
        from hermes.models.providers.resolve import ModelQuery, resolve

        try:
            resolve(settings, ModelQuery())
        except HermesError as error:
            raise WireError(protocol.AUTH_REQUIRED, f"{error}; set a model up with: hermes setup") from error

    def _opened(self, acp_id: str, live: "LiveSession") -> "EditorSession":
        from hermes.surfaces.acp.editor_session import EditorSession

        _name_buffers(live, acp_id)
        self._sessions[acp_id] = made = EditorSession(acp_id, live, self._connection, self._go_to)
        return made

    async def _open(self, asked: protocol.OpenParams) -> "EditorSession":
        """A session that is open here, or one of the store; an unknown one is refused."""
        acp_id = asked.session_id
        if (known := self._sessions.get(acp_id)) is not None:
            return known
        host = await self._hosted()
        db = host.db(self._installation.settings())
        from hermes.runtime.setup.process import shared

        row = await shared.pool.run(db.get_session, acp_id)
        head = await shared.pool.run(db.get_meta, _head_key(acp_id))
        if row is None and head is None:
            raise WireError(protocol.NOT_FOUND, f"there is no session {acp_id!r}", {"sessionId": acp_id})
        tip = await shared.pool.run(db.resolve_resume_session_id, head or acp_id)
        cwd = asked.cwd or str((row or {}).get("cwd") or "")
        return self._opened(acp_id, await self._live(cwd, tip, asked.mcp_servers))

    def _known(self, acp_id: str) -> "EditorSession":
        if (found := self._sessions.get(acp_id)) is None:
            raise WireError(protocol.NOT_FOUND, f"there is no open session {acp_id!r}", {"sessionId": acp_id})
        return found

    async def _go_to(self, session: "EditorSession", session_id: str | None) -> None:
        """A command leads to another session; the editor goes on under the name that it knows."""
        old = session.live
        new = await self._live(old.cwd, session_id, before=old)
        _name_buffers(new, session.acp_id)
        session.move_to(new)
        await old.close("switched")
        await new.in_thread(new.db.set_meta, _head_key(session.acp_id), new.session_id)
        session.update(protocol.InfoTold(meta=await self._provenance(session)))

    async def _replay(self, session: "EditorSession", *, is_shown: bool = True) -> None:
        """Tell the whole transcript, that of sessions before a compression included."""
        from hermes.surfaces.acp.call_ids import CallIds
        from hermes.surfaces.acp.transcript_replay import updates_of

        live, ids = session.live, CallIds()
        _, rows = await live.in_thread(live.db.get_resume_conversations, live.session_id)
        for update in updates_of(rows, live.cwd, ids):
            if is_shown:
                session.update(update)
        session.ids = ids

    async def _reply(self, session: "EditorSession", *, with_id: bool = False) -> protocol.SessionReply:
        from hermes.surfaces.acp.editor_modes import config_options, mode_state
        from hermes.surfaces.acp.model_list import model_state

        reply = protocol.SessionReply(
            modes=mode_state(session.mode),
            models=model_state(session.live.settings),
            config_options=config_options(session.mode),
            session_id=session.acp_id if with_id else None,
            meta=await self._provenance(session),
        )
        asyncio.get_running_loop().call_soon(session.greet)  # after the reply
        return reply

    async def _provenance(self, session: "EditorSession") -> JsonObject:
        live = session.live
        line = await live.in_thread(lambda: live.db.queries.lineage(live.session_id).ancestors) or [live.session_id]
        return {
            "hermes": {
                "sessionProvenance": {
                    "acpSessionId": session.acp_id,
                    "currentHermesSessionId": live.session_id,
                    "rootHermesSessionId": line[0],
                    "parentHermesSessionId": line[-2] if len(line) > 1 else None,
                    "sessionKind": "continuation" if len(line) > 1 else "root",
                    "compressionDepth": len(line) - 1,
                }
            }
        }


def _name_buffers(live: "LiveSession", acp_id: str) -> None:
    """Tell a session's buffers by which name the editor knows the session."""
    from hermes.surfaces.acp.editor_buffers import EditorBuffers

    if isinstance(buffers := live.start.open_buffers, EditorBuffers):
        buffers.acp_id = acp_id


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"hermes: {text}\n")


def _head_key(acp_id: str) -> str:
    return f"acp.head.{acp_id}"


def _wire_error(error: HermesError) -> WireError:
    from hermes.host.host_errors import kind_of_error

    codes = {"not_found": protocol.NOT_FOUND, "failed": -32603}
    return WireError(codes.get(kind_of_error(error), BAD_PARAMS), str(error))
