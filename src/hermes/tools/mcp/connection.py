"""One open connection to a server: started or reached, greeted, and listed. The SDK is imported for the first one."""

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from hermes.errors import ToolError
from hermes.tools.mcp.http_link import HttpNews, http_streams
from hermes.tools.mcp.manifest import ServerManifest, ToolRecord
from hermes.tools.mcp.offered_tools import MAX_TOOLS, fault_of
from hermes.tools.mcp.sdk import load_sdk
from hermes.tools.mcp.server_config import ServerConfig
from hermes.tools.mcp.server_requests import ServerRequests
from hermes.tools.mcp.sign_in import NeedsSignIn, SignIn, SignInState, TokenFile, auth_for
from hermes.tools.mcp.sound_stream import SoundStream
from hermes.tools.mcp.stdio_pipe import LinkSignals, StdioPlace, last_words, start_server, stdio_streams, stop_server
from hermes.types import JsonObject

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult

MAX_PAGES = 50
MAX_ROUNDS = 10  # of what a server of the newest protocol wants to know within one call
log = logging.getLogger(__name__)


class LinkParts(Struct, frozen=True, kw_only=True):
    """What connections are made with."""

    home: Path
    stdio: StdioPlace
    in_thread: Callable[..., Awaitable[Any]]
    client_name: str = "hermes"
    client_version: str = "0"


class ServerLink:
    """An open connection; `signals` says when nothing more can come of it."""

    def __init__(self, session: "ClientSession", signals: LinkSignals, news: HttpNews) -> None:
        self.session = session
        self.signals = signals
        self.news = news
        self._types = importlib.import_module("mcp_types")  # not for each call anew
        self.refusal: type[Exception] = importlib.import_module("mcp").MCPError  # what calls raise

    def is_closed_by(self, error: Exception) -> bool:
        """Whether a call failed because nothing can come any more."""
        return bool(getattr(error, "code", None) == self._types.CONNECTION_CLOSED)

    async def call_tool(self, name: str, args: JsonObject, on_progress: "ProgressFnT | None") -> "CallToolResult":
        """The result of a tool; servers of the newest protocol may want to know things first."""
        more: dict[str, Any] = {}
        for number in range(MAX_ROUNDS):
            result: Any = await self.session.call_tool(
                name, args, None, on_progress, allow_input_required=True, allow_claimed=False, **more
            )
            if isinstance(result, self._types.CallToolResult):
                return cast("CallToolResult", result)
            if not isinstance(result, self._types.InputRequiredResult):
                break
            from mcp.client.session import ClientRequestContext

            answers: dict[str, Any] = {}
            for key, wanted in (result.input_requests or {}).items():
                context = ClientRequestContext(session=self.session, request_id=f"{number}-{key}")
                said = await self.session.dispatch_input_request(context, wanted)
                if isinstance(said, self._types.ErrorData):
                    raise ToolError(f"the server wanted to know something, and {said.message}")
                answers[key] = said
            more = {"input_responses": answers, "request_state": result.request_state}
        raise ToolError("the server gave no result, but further questions")

    async def manifest(self, config: ServerConfig, left_out: dict[str, str]) -> ServerManifest:
        """What the server offers, all pages of it."""
        session = self.session
        offers, about = session.server_capabilities, session.server_info
        records: dict[str, ToolRecord] = {}
        faults: dict[str, str] = {}
        if offers is None or offers.tools is not None:
            async for tool in self._tools():
                hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
                record = ToolRecord(
                    name=tool.name,
                    description=tool.description or "",
                    parameters=tool.input_schema,
                    annotations=hints,
                )
                fault = "another tool has its name" if tool.name in records else fault_of(record)
                if not fault and len(records) >= MAX_TOOLS:
                    fault = f"more than {MAX_TOOLS} tools are not offered; choose some with tools.include"
                if fault:
                    faults[tool.name[:200]] = fault
                else:
                    records[tool.name] = record
        return ServerManifest(
            name=config.name,
            identity=config.identity,
            seen_at=time(),
            title=f"{about.name} {about.version}".strip() if about else "",
            protocol=str(session.protocol_version or ""),
            instructions=(session.instructions or "")[:4000],
            has_resources=offers is not None and offers.resources is not None,
            has_prompts=offers is not None and offers.prompts is not None,
            tools=tuple(records.values()),
            left_out=dict(list({**left_out, **faults}.items())[:100]),
        )

    async def _tools(self) -> AsyncIterator[Any]:
        from mcp_types import PaginatedRequestParams

        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
            page = await self.session.list_tools(params=params)
            for tool in page.tools:
                yield tool
            cursor = page.next_cursor
            if not cursor:
                return
        log.warning("an MCP server has more than %s pages of tools; the rest is left out", MAX_PAGES)


@asynccontextmanager
async def connected(
    config: ServerConfig, parts: LinkParts, requests: ServerRequests, person: SignIn | None = None
) -> AsyncIterator[tuple[ServerLink, ServerManifest]]:
    """An open connection and what the server offers; `ToolError` or `TimeoutError` when there is none in time."""
    signals, news, left_out, state = LinkSignals(), HttpNews(), dict[str, str](), SignInState()
    limit_s, child = None if person else config.entry.connect_timeout, None
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(limit_s):
                if config.is_local:
                    child = await start_server(config, parts.stdio)
                    stack.push_async_callback(stop_server, child)
                    await parts.in_thread(load_sdk)
                    streams = await stack.enter_async_context(stdio_streams(child, signals))
                else:
                    await parts.in_thread(load_sdk)
                    auth = None
                    if config.entry.auth == "oauth":
                        file = person.tokens if person else TokenFile(parts.home, config)
                        auth = auth_for(config, file, state, person)
                    streams = await stack.enter_async_context(http_streams(config, auth, news))
                read, write = streams
                session = _session((SoundStream(read, left_out), write), parts, requests, signals)
                await stack.enter_async_context(session)
                await _greet(session)
                link = ServerLink(session, signals, news)
                manifest = await link.manifest(config, left_out)
        except TimeoutError as error:
            raise TimeoutError(f"no greeting within {limit_s:g} s") from error
        except Exception as error:
            if child is not None and signals.ended.is_set():
                raise ToolError(await last_words(child)) from error
            if state.is_needed:
                raise NeedsSignIn(f"it wants you to sign in; run: hermes mcp login {config.name}") from error
            if news.status in (401, 403) and not config.is_local:
                raise NeedsSignIn(
                    f"it refused us with status {news.status}; set its headers, or auth: oauth and run: "
                    f"hermes mcp login {config.name}"
                ) from error
            raise
        yield link, manifest


def _session(streams: Any, parts: LinkParts, requests: ServerRequests, signals: LinkSignals) -> "ClientSession":
    from mcp import ClientSession
    from mcp_types import Implementation

    async def heard(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            signals.is_relist_due = True
            signals.stirred.set()

    read, write = streams
    return ClientSession(
        read,
        write,
        client_info=Implementation(name=parts.client_name, version=parts.client_version),
        message_handler=heard,
        sampling_callback=requests.sample if requests.may_sample else None,
        elicitation_callback=requests.elicit,
        list_roots_callback=requests.list_roots,
    )


async def _greet(session: "ClientSession") -> None:
    """The handshake that every server knows; one that only knows the newest protocol says so, and is asked in it."""
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
            raise
        await session.discover()
    except RuntimeError as error:  # the SDK's word for a version that it does not know
        raise ToolError(str(error)) from error
