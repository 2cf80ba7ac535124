"""Delegation: tasks for children. Joins every agent; its work begins with the first call."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.runtime.parts import Joining, Part

if TYPE_CHECKING:
    from hermes.ops import SessionRecord
    from hermes.runtime.session.history import RecoveredCall
    from hermes.seams import ToolContext

MEMO = "delegation"  # where the tool looks for who has the children
FAMILY = "family"  # where the children are, once there was one


class DelegationPart(Part):
    """Has the children of the agent."""

    limit_s = None  # what a crash left is read from the store, within the turn's own time

    def __init__(self, agent: Joining) -> None:
        self.agent = agent

    @classmethod
    def join(cls, agent: Joining) -> "DelegationPart":
        made = cls(agent)
        if agent.options.parent is not None:
            from hermes.runtime.delegation.child_side import ChildSide  # for children

            made = ChildSide(agent, agent.options.parent)
        agent.services.memo[MEMO] = made.delegate
        return made

    async def delegate(self, args: Mapping[str, Any], ctx: "ToolContext") -> str:
        """A call of delegate_task."""
        from hermes.runtime.context import CallContext
        from hermes.runtime.delegation.family import Family  # paid by the first call

        assert isinstance(ctx, CallContext)
        memo = self.agent.services.memo
        family: Family = memo.setdefault(FAMILY, memo.get(FAMILY) or Family(self.agent))
        return await family.delegate(args, ctx)

    async def recovered(self, record: "SessionRecord") -> "Mapping[str, RecoveredCall]":
        from hermes.runtime.delegation.recovered_children import recovered_calls  # after a crash

        return await recovered_calls(self.agent, record)


part = DelegationPart
