"""delegate_task: hand work to children, which have conversations of their own, and get back what they found."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from hermes.seams import Effects, ToolContext
from hermes.tools.calling.arguments import schema_of
from hermes.tools.registry import registry, tool_error
from hermes.tools.traits import Traits

MEMO = "delegation"  # where the part that has the children is found
OFF = "there is nobody to delegate to here; do the task yourself"
Delegate: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Awaitable[str]]
Role: TypeAlias = Literal["leaf", "orchestrator"]
Isolation: TypeAlias = Literal["none", "worktree"]


class DelegatedTask(Struct, frozen=True):
    """One of several tasks."""

    goal: str
    context: str | UnsetType = UNSET
    toolsets: list[str] | UnsetType = UNSET
    role: Role | UnsetType = UNSET
    isolation: Isolation | UnsetType = UNSET
    acp_command: str | UnsetType = UNSET
    acp_args: list[str] | UnsetType = UNSET


class DelegateCall(Struct, frozen=True):
    """Hand a task, or several side by side as `tasks`, to children; you get back what each reports.

    For work that is independent or would fill your context. A child knows nothing of this conversation: put all it
    needs into goal and context. Check what it reports before you rely on it.
    """

    goal: Annotated[str | UnsetType, Meta(description="What to do and what to report.")] = UNSET
    context: Annotated[str | UnsetType, Meta(description="Paths, facts and limits the child needs.")] = UNSET
    toolsets: Annotated[list[str] | UnsetType, Meta(description="Of yours; default all.")] = UNSET
    tasks: list[DelegatedTask] | UnsetType = UNSET
    role: Annotated[Role | UnsetType, Meta(description="orchestrator: may delegate itself.")] = UNSET
    isolation: Annotated[Isolation | UnsetType, Meta(description="worktree: a git worktree of its own.")] = UNSET
    acp_command: Annotated[str | UnsetType, Meta(description="Program of another agent (ACP) to do it.")] = UNSET
    acp_args: list[str] | UnsetType = UNSET


async def delegate_task(args: Mapping[str, Any], *, ctx: ToolContext, **_: object) -> str:
    delegate: Delegate | None = ctx.memo.get(MEMO)
    return tool_error(OFF) if delegate is None else await delegate(args, ctx)


def _effects(_args: Mapping[str, Any], _ctx: ToolContext) -> Effects:
    return Effects()  # children are told of each other's files, so calls may run side by side


registry.register(
    name="delegate_task",
    toolset="delegation",
    schema=schema_of("delegate_task", DelegateCall),
    handler=delegate_task,
    is_async=True,
    emoji="🧑‍🤝‍🧑",
    traits=Traits(effects=_effects, agent_loop=True, timeout_s=None),
)
