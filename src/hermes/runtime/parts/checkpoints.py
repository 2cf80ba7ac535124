"""Checkpoints: what files were before a call changed them, for sessions that keep it."""

import asyncio
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING

from hermes.config.sections import checkpoints
from hermes.runtime.parts import Joining, Part, TurnFacts

if TYPE_CHECKING:
    from hermes.runtime.call_checkpoints import CallCheckpoints
    from hermes.runtime.context import CallContext

CHANGING = frozenset({"terminal", "execute_code"})  # what may change files, beside the tools that edit them
SOON_S = 1.0  # who answers faster runs no commands


class CheckpointPart(Part):
    """Joins `call_checkpoints` to the calls of the agent. The first look at a project runs beside a model call."""

    limit_s = 300.0  # for a snapshot of a large project, which is taken before the call may run

    def __init__(self, agent: Joining) -> None:
        self._agent = agent
        self._soon: asyncio.TimerHandle | None = None
        self._has_looked = False

    @classmethod
    def join(cls, agent: Joining) -> "CheckpointPart | None":
        options = agent.options
        is_asked = "checkpoints_enabled" in options.given
        is_on = options.tools.checkpoints_enabled if is_asked else agent.settings.of(checkpoints.Section).enabled
        return cls(agent) if is_on else None

    @cached_property
    def calls(self) -> "CallCheckpoints":
        from hermes.runtime.call_checkpoints import call_checkpoints  # for the first call that may change something

        return call_checkpoints(self._agent)

    def context(self, turn: TurnFacts) -> None:
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(SOON_S, self._look)

    def turn_ended(self, turn: TurnFacts, answer: str | None) -> None:
        if self._soon is not None and not self._has_looked:
            self._soon.cancel()
            self._soon = None

    def _look(self) -> None:
        self._has_looked = True
        self.calls.begin_look()

    def around(self, call: "CallContext") -> AbstractAsyncContextManager[None] | None:
        may_change = call.asked.rules.edits or call.asked.name in CHANGING
        return self.calls.around(call) if may_change else None

    async def session_moved(self, old: str, new: str) -> None:
        await self._agent.process.pool.run(self.calls.steps.log.move, old, new)

    async def close(self, *ended: str) -> None:
        if self._soon is not None:
            self._soon.cancel()
        if "calls" in self.__dict__:
            await self.calls.close()


part = CheckpointPart
