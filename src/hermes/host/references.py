"""`@file:`, `@url:`, `@diff` and their like in a message, opened before it is sent; pictures beside it."""

import asyncio
import json
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.config.settings import Settings
from hermes.errors import ToolError, UserError
from hermes.host.pictures import with_image
from hermes.own_git import OwnGit
from hermes.runtime.setup.process import shared
from hermes.tools.environments.command_env import redactor_of

MOST_CHARS = 60_000  # of one reference
MOST_NAMES = 300
PAGES = (2000, 500, 100)  # lines asked for at once; fewer when they are too long together
_REFERENCE = re.compile(
    r"(?<![\w/@])@(?:(file|folder|url|skill):(\"[^\"]+\"|[^\s\"]+)|(diff|staged)(?![\w/.:-])|git:(\d{1,2})(?!\w))"
)
_PICTURE = re.compile(r"(?:^|(?<=\s))(?:'([^']+)'|\"([^\"]+)\"|((?:\\ |\S)+))(?=\s|$)")
_PICTURE_ENDS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_GIT_LIMIT_S = 30.0
_FOR_GIT = ("PATH", "HOME", "LANG", "USER", "VIRTUAL_ENV")


class Surroundings(Struct, frozen=True, kw_only=True):
    """Where references are looked up."""

    cwd: str
    environ: Mapping[str, str]
    hide: Callable[[str], str]
    skill: Callable[[str], str]  # the word that calls it, by any of its names


def surroundings(settings: Settings, cwd: str, source: str) -> Surroundings:
    """Where a conversation with these settings looks its references up."""

    def skill(name: str) -> str:
        from hermes.extensions.skills.skill_book import SkillBook, names_of  # paid by whoever names one

        book = SkillBook(settings, source)
        head = book.find(name)
        return f"/{head.slash if head.slash in names_of(book.usable()) else head.place}"

    return Surroundings(cwd=cwd, environ=settings.environ, hide=redactor_of(settings).redact, skill=skill)


async def opened(text: str, around: Surroundings) -> Any:
    """The message as it is sent: what was referred to below it, and pictures as parts.

    `UserError` names a reference that cannot be opened; nothing is sent then.
    """
    whole = await referred(text, around)
    pictures = [part for path in pictures_in(text, around.cwd) for part in with_image("", path)[1:]]
    return [{"type": "text", "text": whole}, *pictures] if pictures else whole


async def referred(text: str, around: Surroundings) -> str:
    """`text` with what its references name below it; skills are called before it, as if typed by their names."""
    named = dict.fromkeys(match.groups() for match in _REFERENCE.finditer(text))
    skills = [await _one(found, around) for found in named if found[0] == "skill"]
    below = [await _one(found, around) for found in named if found[0] != "skill"]
    return "\n\n".join([" ".join([*skills, text]), *below])


def pictures_in(text: str, cwd: str) -> list[Path]:
    """Files named in `text` that are pictures, in order."""
    if not any(end in text.lower() for end in _PICTURE_ENDS):
        return []
    named = ("".join(match.groups("")).replace("\\ ", " ") for match in _PICTURE.finditer(text))
    paths = (Path(cwd, Path(name).expanduser()) for name in named if name.lower().endswith(_PICTURE_ENDS))
    return [path for path in dict.fromkeys(paths) if path.is_file()]


async def _one(found: tuple[str | None, ...], around: Surroundings) -> str:
    kind, name, changes, count = found
    if kind is not None:
        text: str = await shared.pool.run(_KINDS[kind], str(name).strip('"'), around)
        return text
    if changes:
        return await _git(changes, ("diff", *(("--cached",) if changes == "staged" else ())), around)
    return await _git(f"git:{count}", ("log", "-p", f"-{count}"), around)


def _file(given: str, around: Surroundings) -> str:
    """A file as `read_file` shows it to the model: the same rules, the same redaction."""
    path = str(Path(around.cwd, Path(given).expanduser()))
    for limit in PAGES:
        said = _asked("read_file", path=path, limit=limit)
        if said.get("content") or not said.get("truncated"):
            break
    if said.get("error"):
        raise UserError(f"@file:{given} cannot be opened: {said['error']}")
    hint = f"\n[{said['hint']}]" if said.get("truncated") and said.get("hint") else ""
    return f'<file path="{given}">\n{_capped(said.get("content") or "")}{hint}\n</file>'


def _url(given: str, around: Surroundings) -> str:
    """A page as `web_extract` shows it: the same rules for addresses, the same approval."""
    given = given.rstrip(".,;:!?")
    said = _asked("web_extract", given, urls=[given], char_limit=MOST_CHARS)
    page = (said.get("results") or [{}])[0]
    if said.get("error") or page.get("error"):
        raise UserError(f"@url:{given} cannot be opened: {page.get('error') or said['error']}")
    return f'<page url="{given}">\n{_capped(around.hide(page.get("content") or ""))}\n</page>'


def _skill(given: str, around: Surroundings) -> str:
    return around.skill(given)


def _asked(tool: str, words: str | None = None, /, **args: Any) -> dict[str, Any]:
    """What a tool says, in a workplace of its own that is gone afterwards; `words` are the person's own."""
    from hermes.model_tools import close_task, handle_function_call  # paid by whoever refers to something

    task = f"reference-{secrets.token_hex(4)}"
    try:
        said: dict[str, Any] = json.loads(handle_function_call(tool, args, task_id=task, user_task=words))
        return said
    finally:
        close_task(task)


def _folder(given: str, around: Surroundings) -> str:
    folder = Path(around.cwd, Path(given).expanduser())
    try:
        names = sorted(f"{one.name}/" if one.is_dir() else one.name for one in folder.iterdir())
    except OSError as error:
        raise UserError(f"@folder:{given} cannot be opened: {error.strerror}") from error
    more = [f"… and {len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return f'<folder path="{given}">\n' + "\n".join([*names[:MOST_NAMES], *more]) + "\n</folder>"


async def _git(name: str, words: tuple[str, ...], around: Surroundings) -> str:
    env = {key: around.environ[key] for key in _FOR_GIT if key in around.environ}
    git = OwnGit(shared.supervisor, env, Path(around.cwd))
    try:
        async with asyncio.timeout(_GIT_LIMIT_S):
            answer = await git.ask(*words, purpose=f"open @{name}", most_bytes=4 * MOST_CHARS)
    except (ToolError, TimeoutError) as error:
        raise UserError(f"@{name} cannot be opened: {str(error) or 'git took too long'}") from error
    if answer.code:
        raise UserError(f"@{name} cannot be opened: {answer.complaint[:200]}")
    text = around.hide(answer.output.decode("utf-8", "replace"))
    return f'<changes of="{name}">\n{_capped(text) or "(none)"}\n</changes>'


def _capped(text: str) -> str:
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}\n[cut after {MOST_CHARS} characters]"


_KINDS: dict[str, Callable[[str, Surroundings], str]] = {
    "file": _file,
    "folder": _folder,
    "url": _url,
    "skill": _skill,
}
