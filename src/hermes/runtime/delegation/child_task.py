"""The tasks of one call, as they were asked for; what cannot be is refused before anything starts."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from hermes.config.sections.delegation import Section
from hermes.errors import ToolError

NO_PROGRAM = "acp_args go with acp_command, which names the program of another agent"
OWN_TOOLS = "a child that is another program (acp_command) has tools of its own; leave 'toolsets' out for it"


class ChildTask(Struct, frozen=True, kw_only=True):
    """One task."""

    index: int
    count: int
    goal: str
    context: str = ""
    toolsets: tuple[str, ...] | None = None  # None is all that the parent has
    is_orchestrator: bool = False
    isolation: Literal["none", "worktree"] = "none"
    program: tuple[str, ...] = ()  # another agent that does it, in place of one of our own kind


def tasks_of(args: Mapping[str, Any], section: Section, depth: int) -> list[ChildTask]:
    """The tasks of a call by an agent at this depth; `ToolError` says what is wrong with them."""
    several = args.get("tasks")
    asked: list[Mapping[str, Any]] = list(several) if several else [args]
    if not several and not str(args.get("goal") or "").strip():
        raise ToolError("a task needs a 'goal': what to do, and what to report; or give several as 'tasks'")
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

    toolsets, program = said("toolsets"), _program(one if one.get("acp_command") else {**call, **one})
    if program and toolsets is not None:
        raise ToolError(OWN_TOOLS)
    return ChildTask(
        index=number,
        count=count,
        goal=str(one["goal"]).strip(),
        context=str(said("context") or "").strip(),
        toolsets=None if toolsets is None else tuple(toolsets),
        is_orchestrator=said("role") == "orchestrator" and not program,
        isolation=said("isolation") or section.isolation,
        program=program,
    )


def _program(said: Mapping[str, Any]) -> tuple[str, ...]:
    command, args = str(said.get("acp_command") or "").strip(), tuple(map(str, said.get("acp_args") or ()))
    if args and not command:
        raise ToolError(NO_PROGRAM)
    if any("\0" in word for word in (command, *args)):
        raise ToolError("acp_command and acp_args are words without a NUL character")
    return (command, *args) if command else ()
