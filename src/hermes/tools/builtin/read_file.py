"""`read_file`: a page of a text file with line numbers, or of a large result behind its handle."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from hermes.errors import ToolError
from hermes.seams import Effects, FileInfo, ToolContext
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.files.encoding import BINARY_EXTENSIONS, IMAGE_EXTENSIONS, UTF8, detect
from hermes.tools.files.file_memory import FileMemo, Shown, digest
from hermes.tools.files.lines import LinePage, Pager, PageRequest
from hermes.tools.files.workspace import HANDLE_PREFIX, Workspace, WorkspacePath
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import NO_EFFECTS, Traits, reads_file

_FIRST_BYTES = 1 << 20
_CHUNK_BYTES = 4 << 20
_LOCAL_COUNT_BYTES = 32 << 20
_REMOTE_COUNT_BYTES = 4 << 20  # every chunk crosses the wire
_DEFAULT_MAX_CHARS = 100_000
_MARGIN_LINES = 300  # read around a page: a private key of several lines is hidden when one of them is on it
_NOTHING: dict[str, Any] = {
    "content": "",
    "total_lines": 0,
    "file_size": 0,
    "truncated": False,
    "is_binary": False,
    "is_image": False,
}

ReadAt: TypeAlias = Callable[[int, int], Awaitable[bytes]]  # offset and size


class ReadFile(Struct, frozen=True, forbid_unknown_fields=True):
    """Read a text file. Lines come as N|text; long files come in pages, and lines over 2000 characters are cut.
    Use this instead of cat, head or tail. Also opens hermes://result/... handles. For pictures use vision_analyze."""

    path: Annotated[str, Meta(description="Absolute, relative to the working directory, ~/..., or a result handle.")]
    offset: Annotated[int, Meta(description="First line to show, from 1.", ge=1)] = 1
    limit: Annotated[int, Meta(description="How many lines to show.", ge=1, le=2000)] = 500


