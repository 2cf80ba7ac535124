"""One server and its owner: a task that starts it, notices its end, and starts it again; calls go past it to the link.

The owner alone opens and closes the connection. A call never waits for a back-off: it wakes the owner, which tries at
once, and hears what came of that attempt. What a call did before its server died is not known, so it is never repeated;
but for a server that says it does not know the session, and so did not take the call.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from hermes.errors import HermesError, ToolError, UserError
from hermes.seams import ToolContext
from hermes.tools.mcp.call_result import MediaFolder, call_failed, is_plain, resource_text, told_result
from hermes.tools.mcp.connection import LinkParts, ServerLink, connected
from hermes.tools.mcp.manifest import ManifestShelf, ServerManifest, ToolRecord
from hermes.tools.mcp.offered_tools import McpCall
from hermes.tools.mcp.server_config import ServerConfig
from hermes.tools.mcp.server_requests import ServerRequests
from hermes.tools.mcp.sign_in import NeedsSignIn
from hermes.tools.registry import tool_error, tool_result
from hermes.types import CallProgress, Content, StatusChanged

ServerState: TypeAlias = Literal["asleep", "connecting", "ready", "down", "sign-in", "refused"]
FIRST_PAUSE_S = 1.0
EASY_PAUSE_S = 4.0  # at most, for the first ten minutes of an outage
EASY_FOR_S = 600.0
LATER_PAUSE_S = 60.0
PING_S = 10.0
CLOSE_S = 4.0
PROGRESS_EVERY_S = 0.1
log = logging.getLogger(__name__)


class OwnedServer:
    """A server of one agent. It is started by `begin` or by the first call."""

    def __init__(
        self,
        config: ServerConfig,
        parts: LinkParts,
        requests: ServerRequests,
        manifest: ServerManifest | None,
        on_change: Callable[["OwnedServer"], None] = lambda _: None,
    ) -> None:
        self.config = config
        self.requests = requests
        self._parts = parts
        self._shelf = ManifestShelf(parts.home)
        self._media = MediaFolder(parts.home)
        self._on_change = on_change
        self.state: ServerState = "refused" if config.trouble else "asleep"
        self.why = config.trouble
        self.manifest = manifest
        self._records: tuple[ServerManifest | None, dict[str, ToolRecord]] = (None, {})  # of a manifest, by name
        self._as_pinned: set[str] = set()  # those of them that say what they said before
        self._owner: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # that the owner lives on
        self._link: ServerLink | None = None
        self._waiting: list[asyncio.Future[ServerLink]] = []
        self._wake = asyncio.Event()
        self._used_at = 0.0
        self._rests = False  # ended because it had nothing to do
        self._wants_person = False  # to sign in

    # -- what others ask ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Have an owner see to it that the server is there; nothing is waited for."""
        loop = asyncio.get_running_loop()
        if self.config.trouble or (self._owner is not None and not self._owner.done() and self._loop is loop):
            return
        self._loop, self._link, self._waiting, self._wake = loop, None, [], asyncio.Event()
        self._used_at = loop.time()
        self._owner = loop.create_task(self._own(), name=f"MCP server {self.config.name}")

    async def link(self) -> ServerLink:
        """The open connection, opened now if need be; `ToolError` with what is going on when there is none."""
        if self.config.trouble:
            raise ToolError(self._not_connected(self.config.trouble))
        self.begin()
        self._used_at = asyncio.get_running_loop().time()
        if self._link is not None and not self._link.signals.ended.is_set():
            return self._link
        outcome: asyncio.Future[ServerLink] = asyncio.get_running_loop().create_future()
        self._waiting.append(outcome)
        self._wake.set()
        try:
            return await outcome
        finally:
            if outcome in self._waiting:
                self._waiting.remove(outcome)

    async def call(self, asked: McpCall, ctx: ToolContext) -> Content:
        """The result of a call, or its error, as the model reads it.

        What an answer is awaited through is paid for whenever the SDK lets others run, several times in a call; so it
        is awaited here, and not levels below.
        """
        loop, clock = asyncio.get_running_loop(), self.requests.clock
        for may_repeat in (True, False):
            try:
                link = self._link if self.is_ready else await self.link()
            except ToolError as error:
                return tool_error(str(error)) if may_repeat else call_failed(type(error).__name__, str(error))
            assert link is not None
            self._tell_change(asked, ctx)
            link.news.lost_session = False
            under_way = clock.begin(ctx, loop)
            try:
                if asked.utility:
                    return await self._utility(link, asked)
                result = await link.call_tool(asked.tool, asked.args, _Progress(asked.offered, ctx))
                reader = "read_resource" if self.manifest is not None and self.manifest.has_resources else ""
                if is_plain(result):
                    return told_result(result, self._media, reader)
                told: str = await self._parts.in_thread(told_result, result, self._media, reader)
                return told
            except asyncio.CancelledError:
                if not under_way.ends_late:
                    raise
                late = f"MCP call timed out after {clock.limit_s:.1f}s (configured timeout: {clock.limit_s:.1f}s)"
                return call_failed("TimeoutError", late)
            except (link.refusal, HermesError, RuntimeError, ValueError, OSError) as error:
                if (answer := _failure(link, error, may_repeat=may_repeat)) is not None:
                    return answer
            finally:
                clock.end(under_way)
                self._used_at = loop.time()
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """End the server; bounded."""
        owner, self._owner = self._owner, None
        if owner is None or owner.done():
            return
        if self._loop is not asyncio.get_running_loop():
            return  # the loop that it lived on is over, and the keeper has seen its pipes close
        owner.cancel()
        self.requests.clock.stop()
        await asyncio.wait([owner], timeout=CLOSE_S)
        self.state = "asleep"

    @property
    def is_ready(self) -> bool:
        """Whether whoever asks, on its loop, can call at once: a connection is of use on the loop it was opened on."""
        link = self._link
        return link is not None and self._loop is asyncio.get_running_loop() and not link.signals.ended.is_set()

    def record(self, tool: str) -> ToolRecord | None:
        """What the server says of a tool."""
        if self._records[0] is not self.manifest:
            tools = self.manifest.tools if self.manifest is not None else ()
            self._records, self._as_pinned = (self.manifest, {one.name: one for one in tools}), set()
        return self._records[1].get(tool)

    # -- the owner ---------------------------------------------------------------------------------------------------

    async def _own(self) -> None:
        loop, pause_s, failing_since = asyncio.get_running_loop(), FIRST_PAUSE_S, None
        while True:
            self._wake.clear()
            was_ready = False
            self.state = "connecting"
            try:
                async with connected(self.config, self._parts, self.requests) as (link, manifest):
                    was_ready, pause_s, failing_since = True, FIRST_PAUSE_S, None
                    await self._linked(link, manifest)
                    await self._serve(link)
            except Exception as error:  # noqa: BLE001 - the border to a server and to the SDK; told below
                self._lost(error, was_ready=was_ready)
            self._link = None
            if self._rests:
                self._rests, self.state = False, "asleep"
                await self._wake.wait()
                continue
            failing_since = failing_since or loop.time()
            is_early = loop.time() - failing_since < EASY_FOR_S and not self._wants_person
            limit_s = min(pause_s, EASY_PAUSE_S) if is_early else LATER_PAUSE_S
            pause_s *= 2
            try:
                async with asyncio.timeout(limit_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _linked(self, link: ServerLink, manifest: ServerManifest) -> None:
        self._link, self.state, self.why = link, "ready", ""
        await self._keep(manifest)
        waiting, self._waiting = self._waiting, []
        for outcome in waiting:
            if not outcome.done():
                outcome.set_result(link)

    async def _keep(self, manifest: ServerManifest) -> None:
        """Store what the server offers, when that is news."""
        before = self.manifest or self._shelf.find(self.config.name)
        fresh = manifest.after(before)
        if self.manifest is not None and replace(fresh, seen_at=self.manifest.seen_at) == self.manifest:
            return
        self.manifest = fresh
        self._on_change(self)  # at once: whoever reads the list reads that it is another
        try:
            await self._parts.in_thread(self._shelf.write, fresh)
        except UserError as error:
            log.warning("what the MCP server %r offers could not be stored: %s", self.config.name, error)

    async def _serve(self, link: ServerLink) -> None:
        """Until the connection ends: look after it, list again when the server says so, let it sleep when it may."""
        loop, entry, signals = asyncio.get_running_loop(), self.config.entry, link.signals
        born = pinged = loop.time()
        while not signals.ended.is_set():
            limits = [pinged + entry.keepalive_interval]
            if self.config.is_local:
                limits += [self._used_at + entry.idle_s] if entry.idle_s else []
                limits += [born + entry.lifetime_s] if entry.lifetime_s else []
            try:
                async with asyncio.timeout(max(0.05, min(limits) - loop.time())):
                    await signals.stirred.wait()
            except TimeoutError:
                if self.requests.clock.calls:
                    pinged = self._used_at = loop.time()  # a server at work has no time for questions
                elif self.config.is_local and any(limit <= loop.time() for limit in limits[1:]):
                    self._rests, self._link = True, None  # who calls while it ends waits for the next one
                    return
                else:
                    await _ping(link)
                    pinged = loop.time()
            signals.stirred.clear()
            if signals.is_relist_due and not signals.ended.is_set():
                signals.is_relist_due = False
                await self._keep(await link.manifest(self.config, {}))
        raise ToolError("the connection was closed")

    def _lost(self, error: Exception, *, was_ready: bool) -> None:
        first = _first(error)
        self.why = reason_of(error)
        self._wants_person = isinstance(first, NeedsSignIn)
        self.state = "sign-in" if self._wants_person else "down"
        log.info("MCP server %r: %s", self.config.name, self.why)
        self._link = None
        if was_ready:
            if self._waiting:
                self._wake.set()  # they came for the next one
        else:
            waiting, self._waiting = self._waiting, []
            for outcome in waiting:
                if not outcome.done():
                    outcome.set_exception(ToolError(self._not_connected(self.why)))
        self._on_change(self)

    def _not_connected(self, why: str) -> str:
        again = "" if self.config.trouble or self.state == "sign-in" else "; it is tried again, and its tools stay"
        return f"MCP server {self.config.name!r} is not connected: {why}{again}"

    # -- a call ------------------------------------------------------------------------------------------------------

    async def _utility(self, link: ServerLink, asked: McpCall) -> Content:
        session, args = link.session, asked.args
        match asked.tool:
            case "list_resources":
                found = await session.list_resources()
                return tool_result(
                    resources=[_told(one, "uri", "name", "description", "mimeType") for one in found.resources]
                )
            case "read_resource":
                contents = (await session.read_resource(str(args["uri"]))).contents
                texts = [await self._parts.in_thread(resource_text, one, self._media) for one in contents]
                return tool_result(result="\n".join(texts))
            case "list_prompts":
                prompts = (await session.list_prompts()).prompts
                return tool_result(prompts=[_told(one, "name", "description", "arguments") for one in prompts])
            case _:
                wanted = args.get("arguments") or {}
                filled = (
                    {str(name): str(value) for name, value in wanted.items()} if isinstance(wanted, Mapping) else {}
                )
                prompt = await session.get_prompt(str(args["name"]), filled or None)
                messages = [{"role": one.role, "content": _plain_text(one.content)} for one in prompt.messages]
                more = {"description": prompt.description} if prompt.description else {}
                return tool_result(messages=messages, **more)

    def _tell_change(self, asked: McpCall, ctx: ToolContext) -> None:
        """Say, before the tool is used, that it says something else about itself than it did; once."""
        record = None if asked.utility else self.record(asked.tool)
        if self.manifest is None or record is None or asked.tool in self._as_pinned:
            return
        if not self.manifest.is_changed(record):
            self._as_pinned.add(asked.tool)
            return
        ctx.emit(
            StatusChanged(
                "warning",
                f"the MCP server {self.config.name!r} describes its tool {asked.tool!r} in other words than before; "
                f"see: hermes mcp show {self.config.name}",
            )
        )
        self.manifest = self.manifest.with_pins(asked.tool)
        try:
            self._shelf.write(self.manifest)
        except UserError as error:
            log.warning("a pin of the MCP server %r could not be stored: %s", self.config.name, error)


GONE = "the server ended during the call, so what was done is unknown; it is started again"


def _failure(link: ServerLink, error: Exception, *, may_repeat: bool) -> str | None:
    """What the model reads of a call that failed; None when the server did not take it and it may be made again."""
    is_over = isinstance(error, OSError) and not isinstance(error, TimeoutError)
    if isinstance(error, link.refusal):
        if link.news.lost_session and may_repeat:
            link.signals.end()
            return None
        is_over = link.is_closed_by(error)
    text = str(error) or "no answer"
    if is_over:
        link.signals.end()
        text = f"{text}; {GONE}"
    return call_failed(type(error).__name__, text)


class _Progress:
    """Tells how far a call is, ten times a second at most."""

    def __init__(self, name: str, ctx: ToolContext) -> None:
        self._name = name
        self._ctx = ctx
        self._told_at = -PROGRESS_EVERY_S

    async def __call__(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._told_at < PROGRESS_EVERY_S:
            return
        self._told_at = now
        text = (message or "")[:500]
        self._ctx.emit(CallProgress(self._ctx.call_id, self._name, progress, total, text))


async def _ping(link: ServerLink) -> None:
    """Ask whether the server is there; `ToolError` when it is not. One that knows no ping is there."""
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND

    try:
        async with asyncio.timeout(PING_S):
            await link.session.send_ping()
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:
            raise ToolError(f"it did not answer when it was asked whether it is there: {error}") from error
    except TimeoutError as error:
        raise ToolError(f"it did not answer within {PING_S:g} s when it was asked whether it is there") from error


def _told(one: Any, *names: str) -> dict[str, Any]:
    plain = one.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {name: plain[name] for name in names if name in plain}


def _plain_text(content: Any) -> str:
    return str(getattr(content, "text", None) or getattr(getattr(content, "resource", None), "text", None) or "")


def _first(error: BaseException) -> BaseException:
    """What a group of errors began with."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def reason_of(error: BaseException) -> str:
    """Why a server cannot be reached, in one sentence."""
    error = _first(error)
    text = str(error).strip()
    if isinstance(error, ToolError | TimeoutError) and text:
        return text[:500]
    if type(error).__name__ == "ConnectError":  # of the SDK's HTTP library, which is not imported for this
        return f"nobody answers at its address ({text})"[:500]
    return f"{type(error).__name__}: {text}"[:500] if text else type(error).__name__
