"""`@file:`, `@folder:`, `@diff`, `@staged` and `@git:N` in a message, opened before it is sent; pictures beside it."""

import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.errors import ToolError, UserError
from hermes.surfaces.cli.chat.question import with_image
from hermes.surfaces.cli.interactive.children import Program, run_program

MOST_CHARS = 60_000  # of one reference
MOST_NAMES = 300
PAGES = (2000, 500, 100)  # lines asked for at once; fewer when they are too long together
_REFERENCE = re.compile(
    r"(?<![\w/@])@(?:(file|folder):(\"[^\"]+\"|[^\s\"]+)|(diff|staged)(?![\w/.:-])|git:(\d{1,2})(?!\w))"
)
_PICTURE = re.compile(r"(?:^|(?<=\s))(?:'([^']+)'|\"([^\"]+)\"|((?:\\ |\S)+))(?=\s|$)")
_PICTURE_ENDS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_GIT = ("git", "-c", "core.fsmonitor=false", "--no-pager")
_PLAIN_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color")


class Surroundings(Struct, frozen=True, kw_only=True):
    """Where references are looked up."""

    cwd: str
    environ: Mapping[str, str]
    hide: Callable[[str], str]
    in_thread: Callable[..., Awaitable[Any]]


async def opened(text: str, around: Surroundings) -> Any:
    """The message as it is sent: what was referred to below it, and pictures as parts.

    `UserError` names a reference that cannot be opened; nothing is sent then.
    """
    named = dict.fromkeys(match.groups() for match in _REFERENCE.finditer(text))
    whole = "\n\n".join([text, *[await _one(found, around) for found in named]])
    pictures = [part for path in pictures_in(text, around.cwd) for part in with_image("", path)[1:]]
    return [{"type": "text", "text": whole}, *pictures] if pictures else whole


def pictures_in(text: str, cwd: str) -> list[Path]:
    """Files named in `text` that are pictures, in order."""
    if not any(end in text.lower() for end in _PICTURE_ENDS):
        return []
    named = ("".join(match.groups("")).replace("\\ ", " ") for match in _PICTURE.finditer(text))
    paths = (Path(cwd, Path(name).expanduser()) for name in named if name.lower().endswith(_PICTURE_ENDS))
    return [path for path in dict.fromkeys(paths) if path.is_file()]


async def _one(found: tuple[str | None, ...], around: Surroundings) -> str:
    kind, path, changes, count = found
    if kind == "file":
        return await around.in_thread(_file, str(path).strip('"'), around)  # type: ignore[no-any-return]  # a str
    if kind == "folder":
        return await around.in_thread(_folder, str(path).strip('"'), around)  # type: ignore[no-any-return]  # a str
    if changes:
        words: tuple[str, ...] = ("diff", *_PLAIN_DIFF, *(("--cached",) if changes == "staged" else ()))
        return await _git(changes, words, around)
    return await _git(f"git:{count}", ("log", "-p", f"-{count}", *_PLAIN_DIFF), around)


def _file(given: str, around: Surroundings) -> str:
    """A file as `read_file` shows it to the model: the same rules, the same redaction."""
    from hermes.model_tools import close_task, handle_function_call  # noqa: PLC0415 - paid by whoever refers to a file

    task = f"reference-{secrets.token_hex(4)}"
    path = str(Path(around.cwd, Path(given).expanduser()))
    try:
        for limit in PAGES:
            said = json.loads(handle_function_call("read_file", {"path": path, "limit": limit}, task_id=task))
            if said.get("content") or not said.get("truncated"):
                break
    finally:
        close_task(task)
    if said.get("error"):
        raise UserError(f"@file:{given} cannot be opened: {said['error']}")
    hint = f"\n[{said['hint']}]" if said.get("truncated") and said.get("hint") else ""
    return f'<file path="{given}">\n{_capped(said.get("content") or "")}{hint}\n</file>'


def _folder(given: str, around: Surroundings) -> str:
    folder = Path(around.cwd, Path(given).expanduser())
    try:
        names = sorted(f"{one.name}/" if one.is_dir() else one.name for one in folder.iterdir())
    except OSError as error:
        raise UserError(f"@folder:{given} cannot be opened: {error.strerror}") from error
    more = [f"… and {len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return f'<folder path="{given}">\n' + "\n".join([*names[:MOST_NAMES], *more]) + "\n</folder>"


async def _git(name: str, words: tuple[str, ...], around: Surroundings) -> str:
    env = {key: around.environ[key] for key in ("PATH", "HOME", "LANG", "USER") if key in around.environ}
    program = Program(
        argv=(*_GIT, *words), cwd=around.cwd, env={**env, "GIT_OPTIONAL_LOCKS": "0"}, purpose=f"open @{name}"
    )
    try:
        ran = await run_program(program)
    except (ToolError, TimeoutError) as error:
        raise UserError(f"@{name} cannot be opened: {str(error) or 'git took too long'}") from error
    if ran.exit_code:
        raise UserError(f"@{name} cannot be opened: {' '.join(ran.output.split())[:200]}")
    return f'<changes of="{name}">\n{_capped(around.hide(ran.output)) or "(none)"}\n</changes>'


def _capped(text: str) -> str:
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}\n[cut after {MOST_CHARS} characters]"
