"""Offer a session the tools of MCP servers as they are now: a break of the prefix that a person asked for."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from hermes.ops import SessionChanged, SessionRecord
from hermes.seams import Sink
from hermes.tools.registration.refreshed_tools import refreshed_tools
from hermes.types import PrefixBroken

if TYPE_CHECKING:
    from hermes.runtime.session.session import AgentSession
    from hermes.runtime.setup.assembly import Assembly


async def reload_servers(session: "AgentSession", sink: Sink) -> list[str]:
    """Connect the servers anew, and offer what they have; sentences about it."""
    made = await session.assembled()
    servers = made.services.memo.get("mcp")
    if servers is None:
        return ["no MCP server is configured; add one with: hermes mcp add"]
    told: list[str] = await servers.reload()
    is_changed = await refresh_tools(session, sink)
    return [*told, "the list of tools of this session has changed" if is_changed else "the list stays as it is"]


async def refreshed(made: "Assembly", record: SessionRecord) -> str:
    """The stored definitions of a session with the tools of MCP servers as they are now."""
    stored = record.tool_definitions or ""
    brought = await made.services.parts.tools(record)
    if not stored:
        return stored
    request = made.tools.asked(brought, is_new=False)
    if request.enabled is None:
        request = replace(request, enabled=made.options.tools.default_toolsets)
    definitions: str = await made.services.pool.run(refreshed_tools, request, stored)
    return definitions


async def refresh_tools(session: "AgentSession", sink: Sink) -> bool:
    """From the next request on, offer the tools of MCP servers as they are now; whether anything changed."""
    made = await session.assembled()
    made.services.parts.begin()
    made.services.parts.tell = sink.emit
    record = await made.store.load(session.session_id)
    if record is not None and record.continued_by:
        record = await session.follow_stored(record.continued_by)
    if record is None or not record.tool_definitions:
        return False  # a session that has not begun takes what there is when it does
    definitions = await refreshed(made, record)
    if definitions == record.tool_definitions:
        return False
    await made.store.take(record)
    await made.store.commit(SessionChanged(record.session_id, {"tool_definitions": definitions}))
    sink.emit(PrefixBroken("toolset_change"))
    return True
