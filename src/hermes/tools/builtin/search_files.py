"""`search_files`: text in files, or files by name, through the session's environment."""

import os
import posixpath
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from hermes.errors import ToolError
from hermes.programs import find_program
from hermes.seams import Decision, Effects, ExecResult, ToolContext
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.files.paths import display_path
from hermes.tools.files.search_commands import (
    FoundLines,
    Kind,
    SearchRequest,
    command,
    counts_of,
    files_of,
    matches_of,
    read,
)
from hermes.tools.files.workspace import HANDLE_PREFIX, Workspace
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import NO_EFFECTS, Traits, reads_file

Naming: TypeAlias = Callable[[str], str]  # a path as found -> as shown

_TIMEOUT_S = 60.0
_MAX_HANDLE_BYTES = 256 << 20
_NO_MATCH, _TROUBLE = 1, 2


class SearchFiles(Struct, frozen=True, forbid_unknown_fields=True):
    """Search file contents by regular expression (target 'content'), or find files by glob, newest first (target
    'files'). Respects .gitignore and skips hidden and binary files. Use this instead of grep, rg, find or ls."""

    pattern: Annotated[str, Meta(description="A regular expression; for target 'files' a glob such as *.py.")]
    target: Annotated[
        Literal["content", "files", "grep", "find"],
        Meta(description="What to search; grep and find are other words for content and files."),
    ] = "content"
    path: Annotated[str, Meta(description="Folder or file to search, or a hermes://result/... handle.")] = "."
    file_glob: Annotated[str, Meta(description="Only files of this glob, such as *.py.")] = ""
    limit: Annotated[int, Meta(description="How many results to show.", ge=1)] = 50
    offset: Annotated[int, Meta(description="How many results to skip.", ge=0)] = 0
    output_mode: Annotated[
        Literal["content", "files_only", "count"],
        Meta(description="Matching lines, only the names of files, or the number of matches per file."),
    ] = "content"
    context: Annotated[int, Meta(description="Lines to show around each match.", ge=0)] = 0


