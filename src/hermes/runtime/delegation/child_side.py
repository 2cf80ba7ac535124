"""What a child brings along: its task in the prompt, and a word before it writes over what a sibling wrote."""

from collections.abc import Awaitable, Sequence

from hermes.runtime.context import CallContext
from hermes.runtime.delegation.child_options import TaskSource
from hermes.runtime.delegation.parent_link import ParentLink
from hermes.runtime.parts import Joining
from hermes.runtime.parts.delegation import DelegationPart
from hermes.seams import PromptSource


class ChildSide(DelegationPart):
    """Delegation as a child has it."""

    def __init__(self, agent: Joining, link: ParentLink) -> None:
        super().__init__(agent)
        self._link = link

    def prompt(self) -> Sequence[PromptSource]:
        return (TaskSource(self._link.task),)

    def refusal(self, call: CallContext) -> Awaitable[str | None] | None:
        """Tell a child before it writes what another one has written."""
        if not call.asked.rules.edits:
            return None
        writes = call.turn.tools.effects(call.asked.name, call.asked.args, call).writes
        why = self._link.claims.refusal(self._link.name, writes)
        return None if why is None else _said(why)


async def _said(why: str) -> str:
    return why
