"""`patch`: change text in place, one replacement or a V4A patch over several files."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from hermes.errors import ToolError
from hermes.seams import Effects, ToolContext
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.files import edits, v4a
from hermes.tools.files.diff import diff_of_spans, unified_diff
from hermes.tools.files.encoding import UnencodableError
from hermes.tools.files.file_memory import digest
from hermes.tools.files.lint_report import MAX_LINTED_CHARS, TOO_LARGE, lint
from hermes.tools.files.paths import display_path
from hermes.tools.files.plan_patch import Step, apply, paths_of, plan, steps_of
from hermes.tools.files.reencode import stored
from hermes.tools.files.text_match import Region
from hermes.tools.files.workspace import TextFile, Workspace, WorkspacePath, refuse_display_text
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import BARRIER, Traits, writes_file


class Patch(Struct, frozen=True, forbid_unknown_fields=True):
    """Change files in place. mode 'replace': put new_string where old_string is; it must be in the file once, or set
    replace_all. Line endings, indentation style and quotes may differ; likeness alone never matches. mode 'patch':
    a V4A patch over several files, applied whole or not at all:
    *** Begin Patch
    *** Update File: path
    @@ def nearby_function @@
     context line
    -old line
    +new line
    *** Add File: path
    +content
    *** Delete File: path
    *** Move File: old -> new
    *** End Patch"""

    mode: Annotated[Literal["replace", "patch"], Meta(description="How the change is written.")] = "replace"
    path: Annotated[str, Meta(description="replace: the file.")] = ""
    old_string: Annotated[str, Meta(description="replace: the text to find, with enough lines to be unique.")] = ""
    new_string: Annotated[str, Meta(description="replace: the text to put there; empty deletes.")] = ""
    replace_all: Annotated[bool, Meta(description="replace: change every place.")] = False
    patch: Annotated[str, Meta(description="patch: the V4A text.")] = ""
    cross_profile: Annotated[bool, Meta(description="Allow a path in another profile's home.")] = False


async def patch(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    wanted = parse_args(args, Patch)
    workspace = Workspace(ctx, "patch", cross_profile=wanted.cross_profile)
    if wanted.mode == "patch":
        if not wanted.patch.strip():
            raise ToolError("mode 'patch' needs the V4A text in 'patch'")
        return await _apply_patch(ctx, workspace, wanted.patch)
    if not wanted.path:
        raise ToolError("mode 'replace' needs 'path', 'old_string' and 'new_string'")
    return await _replace(ctx, workspace, wanted)


async def _replace(ctx: ToolContext, workspace: Workspace, wanted: Patch) -> str:
    place = await workspace.locate(wanted.path)
    await workspace.check_write(place)
    if place.info is None:
        similar = await workspace.similar(place)
        extra = {"similar_files": similar} if similar else {}
        return tool_result(success=False, error=f"no file {wanted.path!r}; to make it use write_file", **extra)
    file = await workspace.read_text(place)
    assert file.decoded is not None  # the file exists
    if workspace.memo.is_stale(place.info, file.data):
        return tool_result(workspace.refuse_stale([file]), success=False)
    old, new = (workspace.veil.reveal(text, file.text) for text in (wanted.old_string, wanted.new_string))
    refuse_display_text(new, file.text)
    key = (place.resolved, digest(f"{old}\0{new}".encode("utf-8", "replace")))
    made_before = workspace.memo.applied.get(key)
    change = partial(edits.replace, replace_all=wanted.replace_all, made_before=made_before)
    try:
        edited = await ctx.in_thread(change, file.decoded.text, old, new)
        data = await ctx.in_thread(stored, edited, file.data, file.decoded.encoding)
    except UnencodableError as error:
        return tool_result(success=False, error=str(error))
    except edits.NotFoundError as error:
        return _failed(workspace, place, str(error), error.regions)
    except edits.EditError as error:
        return _failed(workspace, place, str(error))
    if edited.is_noop:
        return tool_result(success=True, diff="", level=edited.level, note=edited.note)
    shown = display_path(place.path, ctx.environment.cwd)
    diff = workspace.veil.hide(diff_of_spans(shown, edited.before, edited.spans))
    await workspace.agree(place, diff, lambda: (edited.before, edited.text))
    await workspace.write(place, data)
    workspace.memo.applied[key] = edited.level
    is_small = edited.length <= MAX_LINTED_CHARS  # else its text need not be put together
    await ctx.note("diff", diff)
    await ctx.note("files_changed", [place.resolved])
    return tool_result(
        success=True,
        diff=diff,
        files_modified=[shown],
        replacements=len(edited.spans),
        level=edited.level,
        lines=[[span.first_line, span.last_line] for span in edited.spans[:20]],
        lint=await lint(ctx, place.path, edited.before, edited.text) if is_small else TOO_LARGE,
        resolved_path=place.resolved,
    )


async def _apply_patch(ctx: ToolContext, workspace: Workspace, text: str) -> str:
    changes = v4a.parse(text)
    files: dict[str, TextFile] = {}
    for given in paths_of(changes):
        place = await workspace.locate(given)
        await workspace.check_write(place)
        files[given] = await workspace.read_text(place)
    by_path = [file.place.resolved for file in files.values()]
    if len(set(by_path)) != len(by_path):
        raise ToolError("two names in the patch lead to one file; use one name for it")
    stale = [file for file in files.values() if file.place.info and workspace.memo.is_stale(file.place.info, file.data)]
    if stale:
        return tool_result(workspace.refuse_stale(stale), success=False)
    _reveal(workspace, changes, files)
    try:
        planned = await ctx.in_thread(plan, changes, {name: file.text for name, file in files.items()})
        for change in planned.files:
            refuse_display_text(change.after or "", change.before)
        steps = steps_of(planned, files)
    except (v4a.PatchError, UnencodableError) as error:
        return _failed(workspace, files[changes[0].path].place, str(error))
    if planned.is_noop:
        return tool_result(success=True, diff="", note="; ".join(planned.notes) + "; nothing was changed")
    cwd = ctx.environment.cwd
    for step in steps:
        diff = unified_diff(display_path(step.place.path, cwd), step.before, step.after)
        await workspace.agree(step.place, workspace.veil.hide(diff), partial(_texts, step))
    await apply(ctx.environment, workspace, steps)
    return tool_result(await _report(ctx, workspace, steps, planned.notes), level=planned.level)


def _texts(step: Step) -> tuple[str | None, str | None]:
    return step.before, step.after


def _reveal(workspace: Workspace, changes: Sequence[v4a.FileChange], files: Mapping[str, TextFile]) -> None:
    """Put secrets back into the lines of the patch, each from the file it is about."""
    for change in changes:
        current = files[change.path].text

        def lines(shown: list[str], current: str | None = current) -> list[str]:
            return workspace.veil.reveal("\n".join(shown), current).split("\n") if shown else shown

        if isinstance(change, v4a.Add):
            change.lines = lines(change.lines)
        elif isinstance(change, v4a.Update):
            for hunk in change.hunks:
                hunk.before, hunk.after = lines(hunk.before), lines(hunk.after)


async def _report(
    ctx: ToolContext, workspace: Workspace, steps: Sequence[Step], notes: Sequence[str]
) -> dict[str, Any]:
    cwd = ctx.environment.cwd
    names = {step: display_path(step.place.path, cwd) for step in steps}
    diff = workspace.veil.hide("".join(unified_diff(names[step], step.before, step.after) for step in steps))
    kinds: dict[str, list[str]] = {"files_modified": [], "files_created": [], "files_deleted": []}
    for step in steps:
        kind = "files_created" if step.before is None else "files_deleted" if step.after is None else "files_modified"
        kinds[kind].append(names[step])
    checks = {
        names[step]: await lint(ctx, step.place.path, step.before, step.after)
        for step in steps
        if step.after is not None
    }
    await ctx.note("diff", diff)
    await ctx.note("files_changed", [step.place.resolved for step in steps])
    result: dict[str, Any] = {"success": True, "diff": diff, **{kind: found for kind, found in kinds.items() if found}}
    if checks:
        result["lint"] = checks if len(steps) > 1 else next(iter(checks.values()))
    if notes:
        result["note"] = "; ".join(notes)
    return result


def _failed(workspace: Workspace, place: WorkspacePath, error: str, regions: Sequence[Region] = ()) -> str:
    result: dict[str, Any] = {"success": False, "error": workspace.veil.hide(error)}
    if regions:
        result["nearest"] = [
            {
                "lines": [region.first_line, region.last_line],
                "text": workspace.veil.hide(region.text),
                "likeness": region.likeness,
            }
            for region in regions
        ]
    if workspace.memo.failed(place.resolved) >= 2:
        result["_hint"] = (
            "the second failure on this file: do not try the same again. Read the lines with read_file and copy them, "
            "use a shorter old_string, use mode 'patch' with context lines, or write the whole file with write_file"
        )
    return tool_result(result)


def _effects(args: Mapping[str, Any], ctx: ToolContext) -> Effects:
    if args.get("mode") != "patch":
        return writes_file(str(args.get("path", "")), ctx)
    try:
        names = paths_of(v4a.parse(str(args.get("patch", ""))))
    except v4a.PatchError:
        return BARRIER
    touched = [writes_file(name, ctx) for name in names]
    return Effects(writes=frozenset().union(*(effects.writes for effects in touched)))


_SCHEMA = schema_of("patch", Patch)
_SCHEMA["parameters"]["required"] = ["mode"]

registry.register(
    name="patch",
    toolset="file",
    schema=_SCHEMA,
    handler=patch,
    is_async=True,
    emoji="🔧",
    max_result_size_chars=100_000,
    traits=Traits(effects=_effects, edits=True),
)
