"""Sessions: begin, resume, attach, list, and what can be done with one between its turns."""

import contextlib
import re
from typing import Any

from msgspec import Struct, structs, to_builtins

from hermes.errors import HermesError, SessionInUse, SessionNotFound, StoreError
from hermes.host.commands.title import named
from hermes.host.host_errors import SessionBusy
from hermes.host.live_session import LiveSession
from hermes.host.session_changes import folder_of
from hermes.host.session_select import find_session
from hermes.host.wire import frames
from hermes.host.wire.frames import WireError
from hermes.surfaces.serve import session_facts
from hermes.surfaces.serve.client import Watch
from hermes.surfaces.serve.method import Method, MethodCall, NoParams, OfSession
from hermes.surfaces.serve.wire_events import asked
from hermes.types import JsonObject

WHOLE_ID = re.compile(r"\d{8}_\d{6}_[0-9a-f]{6}")


class Create(Struct, frozen=True, kw_only=True):
    """A new session. Its model and effort, where they are named, are for this session alone."""

    cols: int = 80
    title: str = ""
    cwd: str = ""
    source: str = "tui"
    model: str = ""
    provider: str = ""
    reasoning_effort: str = ""
    close_on_disconnect: bool = False


class Resume(Struct, frozen=True, kw_only=True):
    """A stored session: its id, the beginning of it, or its title."""

    session_id: str = ""
    cols: int = 80
    close_on_disconnect: bool = False


class Attach(Struct, frozen=True, kw_only=True):
    """Watch a session by the host's own events, after a number; without one, from the turn that runs."""

    session_id: str = ""  # of the stored one, or its title; none is a new one
    after: int | None = None
    read_only: bool = False
    source: str = "cli"


class Found(Struct, frozen=True, kw_only=True):
    name: str = ""


class Compress(OfSession, frozen=True, kw_only=True):
    focus_topic: str = ""


class Titled(OfSession, frozen=True, kw_only=True):
    title: str | None = None


class Branch(OfSession, frozen=True, kw_only=True):
    name: str = ""


class Moved(OfSession, frozen=True, kw_only=True):
    cwd: str = ""


class Listed(Struct, frozen=True, kw_only=True):
    limit: int = 50


async def create(call: MethodCall, params: Create) -> JsonObject:
    """It answers at once; the agent is built for the first message."""
    cwd = await _folder(call, params.cwd)
    start = call.server.start_for(call.client, cwd, params.source)
    flags = {
        "model.default": params.model,
        "model.provider": params.provider,
        "agent.reasoning_effort": params.reasoning_effort,
    }
    given = {name: value for name, value in flags.items() if value}
    if given:
        start = structs.replace(start, settings=start.settings.with_flags(given))
    live = call.server.host.session(start)
    await live.open()
    live_id = await _watched(call, live, closes=params.close_on_disconnect)
    if params.title.strip():
        await live.in_thread(live.db.ensure_session, live.session_id, params.source)
        await named(live, live.session_id, params.title)
        await live.look_up()
    return {
        "session_id": live_id,
        "stored_session_id": live.session_id,
        "message_count": 0,
        "messages": [],
        "info": session_facts.info(live, is_built=False),
    }


async def resume(call: MethodCall, params: Resume) -> JsonObject:
    live = await opened(call, params.session_id)
    live_id = await _watched(call, live, closes=params.close_on_disconnect)
    for question in live.questions.open_ones:
        kind, payload = asked(question)
        await call.client.tell(kind, live_id, payload)
    messages = await live.in_thread(session_facts.display_rows, live.db, live.session_id)
    return {
        "session_id": live_id,
        "resumed": live.session_id,
        "message_count": len(messages),
        "messages": messages,
        "info": session_facts.info(live),
    }


async def attach(call: MethodCall, params: Attach) -> JsonObject:
    """The session as it stands, and from then on every event of it, with no gap."""
    if params.session_id:
        # Whoever comes back may have said its first words to a server that was killed before they became a session.
        live = await opened(call, params.session_id, params.source, is_back=params.after is not None)
    else:
        live = call.server.host.session(call.server.start_for(call.client, source=params.source))
        await live.open()
    after = params.after
    if after is None:
        look = session_facts.running_turn if live.is_busy else _newest
        after = await live.in_thread(look, live.db, live.session_id)
    live_id = await _watched(call, live, after=after, is_raw=True, is_read_only=params.read_only)
    return {
        **session_facts.state(live),
        "session_id": live_id,
        "after": after,
        "questions": [to_builtins(one) for one in live.questions.open_ones],
    }


