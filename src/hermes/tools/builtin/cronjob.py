"""cronjob: jobs that run by themselves, made and looked after by the model; a person says yes to each."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from hermes.errors import UserError
from hermes.seams import Effects, ToolContext
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import Traits

MEMO = "cronjob"  # where the agent's part puts the function that does it
OFF = "jobs can only be scheduled where somebody can be asked, and not from inside a scheduled job"
Names = list[str] | UnsetType


class JobModel(Struct, frozen=True):
    """Which model."""

    model: str
    provider: str | UnsetType = UNSET


class Cronjob(Struct, frozen=True):
    """Schedule jobs that run later without anybody: reminders, reports, checks. The user is asked first.

    A job knows nothing of this talk: its prompt must say all."""

    action: Literal["create", "list", "update", "pause", "resume", "remove", "run"]
    job_id: Annotated[str | UnsetType, Meta(description="Id or name; not for create and list.")] = UNSET
    prompt: str | UnsetType = UNSET
    schedule: Annotated[
        str | UnsetType, Meta(description='"30m" (once), "every 2h", "0 9 * * mon-fri" or "2026-03-05T14:00".')
    ] = UNSET
    name: str | UnsetType = UNSET
    repeat: Annotated[int | UnsetType, Meta(description="Runs; 0: forever.")] = UNSET
    deliver: Annotated[str | UnsetType, Meta(description="local, origin (this talk) or command:NAME.")] = UNSET
    skills: Names = UNSET
    model: JobModel | UnsetType = UNSET
    script: Annotated[str | UnsetType, Meta(description="File of HERMES_HOME/scripts; its output is read first.")] = (
        UNSET
    )
    no_agent: Annotated[bool, Meta(description="Only the script; its output is delivered.")] = False
    context_from: Annotated[Names, Meta(description="Jobs whose last answers it reads.")] = UNSET
    enabled_toolsets: Names = UNSET
    workdir: str | UnsetType = UNSET


Manage = Callable[[Cronjob, Mapping[str, object], ToolContext], Awaitable[dict[str, Any]]]


async def cronjob(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    manage: Manage | None = ctx.memo.get(MEMO)
    if manage is None:
        return tool_result(success=False, error=OFF)
    try:
        return tool_result(**await manage(parse_args(args, Cronjob), args, ctx))
    except UserError as error:
        matches = {"matches": found} if (found := getattr(error, "matches", None)) else {}
        return tool_result(success=False, error=str(error), **matches)


def _effects(_args: Mapping[str, Any], _ctx: ToolContext) -> Effects:
    return Effects(writes=frozenset({"cronjob:"}))


registry.register(
    name="cronjob",
    toolset="cronjob",
    schema=schema_of("cronjob", Cronjob),
    handler=cronjob,
    is_async=True,
    emoji="⏰",
    traits=Traits(effects=_effects, agent_loop=True, interactive=True, timeout_s=None),
)
