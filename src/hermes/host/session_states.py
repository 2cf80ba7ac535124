"""What sessions are doing just now, wherever they run: working, waiting for an answer, asleep, and who holds them."""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import DecodeError, json

from hermes.host.wire.frames import encode_request
from hermes.host.wire.serve_folder import ServeFolder

if TYPE_CHECKING:
    from hermes.state import SessionDB

ANSWER_S = 2.0
LOOKED_BACK = 5_000  # events of all sessions, for a question that is open
WORDS = {"working": "working", "asking": "waits for an answer", "idle": "awake", "asleep": "asleep"}


def session_states(home: Path, db: "SessionDB", session_ids: Sequence[str]) -> dict[str, str]:
    """In words, those of these sessions that are more than rows. Blocking."""
    folder = ServeFolder(home)
    served = _of_server(folder) if folder.is_held else {}
    note = folder.note() if served else None
    where = f" (server, pid {note.pid})" if note is not None else ""
    found = {one: f"{WORDS.get(state, state)}{where}" for one, state in served.items() if one in session_ids}
    for session_id in session_ids:
        lease = db.queries.lease(session_id) if session_id not in found else None
        if lease is not None:
            what = WORDS["asking"] if _is_asking(db, session_id) else WORDS["working"]
            found[session_id] = f"{what} ({lease.holder})"
    return found


def _is_asking(db: "SessionDB", session_id: str) -> bool:
    """Whether the newest question of a session has no answer yet."""
    after, is_open = max(0, db.queries.newest_event() - LOOKED_BACK), False
    for row in db.queries.events(session_id, after, LOOKED_BACK):
        if row["kind"] == "question_asked":
            is_open = True
        elif row["kind"] in ("question_answered", "turn_finished"):
            is_open = False
    return is_open


def _of_server(folder: ServeFolder) -> dict[str, str]:
    """What the server says about its sessions; nothing when it does not answer."""
    try:
        with folder.connected() as made:
            made.settimeout(ANSWER_S)
            made.sendall(encode_request(1, "session.active_list", {}))
            return {str(one["id"]): str(one["state"]) for one in _answer(made)["sessions"]}
    except (OSError, KeyError, TypeError, DecodeError):
        return {}


def _answer(made: socket.socket) -> Any:
    with made.makefile("rb") as lines:
        for line in lines:
            found = json.decode(line)
            if found.get("id") == 1:
                return found["result"]
    return {}