async def read_file(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    wanted = parse_args(args, ReadFile)
    if wanted.path.startswith(HANDLE_PREFIX):
        return await _read_handle(ctx, wanted)
    workspace = Workspace(ctx, "read_file")
    place = await workspace.locate(wanted.path)
    stamp = (place.info.mtime_ns, place.info.size) if place.info else None  # a file that changed is worth another look
    times = workspace.memo.asked("read_file", place.resolved, wanted.offset, wanted.limit, stamp)
    refusal = await _refusal(workspace, place)
    if refusal is not None:
        return refusal
    assert place.info is not None  # a missing file is refused above
    known = _unchanged(workspace.memo, place.info, wanted)
    if known is not None:
        return known
    if times >= 4:
        return _failed(place.info, f"BLOCKED: {wanted.path!r} was read {times} times in a row with the same arguments")

    async def read_at(offset: int, size: int) -> bytes:
        return await workspace.read(place, offset, size)

    budget = _LOCAL_COUNT_BYTES if ctx.environment.kind == "local" else _REMOTE_COUNT_BYTES
    page, content_digest = await _page(read_at, wanted, budget)
    if page is None:
        return _failed(place.info, f"{wanted.path!r} is binary; inspect it in the terminal (file, xxd)", is_binary=True)
    shown = _shown(page, place.info.size, wanted, workspace, _max_chars(ctx))
    if "error" not in shown:
        workspace.memo.saw(place.info, content_digest)
        key = (place.resolved, wanted.offset, wanted.limit)
        workspace.memo.shown[key] = Shown(place.info.mtime_ns, place.info.size)
    if times == 3:
        shown["_warning"] = "this page was read three times in a row; use what it says, or read another part"
    return tool_result(shown)


async def _refusal(workspace: Workspace, place: WorkspacePath) -> str | None:
    """The result for a file that is not shown as text, or None."""
    reason = await workspace.refuse_read(place)
    if reason is not None:
        return _failed(place.info, reason)
    if place.info is None:
        similar = await workspace.similar(place)
        missing = {**_NOTHING, "error": f"no file {place.given!r}"}
        return tool_result(missing, similar_files=similar) if similar else tool_result(missing)
    if place.extension in IMAGE_EXTENSIONS:
        hint = "use vision_analyze with this path to see the picture"
        return tool_result(_NOTHING, file_size=place.info.size, is_binary=True, is_image=True, hint=hint)
    if place.extension in BINARY_EXTENSIONS:
        return _failed(place.info, f"{place.given!r} is a binary file (.{place.extension})", is_binary=True)
    return None


def _unchanged(memo: FileMemo, info: FileInfo, wanted: ReadFile) -> str | None:
    """The short answer to a re-read of what the model already has."""
    key = (info.path, wanted.offset, wanted.limit)
    shown = memo.shown.get(key)
    if shown is None or (shown.mtime_ns, shown.size) != (info.mtime_ns, info.size):
        return None
    memo.shown[key] = shown._replace(times_told=shown.times_told + 1)
    if shown.times_told >= 1:
        told = f"BLOCKED: {wanted.path!r} has not changed and these lines were shown before; use them, or read others"
        return _failed(info, told)
    return tool_result(
        status="unchanged",
        message="the file has not changed since these lines were shown; they are above in this conversation",
        path=wanted.path,
        dedup=True,
        content_returned=False,
    )


async def _page(
    read_at: ReadAt, wanted: ReadFile, count_bytes: int, *, fold: bool = False
) -> tuple[LinePage | None, str]:
    """The page with the lines around it, or None for binary; and the digest of a small file that was read whole."""
    first_line = max(wanted.offset - _MARGIN_LINES, 1)
    limit = wanted.offset - first_line + wanted.limit + _MARGIN_LINES
    request = PageRequest(offset=first_line, limit=limit, count_bytes=count_bytes, fold=fold)
    first = await read_at(0, _FIRST_BYTES)
    is_end = len(first) < _FIRST_BYTES
    encoding = detect(first, is_whole=is_end)
    if encoding is None:
        return None, ""
    pager, at, chunk = Pager(request, encoding), 0, first
    while chunk:
        pager.feed(chunk)
        at += len(chunk)
        if is_end or pager.is_satisfied:
            break
        chunk = await read_at(at, _CHUNK_BYTES)
    return pager.finish(is_end=is_end or not chunk), digest(first) if is_end else ""


def _shown(page: LinePage, size: int, wanted: ReadFile, workspace: Workspace, max_chars: int) -> dict[str, Any]:
    before = wanted.offset - page.first_line
    lines, rest = page.lines[before : before + wanted.limit], page.lines[before + wanted.limit :]
    is_empty = not lines or (lines == ("",) and not size and not page.newlines)
    asked = range(wanted.offset, wanted.offset + len(lines))
    content, note = workspace.veil.numbered(page.first_line, "\n".join(page.lines), asked)
    result = {**_NOTHING, "content": "" if is_empty else content, "total_lines": page.newlines, "file_size": size}
    if len(content) > max_chars:
        fitting = max(1, int(len(lines) * max_chars / len(content) * 0.9))
        error = f"these {len(lines)} lines have {len(content)} characters, over {max_chars}; try limit={fitting}"
        return {**result, "content": "", "truncated": True, "error": error}
    # What ends in a newline has an empty line after it, which alone is not worth another page.
    result["truncated"] = page.has_more or rest not in ((), ("",))
    hints = [note] if note else []
    if result["truncated"]:
        last = asked.stop - 1
        of = f"of {page.newlines}" if page.is_counted else f"of more than {page.newlines}"
        hints.append(f"lines {wanted.offset}-{last} {of}; go on with offset={last + 1}")
    elif not lines and wanted.offset > 1:
        hints.append(f"the file has {page.newlines} lines, so there is nothing at offset {wanted.offset}")
    if page.encoding != UTF8:
        hints.append(f"stored as {page.encoding.name}; edits keep that")
    if hints:
        result["hint"] = "; ".join(hints)
    return result


async def _read_handle(ctx: ToolContext, wanted: ReadFile) -> str:
    """A page of a stored result. Long lines are folded, so that every byte can be reached."""
    size = await ctx.shelf.size(wanted.path)

    async def read_at(offset: int, count: int) -> bytes:
        return await ctx.shelf.read(wanted.path, offset, count)

    page, _ = await _page(read_at, wanted, _LOCAL_COUNT_BYTES, fold=True)
    if page is None:
        raise ToolError(f"{wanted.path!r} holds binary data, which cannot be shown as lines")
    return tool_result(_shown(page, size, wanted, Workspace(ctx, "read_file"), _max_chars(ctx)))


def _failed(info: FileInfo | None, error: str, *, is_binary: bool = False) -> str:
    return tool_result(_NOTHING, file_size=info.size if info else 0, is_binary=is_binary, error=error)


def _max_chars(ctx: ToolContext) -> int:
    return int(ctx.settings.get("file_read_max_chars") or _DEFAULT_MAX_CHARS)


def _effects(args: Mapping[str, Any], ctx: ToolContext) -> Effects:
    path = str(args.get("path", ""))
    return NO_EFFECTS if path.startswith(HANDLE_PREFIX) else reads_file(path, ctx)


registry.register(
    name="read_file",
    toolset="file",
    schema=schema_of("read_file", ReadFile),
    handler=read_file,
    is_async=True,
    emoji="📖",
    max_result_size_chars=100_000,
    traits=Traits(effects=_effects, read_only=True, spill=False),
)
