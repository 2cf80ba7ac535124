"""What clients are told of a session beside its events: model, tools, usage, and what was said, in rows."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import DecodeError

from hermes import __version__
from hermes.config.sections.agent import Section as Agent
from hermes.config.sections.approvals import Section as Approvals
from hermes.config.sections.top import Section as Top
from hermes.dicts import call_from_dict
from hermes.errors import HermesError
from hermes.host.session_text import said
from hermes.host.tool_report import report
from hermes.models.providers.resolve import ModelQuery, resolve
from hermes.surfaces.serve.wire_events import call_context
from hermes.typed import from_json
from hermes.types import JsonObject

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.host.live_session import LiveSession
    from hermes.host.tool_report import ToolReport
    from hermes.state import SessionDB

MOST_BACK = 50_000  # numbers of events that are looked back for the turn that runs


def info(live: "LiveSession", *, is_built: bool = True) -> JsonObject:
    """The payload of `session.info`."""
    settings, figures = live.settings, live.figures
    try:
        endpoint = resolve(settings, ModelQuery()).endpoint
        model, provider = endpoint.model, endpoint.provider
    except HermesError:
        model, provider = "", ""
    return {
        "model": figures.model or model,
        "provider": provider,
        "cwd": live.cwd,
        "title": figures.title,
        "session_key": live.session_id,
        "approval_mode": "off" if live.asked.yolo else settings.of(Approvals).mode,
        "yolo": live.asked.yolo,
        "reasoning_effort": settings.of(Agent).reasoning_effort,
        "busy_input_mode": live.busy_mode,
        "running": live.is_busy,
        "lazy": not is_built,
        "version": __version__,
    }


def tools(settings: "Settings", cwd: str, source: str) -> "ToolReport":
    """The tools that a session has there. Blocking: it reads tool files."""
    platform = source if source in settings.of(Top).platform_toolsets else None
    return report(settings.home, settings.mapping, Path(cwd), platform)


def tools_by_set(settings: "Settings", cwd: str, source: str) -> dict[str, list[str]]:
    """The names of those that are offered, by toolset. Blocking."""
    found: dict[str, list[str]] = {}
    for tool in tools(settings, cwd, source).tools:
        if tool.state == "offered":
            found.setdefault(tool.toolset, []).append(tool.name)
    return found


def usage(live: "LiveSession") -> JsonObject:
    """Tokens and the window. Blocking: it reads the session's row."""
    row: dict[str, Any] = live.db.get_session(live.session_id) or {}
    figures = live.figures
    cached = int(row.get("cache_read_tokens") or 0) + int(row.get("cache_write_tokens") or 0)
    read, written = int(row.get("input_tokens") or 0), int(row.get("output_tokens") or 0)
    used, window = figures.in_context, figures.window or 0
    return {
        "model": figures.model,
        "input": read,
        "output": written,
        "reasoning": int(row.get("reasoning_tokens") or 0),
        "prompt": read + cached,
        "completion": written,
        "total": read + cached + written,
        "calls": int(row.get("api_call_count") or 0),
        "context_used": used,
        "context_max": window,
        "context_percent": round(100 * used / window) if window else 0,
        "compressions": max(0, len(live.db.get_compression_lineage(live.session_id)) - 1) if row else 0,
        "cost_usd": row.get("estimated_cost_usd"),
    }


def display_rows(db: "SessionDB", session_id: str) -> list[JsonObject]:
    """What was said, ancestors of a compressed session included. Blocking."""
    if db.get_session(session_id) is None:
        return []
    rows: list[JsonObject] = []
    calls: dict[str, str] = {}
    for message in db.get_resume_conversations(session_id)[1]:
        text = said(message).strip()
        match message.get("role"):
            case "user" if text:
                rows.append({"role": "user", "text": text})
            case "assistant":
                if text:
                    rows.append({"role": "assistant", "text": text})
                for packed in message.get("tool_calls") or ():
                    call = call_from_dict(packed)
                    calls[call.id] = call_context(call.name, _arguments(call.arguments))
            case "tool":
                name = str(message.get("tool_name") or message.get("name") or "tool")
                rows.append(
                    {"role": "tool", "name": name, "context": calls.get(str(message.get("tool_call_id")), name)}
                )
    return rows


def state(live: "LiveSession") -> JsonObject:
    """What a screen draws of a session beside its events."""
    return {
        "stored_session_id": live.session_id,
        "figures": asdict(live.figures),
        "cwd": live.cwd,
        "busy_mode": live.busy_mode,
        "work_mode": live.work_mode,
        "is_busy": live.is_busy,
        "is_held": live.is_held,
        "waiting": [{"id": one.id, "text": one.text} for one in live.queue.open_ones],
    }


def running_turn(db: "SessionDB", session_id: str) -> int:
    """The number after which the turn that runs, or ran last, is told. Blocking."""
    newest = db.queries.newest_event()
    after = found = max(0, newest - MOST_BACK)
    while rows := db.queries.events(session_id, after, 500):
        for row in rows:
            if row["kind"] == "message_taken":
                found = row["number"] - 1
        after = rows[-1]["number"]
    return found


def _arguments(text: str) -> JsonObject:
    try:
        return from_json(text, dict[str, Any])
    except (DecodeError, UnicodeDecodeError, RecursionError):  # as the model wrote it
        return {}
