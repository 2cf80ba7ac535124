"""`write_file`: replace a whole file, or make a new one."""

import posixpath
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from hermes.errors import ToolError
from hermes.seams import Effects, ToolContext
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.files.diff import unified_diff
from hermes.tools.files.encoding import NotTextError, UnencodableError, decode
from hermes.tools.files.lint_report import lint
from hermes.tools.files.paths import display_path
from hermes.tools.files.reencode import rewrite
from hermes.tools.files.workspace import MAX_EDITED_BYTES, TextFile, Workspace, WorkspacePath, refuse_display_text
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import Traits, writes_file


class WriteFileArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """Write a whole file, replacing what was there; parent folders are made. The file keeps its encoding and line
    endings. To change a part of a file use patch instead."""

    path: Annotated[str, Meta(description="Absolute, relative to the working directory, or ~/...")]
    content: Annotated[str, Meta(description="The complete new text.")]
    cross_profile: Annotated[bool, Meta(description="Allow a path in another profile's home.")] = False


async def write_file(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    wanted = parse_args(args, WriteFileArgs)
    workspace = Workspace(ctx, "write_file", cross_profile=wanted.cross_profile)
    place = await workspace.locate(wanted.path)
    await workspace.check_write(place)
    before = await _before(workspace, place)
    if place.info is not None and workspace.memo.is_stale(place.info, before.data):
        return tool_result(workspace.refuse_stale([before]), bytes_written=0, dirs_created=False)
    content = workspace.veil.reveal(wanted.content, before.text)
    refuse_display_text(content, before.text)
    try:
        new = rewrite(content, before.decoded)
    except UnencodableError as error:
        raise ToolError(f"the content cannot be written: {error}") from error
    result: dict[str, Any] = {"bytes_written": len(new.data), "dirs_created": await _lacks_folder(ctx, place)}
    if new.note:
        result["warning"] = new.note
    is_same = place.info is not None and new.data == before.data and place.info.size == len(new.data)
    if is_same and place.unsaved is None:
        result["_hint"] = "the file already had exactly this content; nothing was changed"
    else:
        shown = display_path(place.path, ctx.environment.cwd)
        diff = workspace.veil.hide(unified_diff(shown, before.text, new.text))
        await workspace.agree(place, diff, lambda: (before.text if place.info is not None else None, new.text))
        await workspace.write(place, new.data)
        await ctx.note("diff", diff)
        await ctx.note("files_changed", [place.resolved])
    result["lint"] = await lint(ctx, place.path, before.text, new.text)
    return tool_result(result)


async def _before(workspace: Workspace, place: WorkspacePath) -> TextFile:
    """What is there now. A binary or very large file is replaced without looking at its text."""
    if place.info is None or place.info.size > MAX_EDITED_BYTES:
        return TextFile(place, b"", None)
    data = await workspace.read(place)
    try:
        return TextFile(place, data, decode(data))
    except NotTextError:
        return TextFile(place, data, None)


async def _lacks_folder(ctx: ToolContext, place: WorkspacePath) -> bool:
    return place.info is None and await ctx.environment.stat(posixpath.dirname(place.path)) is None


def _effects(args: Mapping[str, Any], ctx: ToolContext) -> Effects:
    return writes_file(str(args.get("path", "")), ctx)


registry.register(
    name="write_file",
    toolset="file",
    schema=schema_of("write_file", WriteFileArgs),
    handler=write_file,
    is_async=True,
    emoji="✍️",
    max_result_size_chars=100_000,
    traits=Traits(effects=_effects, edits=True),
)
