"""Live ids: eight digits for each session that a client has opened here. They end with the server."""

import secrets
from typing import TYPE_CHECKING

from hermes.host.wire.frames import NO_LIVE_SESSION, WireError

if TYPE_CHECKING:
    from hermes.host.host import Host
    from hermes.host.live_session import LiveSession


class SessionBook:
    """Which live id is which stored session. A session has one for as long as the server lives, asleep or not."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._stored: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def id_of(self, live: "LiveSession") -> str:
        """The live id of a session, made when it is first asked for."""
        return self.id_of_stored(live.session_id) or self._added(self._host.first_id(live.session_id))

    def id_of_stored(self, session_id: str) -> str:
        """The live id of a stored session; empty when nobody has opened it here."""
        return self._ids.get(self._host.first_id(session_id), "")

    async def live(self, live_id: str) -> "LiveSession":
        """The session of a live id, awake; 4001 when there is none."""
        stored = self._stored.get(live_id)
        if stored is None:
            raise WireError(NO_LIVE_SESSION, f"there is no live session {live_id!r}; open it with session.resume")
        return await self._host.wake(stored)

    def forget(self, live_id: str) -> None:
        self._ids.pop(self._stored.pop(live_id, ""), None)

    def _added(self, session_id: str) -> str:
        made = secrets.token_hex(4)
        while made in self._stored:
            made = secrets.token_hex(4)
        self._stored[made], self._ids[session_id] = session_id, made
        return made