async def search_files(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    wanted = parse_args(args, SearchFiles)
    if not wanted.pattern:
        raise ToolError("the pattern is empty; say what to search for")
    if wanted.file_glob and _kind(wanted) == "files":
        raise ToolError("file_glob narrows a search of contents; for target 'files' give the glob as the pattern")
    workspace = Workspace(ctx, "search_files")
    if wanted.path.startswith(HANDLE_PREFIX):
        result = await _search_handle(ctx, wanted)
    else:
        result = await _search_path(ctx, workspace, wanted)
    for match in result.get("matches", ()):
        for key in match.keys() & {"content", "before", "after"}:
            shown = match[key]
            match[key] = workspace.veil.hide(shown) if isinstance(shown, str) else list(map(workspace.veil.hide, shown))
    # Counted with its result: the same search after a change is progress.
    times = workspace.memo.asked("search_files", ctx.environment.cwd, wanted, tool_result(result))
    if times >= 4:
        raise ToolError(f"BLOCKED: this search gave the same {times} times in a row; use its result, or change it")
    if times == 3:
        result["_warning"] = "this search was made three times in a row with the same result; change it or go on"
    return tool_result(result)


async def _search_path(ctx: ToolContext, workspace: Workspace, wanted: SearchFiles) -> dict[str, Any]:
    place = await workspace.locate(wanted.path)
    if place.info is None:
        similar = await workspace.similar(place)
        missing: dict[str, Any] = {"total_count": 0, "error": f"no file or folder {wanted.path!r}"}
        return {**missing, "similar_paths": similar} if similar else missing
    is_folder = place.info.kind == "dir"
    refusal = await (workspace.refuse_look(place) if is_folder else workspace.refuse_read(place))
    if refusal is not None:
        raise ToolError(refusal)
    search = SearchRequest(
        kind=_kind(wanted),
        pattern=wanted.pattern,
        folder=place.path if is_folder else posixpath.dirname(place.path),
        target="." if is_folder else posixpath.basename(place.path),
        file_glob=wanted.file_glob,
        limit=wanted.limit,
        offset=wanted.offset,
        context=wanted.context,
    )
    found = await _run(ctx, search)
    return _result(search, found, lambda name: display_path(posixpath.join(search.folder, name), ctx.environment.cwd))


async def _search_handle(ctx: ToolContext, wanted: SearchFiles) -> dict[str, Any]:
    kind = _kind(wanted)
    if kind == "files":
        raise ToolError("a result handle holds text; search it with target 'content'")
    if await ctx.shelf.size(wanted.path) > _MAX_HANDLE_BYTES:
        raise ToolError(f"{wanted.path!r} is larger than {_MAX_HANDLE_BYTES} bytes; read it in pages with read_file")
    data = await ctx.shelf.read(wanted.path)
    search = SearchRequest(
        kind=kind,
        pattern=wanted.pattern,
        folder="/",
        target="-",
        limit=wanted.limit,
        offset=wanted.offset,
        context=wanted.context,
    )
    return _result(search, await _run(ctx, search, data), lambda _: wanted.path)


async def _run(ctx: ToolContext, search: SearchRequest, stdin: bytes | None = None) -> FoundLines:
    rg = bundled_rg() if ctx.environment.kind == "local" else None
    own = Decision.own("search files")
    answer = await ctx.environment.execute(command(search, rg), own, ctx.scope, timeout_s=_TIMEOUT_S, stdin=stdin)
    if answer.timed_out:
        raise ToolError(f"the search took longer than {_TIMEOUT_S:g} s; search a smaller folder or give file_glob")
    found = read(answer.output)
    _check(answer, found)
    return found


def _check(answer: ExecResult, found: FoundLines) -> None:
    """Raise `ToolError` when the search itself failed; files that cannot be read are passed over."""
    if answer.interrupted:
        raise ToolError("the search was interrupted")
    if answer.exit_code >= _TROUBLE and found.errors and not found.total:
        raise ToolError(f"the search failed: {found.errors[:1000]}")
    if answer.exit_code > _TROUBLE and not found.total:
        raise ToolError(f"the search ended with exit code {answer.exit_code} and no result")


def _result(search: SearchRequest, found: FoundLines, name: Naming) -> dict[str, Any]:
    result: dict[str, Any] = {"total_count": found.sum if search.kind == "count" else found.total}
    if search.kind == "content":
        matches = list(matches_of(found, search.context))
        result["matches"] = [{**match, "path": name(str(match["path"]))} for match in matches]
        shown = len(matches)
    elif search.kind == "count":
        result["counts"] = {name(path): count for path, count in counts_of(found).items()}
        shown = len(found.lines)
    else:
        result["files"] = [name(path) for path in files_of(found)]
        shown = len(found.lines)
    following = search.offset + shown
    if found.total > following:
        result["truncated"] = True
        result["hint"] = f"{found.total - following} more; go on with offset={following}"
    return result


def _kind(wanted: SearchFiles) -> Kind:
    if wanted.target in ("files", "find"):
        return "files"
    return wanted.output_mode


def bundled_rg() -> str | None:
    """ripgrep from the package beside our Python, else one on PATH, else what the shell finds."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("rg", path=beside) or find_program("rg", os.environ)


def _effects(args: Mapping[str, Any], ctx: ToolContext) -> Effects:
    path = str(args.get("path") or ".")
    return NO_EFFECTS if path.startswith(HANDLE_PREFIX) else reads_file(path, ctx)


registry.register(
    name="search_files",
    toolset="file",
    schema=schema_of("search_files", SearchFiles),
    handler=search_files,
    is_async=True,
    emoji="🔎",
    max_result_size_chars=100_000,
    traits=Traits(effects=_effects, read_only=True),
)
