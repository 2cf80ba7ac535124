"""Checkpoints: a snapshot before a call that may change files, for sessions that take them."""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from hermes.config.sections import checkpoints
from hermes.runtime.parts import Joining, Part

if TYPE_CHECKING:
    from hermes.runtime.call_checkpoints import CallCheckpoints
    from hermes.runtime.context import CallContext


class CheckpointPart(Part):
    """Joins `call_checkpoints` to the calls of the agent."""

    limit_s = 300.0  # for a snapshot of a large project, which is taken before the call may run

    def __init__(self, calls: "CallCheckpoints") -> None:
        self.calls = calls

    @classmethod
    def join(cls, agent: Joining) -> "CheckpointPart | None":
        options = agent.options
        is_asked = "checkpoints_enabled" in options.given
        if not (options.tools.checkpoints_enabled if is_asked else agent.settings.of(checkpoints.Section).enabled):
            return None
        from hermes.runtime.call_checkpoints import call_checkpoints  # for sessions that take them

        return cls(call_checkpoints(options, agent.settings, agent.process))

    def around(self, call: "CallContext") -> AbstractAsyncContextManager[None]:
        return self.calls.around(call)


part = CheckpointPart
