"""A session's lease, as the agent holds it: taken with a turn's first commit, given back with its last.

A commit shows that its agent still owns the session (see `hermes.state.sqlite.leases`). Between commits that are far
apart, a long call or a slow model, a timer keeps the lease from running out.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

from hermes.errors import LeaseLost, StoreError
from hermes.ops import LEASE_S, LeaseHeld, LeaseReleased, LeaseTaken

RENEW_S = LEASE_S / 3
_log = logging.getLogger(__name__)


class SessionLease:
    """Whether the agent owns its session now. `on_lost` is called when a commit finds that it no longer does."""

    def __init__(self, renew: Callable[[LeaseHeld], Coroutine[Any, Any, object]], every_s: float = RENEW_S) -> None:
        self.fence = 0  # 0: not held
        self.lost: LeaseLost | None = None  # how the last one ended, if it was taken away; then nothing is written
        self.on_lost: Callable[[], None] = lambda: None
        self._renew = renew
        self._every_s = every_s
        self._session_id = ""
        self._timer: asyncio.TimerHandle | None = None
        self._renewal: asyncio.Task[None] | None = None

    def taking(self, session_id: str, message_count: int) -> LeaseTaken:
        """What takes it; one that could not be given back is replaced."""
        self.lost = None
        fence = secrets.randbits(52) | 1  # a number that a look through the file does not take for damage
        return LeaseTaken(session_id=session_id, fence=fence, message_count=message_count, replaces=self.fence)

    def held(self) -> LeaseHeld:
        return LeaseHeld(self._session_id, self.fence)

    def releasing(self) -> list[LeaseReleased]:
        """What gives it back; nothing when it is not held."""
        return [LeaseReleased(self._session_id, self.fence)] if self.fence else []

    def taken(self, op: LeaseTaken) -> None:
        """It was stored that the session is ours."""
        self.fence, self._session_id, self.lost = op.fence, op.session_id, None
        self.rest()
        self._timer = asyncio.get_running_loop().call_later(self._every_s, self._begin_renewal)

    def released(self) -> None:
        """It was stored that the session is free."""
        self.fence = 0
        self.rest()

    def moved(self, session_id: str) -> None:
        """The session goes on under another id, and the lease with it."""
        self._session_id = session_id

    def lose(self, fence: int, error: LeaseLost) -> None:
        """The session is somebody else's; unless the lease that is missing was given back meanwhile."""
        if fence == self.fence:
            self.fence, self.lost = 0, error
            self.rest()
            self.on_lost()

    def rest(self) -> None:
        """Renew it no more: no turn is running. If it could not be given back, it runs out by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin_renewal(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._every_s, self._begin_renewal)
        if self._renewal is None or self._renewal.done():
            self._renewal = loop.create_task(self._renewed(self.fence), name=f"lease of {self._session_id}")

    async def _renewed(self, fence: int) -> None:
        try:
            await self._renew(LeaseHeld(self._session_id, fence, renews=True))
        except LeaseLost as error:
            self.lose(fence, error)
        except StoreError as error:
            _log.warning(
                "the lease of session %s could not be renewed, which is tried again: %s", self._session_id, error
            )
