"""Grants: what a person allowed for a session stays allowed when it goes on under another id."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.runtime.parts import Joining, Part


class SessionGrants(Part):
    """Carries them along. The gate is who reads them, and denies what it cannot read them for."""

    def __init__(self, home: Path, in_thread: Callable[..., Awaitable[Any]]) -> None:
        self._home = home
        self._in_thread = in_thread

    @classmethod
    def join(cls, agent: Joining) -> "SessionGrants":
        return cls(agent.settings.home, agent.services.pool.run)

    @asynccontextmanager
    async def around_move(self, old: str, new: str) -> AsyncIterator[None]:
        """Once, by who moves the session: to carry them again would bring back what was used up or revoked since."""
        from hermes.tools.approval.grants import HomeGrants, approvals_file  # for sessions that move

        yield
        if approvals_file(self._home).exists():
            await self._in_thread(HomeGrants(self._home).carry, old, new)


part = SessionGrants
