"""skills_list, skill_view, skill_manage: find, load and keep ways of working. Their keeper is in the session's memo."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol

from msgspec import UNSET, Meta, Struct, UnsetType

from hermes.errors import ToolError
from hermes.seams import Effects, ToolContext
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import Traits
from hermes.types import JsonObject

MEMO = "skills"  # where the session's keeper of skills is


class SkillKeeper(Protocol):
    """Who answers for the skills of a session. Each answer is the contract's JSON object."""

    async def skills_list(self, query: str, category: str) -> JsonObject: ...
    async def skill_view(self, name: str, file_path: str) -> JsonObject: ...
    async def skill_manage(self, asked: JsonObject, ctx: ToolContext) -> JsonObject: ...


class SkillsList(Struct, frozen=True, forbid_unknown_fields=True):
    """Find skills: ways of working that the user keeps. Load one with skill_view before you follow it."""

    query: Annotated[str | UnsetType, Meta(description="Words of the task: the skills that fit it come first.")] = UNSET
    category: Annotated[str | UnsetType, Meta(description="Only those of this category.")] = UNSET


class SkillView(Struct, frozen=True, forbid_unknown_fields=True):
    """Load a skill, or show one of its files. The variables it declares then reach terminal and execute_code."""

    name: Annotated[str, Meta(description="Its name, or category/name.")]
    file_path: Annotated[str | UnsetType, Meta(description="One of its linked_files, e.g. references/api.md.")] = UNSET


class SkillManage(Struct, frozen=True, forbid_unknown_fields=True):
    """Keep a way of working that worked and will be needed again, or correct a skill that was wrong.

    create and edit take the whole SKILL.md: a head (name, description) between two lines of ---, then the steps, with
    a check that shows whether they worked. Prefer patch for a change, and a patch over a second skill on one subject.
    """

    action: Literal["create", "patch", "edit", "delete", "write_file", "remove_file"]
    name: Annotated[str, Meta(description="Small letters, digits, '-'; at most 64.")]
    content: Annotated[str | UnsetType, Meta(description="create, edit: the whole SKILL.md.")] = UNSET
    old_string: Annotated[str | UnsetType, Meta(description="patch: what is replaced; must be there once.")] = UNSET
    new_string: Annotated[str | UnsetType, Meta(description="patch: what takes its place.")] = UNSET
    replace_all: Annotated[bool, Meta(description="patch: every place.")] = False
    category: Annotated[str | UnsetType, Meta(description="create: the folder it goes into.")] = UNSET
    file_path: Annotated[
        str | UnsetType,
        Meta(description="write_file, remove_file, patch: below references/ templates/ scripts/ assets/."),
    ] = UNSET
    file_content: Annotated[str | UnsetType, Meta(description="write_file: the text.")] = UNSET
    absorbed_into: Annotated[str | UnsetType, Meta(description="delete: the skill that now says it.")] = UNSET


async def skills_list(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    wanted = parse_args(args, SkillsList)
    return tool_result(await _keeper(ctx).skills_list(_given(wanted.query), _given(wanted.category)))


async def skill_view(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    wanted = parse_args(args, SkillView)
    return tool_result(await _keeper(ctx).skill_view(wanted.name, _given(wanted.file_path)))


async def skill_manage(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    parse_args(args, SkillManage)
    return tool_result(await _keeper(ctx).skill_manage(dict(args), ctx))


def _given(text: str | UnsetType) -> str:
    return "" if isinstance(text, UnsetType) else text


def _keeper(ctx: ToolContext) -> SkillKeeper:
    keeper: SkillKeeper | None = ctx.memo.get(MEMO)
    if keeper is None:
        raise ToolError("there are no skills here: this call belongs to no session")
    return keeper


def _reads(_args: Mapping[str, Any], _ctx: ToolContext) -> Effects:
    return Effects(reads=frozenset({"skills:"}))


def _writes(_args: Mapping[str, Any], _ctx: ToolContext) -> Effects:
    return Effects(writes=frozenset({"skills:"}))


registry.register(
    name="skills_list",
    toolset="skills",
    schema=schema_of("skills_list", SkillsList),
    handler=skills_list,
    is_async=True,
    emoji="📚",
    traits=Traits(effects=_reads, read_only=True),
)
registry.register(
    name="skill_view",
    toolset="skills",
    schema=schema_of("skill_view", SkillView),
    handler=skill_view,
    is_async=True,
    emoji="📖",
    traits=Traits(effects=_reads, read_only=True),
)
registry.register(
    name="skill_manage",
    toolset="skills",
    schema=schema_of("skill_manage", SkillManage),
    handler=skill_manage,
    is_async=True,
    emoji="📝",
    traits=Traits(effects=_writes),
)
