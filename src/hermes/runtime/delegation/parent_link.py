"""What a child has of its parent: its place in the tree, its task, its share of the budget, and who is asked."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from hermes.runtime.outcome import Outcome
from hermes.scope import TurnScope

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.models.account import Account
    from hermes.ops import StoreOp
    from hermes.runtime.delegation.file_claims import FileClaims
    from hermes.runtime.guardrails import IterationBudget
    from hermes.runtime.session.session_servers import SessionServers
    from hermes.runtime.setup.process import ProcessParts
    from hermes.tools.approval.gate import Ask
    from hermes.tools.approval.question import Answer, ApprovalQuestion

TASK_HEAD = "# Your task"


class ParentLink(Struct, frozen=True, kw_only=True):
    """The tie between a child agent and the agent that made it. The child's kernel reads it, and nothing changes it."""

    path: tuple[str, ...]  # the names of those above it, the first child of the tree first, and its own
    goal: str
    task: str  # its block in the system prompt, at the very end: what comes before is the same for its siblings
    tools: frozenset[str]
    scope: TurnScope  # of the call that it works for
    account: "Account | None"  # what it may spend; None where nothing is limited
    budget: "IterationBudget | None"  # the model calls of the whole tree, where it shares them
    claims: "FileClaims"
    asks_as: str  # whose questions its own are
    says_yes: bool  # to whatever it would ask (`delegation.subagent_auto_approve`)
    settings: "Settings"
    process: "ProcessParts"
    at_end: Callable[[Outcome], "list[StoreOp]"]  # what its last commit tells beside its own
    servers: "SessionServers | None" = None  # of MCP, which it uses as they are: none is started for it

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def depth(self) -> int:
        """1 is a child of the agent that a person talks to."""
        return len(self.path)

    @property
    def asked_by(self) -> str:
        """How a person reads whose question it is."""
        return f"{self.name}: {' '.join(self.goal.split())[:80]}"

    def shared_chars(self, system: str) -> int:
        """How much of its system prompt its siblings have as well."""
        return max(0, system.rfind(f"\n\n{TASK_HEAD}"))

    def asking(self, ask: "Ask | None") -> "Ask | None":
        """`ask`, so that whoever is asked reads whose question it is."""
        if self.says_yes:
            return _yes
        if ask is None:
            return None

        async def named(question: "ApprovalQuestion", scope: TurnScope) -> "Answer":
            return await ask(replace(question, asked_by=self.asked_by), scope)

        return named


async def _yes(_question: "ApprovalQuestion", _scope: TurnScope) -> "Answer":
    return "once"