async def opened(call: MethodCall, name: str, source: str = "", *, is_back: bool = False) -> LiveSession:
    """The live session of a stored one. What it was told before a server ended is worked on now.

    `is_back`: the client knows it by its id, and it need not have any rows yet.
    """
    server = call.server
    try:
        session_id = await _stored_id(call, name)
    except WireError as error:
        if not is_back or error.code != frames.NO_STORED_SESSION or WHOLE_ID.fullmatch(name) is None:
            raise
        session_id = name
    start = server.start_for(call.client)
    row = await server.in_thread(server.host.db(start.settings).get_session, session_id) or {}
    if (known := server.host.sessions.get(session_id)) is not None:
        await known.until_open()
        return known
    folder = str(row.get("cwd") or start.folder)
    settings = structs.replace(start.asked, source=source or str(row.get("source") or start.asked.source))
    live = server.host.session(structs.replace(start, folder=folder, launched_in=folder, asked=settings), session_id)
    await live.open()
    live.release()
    return live


async def find(call: MethodCall, params: Found) -> JsonObject:
    """The stored session that a name means."""
    return {"session_id": await _stored_id(call, params.name)}


async def _stored_id(call: MethodCall, name: str) -> str:
    if not name:
        raise WireError(frames.NO_SESSION_NAMED, "session_id is missing")
    server = call.server
    known = server.host.current_id(name)
    if known in server.host.sessions or known in server.host.asleep:
        return known
    db = server.host.db(server.settings)

    def look() -> str:
        return db.resolve_resume_session_id(find_session(db, name))

    try:
        return str(await server.in_thread(look))
    except SessionNotFound as error:
        raise WireError(frames.NO_STORED_SESSION, str(error)) from error
    except StoreError as error:
        raise WireError(frames.FAILED, f"the session cannot be read: {error}") from error


async def close(call: MethodCall, params: OfSession) -> JsonObject:
    """Watch it no longer; with nobody else there, its turn is stopped and it is let go."""
    live = await call.live(params.session_id)
    call.client.unwatch(params.session_id)
    if not call.server.watchers(live):
        await live.close("client_closed")
        call.server.book.forget(params.session_id)
    return {"closed": True}


async def detach(call: MethodCall, params: OfSession) -> JsonObject:
    """Watch it no longer; whatever runs goes on."""
    await call.live(params.session_id, to_change=False)
    call.client.unwatch(params.session_id)
    return {"detached": True}


async def delete(call: MethodCall, params: OfSession) -> JsonObject:
    server = call.server
    db = server.host.db(server.settings)
    found = await _stored_id(call, params.session_id)
    live_id = server.book.id_of_stored(found)
    if found in server.host.sessions and any(live_id in client.watches for client in server.clients):
        raise WireError(frames.SESSION_OPEN, "this session is open; close it first")
    if (awake := server.host.sessions.get(found)) is not None:
        await awake.close()
    server.host.asleep.pop(found, None)
    server.book.forget(live_id)
    await server.in_thread(db.delete_session, found)
    return {"deleted": found}


async def listed(call: MethodCall, params: Listed) -> JsonObject:
    server = call.server
    db = server.host.db(server.settings)
    rows = await server.in_thread(lambda: db.list_sessions_rich(limit=params.limit, compact_rows=True))
    names = ("id", "title", "preview", "started_at", "message_count", "source", "last_active", "cwd")
    return {"sessions": [{name: row.get(name) for name in names} | _state(call, row["id"]) for row in rows]}


async def most_recent(call: MethodCall, _params: NoParams) -> JsonObject:
    server = call.server
    db = server.host.db(server.settings)
    rows = await server.in_thread(lambda: db.list_sessions_rich(limit=1, order_by_last_active=True))
    if not rows:
        return {"session_id": None}
    row = rows[0]
    names = ("title", "started_at", "source")
    return {"session_id": row["id"], **{name: row.get(name) for name in names}}


async def active_list(call: MethodCall, _params: NoParams) -> JsonObject:
    """Those that are known to this server."""
    server = call.server
    ids = [*server.host.asleep, *server.host.sessions]
    return {"sessions": [{"id": one, "session_id": server.book.id_of_stored(one), **_state(call, one)} for one in ids]}


async def history(call: MethodCall, params: OfSession) -> JsonObject:
    live = await call.live(params.session_id, to_change=False)
    rows = await live.in_thread(session_facts.display_rows, live.db, live.session_id)
    return {"count": len(rows), "messages": rows}


async def usage(call: MethodCall, params: OfSession) -> JsonObject:
    live = await call.live(params.session_id, to_change=False)
    told: JsonObject = await live.in_thread(session_facts.usage, live)
    return told


async def status(call: MethodCall, params: OfSession) -> JsonObject:
    live = await call.live(params.session_id, to_change=False)
    told = session_facts.info(live)
    lines = [
        f"session {live.session_id}{': ' + told['title'] if told['title'] else ''}",
        f"model {told['model'] or 'none'}, folder {live.cwd}",
        "working" if live.is_busy else "idle",
        f"{len(live.queue.open_ones)} messages wait, {len(live.questions.open_ones)} questions are open",
    ]
    return {"output": "\n".join(lines), **_state(call, live.session_id)}


