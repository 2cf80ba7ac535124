"""The tasks of one call, as they were asked for; what cannot be is refused before anything starts."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from hermes.config.sections.delegation import Section
from hermes.errors import ToolError

NO_ACP = (
    "acp_command and acp_args ask for another program as the child, which this version cannot run; leave them out, and "
    "a child of your own kind does the task"
)


class ChildTask(Struct, frozen=True, kw_only=True):
    """One task."""

    index: int
    count: int
    goal: str
    context: str = ""
    toolsets: tuple[str, ...] | None = None  # None is all that the parent has
    is_orchestrator: bool = False
    isolation: Literal["none", "worktree"] = "none"


def tasks_of(args: Mapping[str, Any], section: Section, depth: int) -> list[ChildTask]:
    """The tasks of a call by an agent at this depth; `ToolError` says what is wrong with them."""
    several = args.get("tasks")
    asked: list[Mapping[str, Any]] = list(several) if several else [args]
    if not several and not str(args.get("goal") or "").strip():
        raise ToolError("a task needs a 'goal': what to do, and what to report; or give several as 'tasks'")
    if any(one.get("acp_command") or one.get("acp_args") for one in (args, *asked)):
        raise ToolError(NO_ACP)
    for number, one in enumerate(asked):
        if not str(one.get("goal") or "").strip():
            raise ToolError(f"Task {number} is missing a 'goal'.")
    if len(asked) > (most := section.max_concurrent_children):
        raise ToolError(
            f"these are {len(asked)} tasks, and one call may have {most} (delegation.max_concurrent_children); nothing "
            "was started. Split them over several calls"
        )
    if depth >= section.max_spawn_depth:
        raise ToolError(
            f"children are {section.max_spawn_depth} levels deep at most (delegation.max_spawn_depth), and this is "
            f"level {depth}; do the task yourself"
        )
    return [_task(number, len(asked), one, args, section) for number, one in enumerate(asked)]


def _task(number: int, count: int, one: Mapping[str, Any], call: Mapping[str, Any], section: Section) -> ChildTask:
    """A task; what it leaves open is as the call says."""

    def said(name: str) -> Any:
        return one.get(name) if one.get(name) is not None else call.get(name)

    toolsets = said("toolsets")
    return ChildTask(
        index=number,
        count=count,
        goal=str(one["goal"]).strip(),
        context=str(said("context") or "").strip(),
        toolsets=None if toolsets is None else tuple(toolsets),
        is_orchestrator=said("role") == "orchestrator",
        isolation=said("isolation") or section.isolation,
    )
