"""The schedule, for the model: the tool `cronjob`, where somebody can say yes to what it makes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.runtime.parts import Joining, Part

if TYPE_CHECKING:
    from hermes.runtime.job_desk import JobDesk
    from hermes.seams import ToolContext
    from hermes.tools.builtin.cronjob import Cronjob

MEMO = "cronjob"  # where the tool looks for who does it
UNATTENDED = ("cron", "batch", "subagent")


class CronjobPart(Part):
    """Joins agents that people talk with. Imports what it needs when a job is made or asked for."""

    def __init__(self, agent: Joining) -> None:
        self._agent = agent
        self._desk: JobDesk | None = None

    @classmethod
    def join(cls, agent: Joining) -> "CronjobPart | None":
        if agent.options.session.platform in UNATTENDED:
            agent.services.memo.pop(MEMO, None)
            return None
        part = cls(agent)
        agent.services.memo[MEMO] = part.manage
        return part

    async def manage(self, asked: "Cronjob", args: Mapping[str, object], ctx: "ToolContext") -> dict[str, Any]:
        """A call of the tool."""
        if self._desk is None:
            from hermes.runtime.job_desk import JobDesk  # paid by the first call

            self._desk = JobDesk(self._agent)
        return await self._desk.call(asked, args, ctx)


part = CronjobPart