async def titled(call: MethodCall, params: Titled) -> JsonObject:
    live = await call.live(params.session_id, to_change=params.title is not None)
    if params.title is None:
        return {"title": live.figures.title, "session_key": live.session_id}
    if not params.title.strip():
        raise WireError(frames.NO_TITLE, "a title has words")
    await live.in_thread(live.db.ensure_session, live.session_id, live.asked.source)
    await named(live, live.session_id, params.title)
    await live.look_up()
    call.server.refresh(live)
    return {"title": live.figures.title, "session_key": live.session_id, "pending": False}


async def undo(call: MethodCall, params: OfSession) -> JsonObject:
    live = await call.live(params.session_id)
    text, removed = await live.undo()
    return {"removed": removed, "text": text}


async def branch(call: MethodCall, params: Branch) -> JsonObject:
    live = await call.live(params.session_id)
    if not await live.exists():
        raise WireError(frames.NOTHING_TO_BRANCH, "nothing was said in this session yet")
    new = await live.branch(params.name)
    copy = call.server.host.session(live.start, new, is_copy=True)
    await copy.open()
    return {"session_id": await _watched(call, copy), "title": copy.figures.title, "parent": live.session_id}


async def compress(call: MethodCall, params: Compress) -> JsonObject:
    live = await call.live(params.session_id)
    focus = f", {params.focus_topic} above all" if params.focus_topic else ""
    count = await live.in_thread(live.db.message_count, live.session_id)
    if not live.is_busy:
        text = f"summing up {count} messages of about {live.figures.in_context} tokens{focus}"
        await call.client.tell("status.update", params.session_id, {"kind": "compressing", "text": text})
    try:
        done = await live.compress_now(params.focus_topic)
    except (SessionBusy, SessionInUse):
        raise
    except HermesError as error:
        raise WireError(frames.COMPRESSION_FAILED, str(error)) from error
    finally:
        with contextlib.suppress(OSError):
            await call.client.tell("status.update", params.session_id, {"kind": "ready", "text": "ready"})
    messages = await live.in_thread(session_facts.display_rows, live.db, live.session_id)
    told = {
        "removed": 0,
        "before_messages": count,
        "after_messages": count,
        "before_tokens": 0,
        "after_tokens": 0,
        "summary": "",
        **done,
    }
    used = await live.in_thread(session_facts.usage, live)
    return {**told, "usage": used, "info": session_facts.info(live), "messages": messages}


async def cwd_set(call: MethodCall, params: Moved) -> JsonObject:
    live = await call.live(params.session_id)
    await live.reconfigure(cwd=params.cwd)
    return session_facts.info(live)


async def interrupt(call: MethodCall, params: OfSession) -> JsonObject:
    """Stop the turn that runs; what is asked in it is a no."""
    live = await call.live(params.session_id)
    return {"status": "interrupted" if live.interrupt() else "idle"}


async def save(call: MethodCall, params: OfSession) -> JsonObject:
    from hermes.host.command import CommandCall  # rare
    from hermes.host.commands.save import run

    live = await call.live(params.session_id, to_change=False)
    return (await run(CommandCall(live, ""))).data


async def _watched(
    call: MethodCall,
    live: LiveSession,
    *,
    after: int | None = None,
    is_raw: bool = False,
    is_read_only: bool = False,
    closes: bool = False,
) -> str:
    live_id = call.server.book.id_of(live)
    if after is None:
        after = await live.in_thread(_newest, live.db, live.session_id)
    call.client.watch(live_id, Watch(live, live.events(after), is_raw, is_read_only, closes))
    return live_id


async def _folder(call: MethodCall, cwd: str) -> str:
    if not cwd:
        return ""
    found: str = await call.server.in_thread(folder_of, call.client.cwd or call.server.cwd, cwd)
    return found


def _newest(db: Any, _session_id: str) -> int:
    return int(db.queries.newest_event())


def _state(call: MethodCall, session_id: str) -> JsonObject:
    host = call.server.host
    awake = host.sessions.get(session_id)
    if awake is None:
        return {"state": "asleep" if session_id in host.asleep else "stored"}
    if awake.questions.open_ones:
        return {"state": "asking"}
    return {"state": "idle" if awake.is_at_ease else "working"}


METHODS: dict[str, Method] = {
    "session.create": Method(Create, create, is_ordered=True),
    "session.resume": Method(Resume, resume, is_ordered=True),
    "session.attach": Method(Attach, attach, is_ordered=True),
    "session.find": Method(Found, find),
    "session.detach": Method(OfSession, detach),
    "session.close": Method(OfSession, close),
    "session.delete": Method(OfSession, delete),
    "session.list": Method(Listed, listed),
    "session.most_recent": Method(NoParams, most_recent),
    "session.active_list": Method(NoParams, active_list),
    "session.history": Method(OfSession, history),
    "session.usage": Method(OfSession, usage),
    "session.status": Method(OfSession, status),
    "session.title": Method(Titled, titled),
    "session.undo": Method(OfSession, undo),
    "session.branch": Method(Branch, branch),
    "session.compress": Method(Compress, compress),
    "session.cwd.set": Method(Moved, cwd_set),
    "session.interrupt": Method(OfSession, interrupt),
    "session.save": Method(OfSession, save),
}
