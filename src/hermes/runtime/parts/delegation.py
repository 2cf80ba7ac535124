"""Delegation: tasks for children. Joins every agent; its work begins with the first call."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes.runtime.parts import Joining, Part

if TYPE_CHECKING:
    from hermes.ops import SessionRecord
    from hermes.runtime.context import CallContext
    from hermes.runtime.delegation.family import Family
    from hermes.runtime.delegation.parent_link import ParentLink
    from hermes.runtime.session.history import RecoveredCall
    from hermes.seams import PromptSource, ToolContext

MEMO = "delegation"  # where the tool looks for who has the children


class DelegationPart(Part):
    """Has the children of the agent."""

    limit_s = None  # what a crash left is read from the store, within the turn's own time

    def __init__(self, agent: Joining) -> None:
        self.agent = agent
        self._family: Family | None = None

    @classmethod
    def join(cls, agent: Joining) -> "DelegationPart":
        made = cls(agent) if agent.options.parent is None else ChildSide(agent, agent.options.parent)
        agent.services.memo[MEMO] = made.delegate
        return made

    @property
    def family(self) -> "Family":
        if self._family is None:
            from hermes.runtime.delegation.family import Family  # paid by the first call

            self._family = Family(self.agent)
        return self._family

    @property
    def has_children(self) -> bool:
        """Whether any child is at work now."""
        return self._family is not None and bool(self._family.running)

    async def delegate(self, args: Mapping[str, Any], ctx: "ToolContext") -> str:
        """A call of delegate_task."""
        from hermes.runtime.context import CallContext

        assert isinstance(ctx, CallContext)
        return await self.family.delegate(args, ctx)

    async def recovered(self, record: "SessionRecord") -> "Mapping[str, RecoveredCall]":
        if not any(one.call.name == "delegate_task" and one.is_started for one in record.open_calls):
            return {}
        from hermes.runtime.delegation.recovered_children import recovered_calls  # after a crash

        return await recovered_calls(self.agent, record)


class ChildSide(DelegationPart):
    """The same for a child, which has a task and siblings, too."""

    def __init__(self, agent: Joining, link: "ParentLink") -> None:
        super().__init__(agent)
        self._link = link

    def prompt(self) -> Sequence["PromptSource"]:
        from hermes.runtime.delegation.child_options import TaskSource

        return (TaskSource(self._link.task),)

    def refusal(self, call: "CallContext") -> Awaitable[str | None] | None:
        """Tell a child before it writes what another one has written."""
        if not call.asked.rules.edits:
            return None
        writes = call.turn.tools.effects(call.asked.name, call.asked.args, call).writes
        why = self._link.claims.refusal(self._link.name, writes)
        return None if why is None else _said(why)


async def _said(why: str) -> str:
    return why


part = DelegationPart
