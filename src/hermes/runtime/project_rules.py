"""The files in which a project says how to work in it: which of them count, and what of them the model reads."""

import os
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hermes.errors import ToolError
from hermes.seams import Environment, PromptText
from hermes.types import StatusChanged

LEAST_CHARS = 20_000
MOST_CHARS = 500_000
WINDOW_SHARE = 0.06
CHARS_PER_TOKEN = 4
HEAD, TAIL = 0.7, 0.2  # of the cap, when a file is longer
MAX_READ_BYTES = 8_000_000  # a longer file is read at its two ends only
MAX_UP = 64  # folders above, in which a project's own file is looked for

UPWARD: Final = (".hermes.md", "HERMES.md")  # in the folder and above it, up to the root of the repository
IN_FOLDER: Final = ("AGENTS.md", "agents.md", "CLAUDE.md", "claude.md", ".cursorrules")
NESTED: Final = ("AGENTS.md", "agents.md", "CLAUDE.md", "claude.md", ".cursorrules")  # where a tool goes to work
MORE_CURSOR: Final = ".cursor/rules"
_REPOSITORY = (".git/HEAD", ".git")  # a worktree has a file in place of the folder


class RulesFile(Struct, frozen=True):
    """A file as the model reads it, and what a person should know about it."""

    path: str
    text: str = ""
    told: tuple[StatusChanged, ...] = ()


def cap_of(asked: int | None, window_tokens: int | None) -> int:
    """Characters of one kind of rules that a session takes in."""
    if asked is not None:
        return asked
    share = int((window_tokens or 0) * WINDOW_SHARE) * CHARS_PER_TOKEN
    return min(MOST_CHARS, max(LEAST_CHARS, share))


async def project_rules(environment: Environment, folders: Sequence[str], cap: int) -> PromptText:
    """The rules of the first of `folders` that has some: the first kind that says anything, and none besides."""
    told: list[StatusChanged] = []
    for folder in dict.fromkeys(folders):
        told += _no_files(environment, folder)
        files = await _of_folder(environment, folder, cap, told)
        if files:
            names = [_shown_name(file.path, folder) for file in files]
            blocks = [f"## {name}\n\n{file.text}" for name, file in zip(names, files, strict=True)]
            taken = ", ".join(names)
            first = "This project says how to work in it. Follow it unless the user says otherwise."
            text = "\n\n".join([f"# Project Context\n\n{first}", *blocks])
            return PromptText(text, taken, (StatusChanged("prompt", f"rules: {taken}"), *told))
    return PromptText("", "", tuple(told))


async def _of_folder(environment: Environment, folder: str, cap: int, told: list[StatusChanged]) -> list[RulesFile]:
    base = folder.rstrip("/")
    above = [str(one).rstrip("/") for one in PurePosixPath(folder).parents][:MAX_UP]
    own = [f"{base}/{name}" for name in UPWARD]
    upward = [f"{place}/{name}" for place in above for name in UPWARD]
    left = [*own, *upward, *(f"{base}/{name}" for name in IN_FOLDER)]
    while (found := await environment.first_file(left)) is not None:
        if found in upward and not await _is_within(environment, base, above, found):
            left = [path for path in left[left.index(found) :] if path not in upward]
            continue
        left = left[left.index(found) + 1 :]
        file = await read_rules(environment, found, cap)
        told += file.told
        more = await _more_cursor(environment, base, cap, told) if found.endswith("/.cursorrules") else []
        if kept := [one for one in (file, *more) if one.text]:
            return kept
    return await _more_cursor(environment, base, cap, told)


async def _is_within(environment: Environment, base: str, above: Sequence[str], found: str) -> bool:
    """Whether a file above the folder lies in the same repository."""
    marks = {f"{place}/{mark}": place for place in (base, *above) for mark in _REPOSITORY}
    mark = await environment.first_file(list(marks))
    if mark is None:
        return False
    root = marks[mark]
    return found.rpartition("/")[0] == root or found.startswith(f"{root}/")


async def _more_cursor(environment: Environment, base: str, cap: int, told: list[StatusChanged]) -> list[RulesFile]:
    place = f"{base}/{MORE_CURSOR}"
    try:
        info = await environment.stat(place)
        names = await environment.list_dir(place) if info is not None and info.kind == "dir" else []
    except ToolError as error:
        told.append(StatusChanged("rules", f"{MORE_CURSOR} cannot be read and was left out: {error}"))
        return []
    files: list[RulesFile] = []
    for name in sorted(one for one in names if one.endswith(".mdc")):
        left = cap - sum(len(file.text) for file in files)
        if left <= 0:
            told.append(StatusChanged("rules", f"{MORE_CURSOR} is too long; {name} and what follows was left out"))
            break
        file = await read_rules(environment, f"{place}/{name}", left)
        told += file.told
        files += [file] if file.text else []
    return files


async def read_rules(environment: Environment, path: str, cap: int) -> RulesFile:
    """The file within `cap` characters, or a word in its place where it gives orders that it must not give.

    It has no text when there is nothing in it, or when it cannot be read.
    """
    from hermes.context.injection_scan import blocked, scan  # paid by projects that have rules

    name = path.rpartition("/")[2]
    try:
        raw, is_whole = await _read(environment, path, cap)
    except ToolError as error:
        return RulesFile(path, "", (StatusChanged("rules", f"{name} cannot be read and was left out: {error}"),))
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    body = _without_frontmatter(text).lstrip()
    lines_before = text.count("\n", 0, len(text) - len(body))
    text = body.rstrip()
    shown, cut = _capped(text, name, path, cap, is_whole=is_whole)
    told = [StatusChanged("rules", f"{name} is long: {cut}; put what matters first")] if cut else []
    finding = scan(shown)
    if finding is not None:
        whole = scan(text) if is_whole and cut else finding  # for its line
        found = replace(whole or finding, line=(whole or finding).line + lines_before)
        told.append(StatusChanged("rules", f"{name} was left out ({found}); change that line to have it taken in"))
        shown = blocked(name, found)
    return RulesFile(path, shown, tuple(told))


async def _read(environment: Environment, path: str, cap: int) -> tuple[bytes, bool]:
    info = await environment.stat(path)
    if info is None or info.size <= MAX_READ_BYTES:
        return await environment.read(path, 0, MAX_READ_BYTES), True
    each = min(4 * cap, MAX_READ_BYTES // 2)  # a character has four bytes at most
    return await environment.read(path, 0, each) + await environment.read(path, info.size - each, each), False


def _without_frontmatter(text: str) -> str:
    if text.startswith("---\n") and (end := text.find("\n---", 3)) != -1:
        after = text.find("\n", end + 4)
        return text[after + 1 :] if after != -1 else ""
    return text


def _capped(text: str, name: str, path: str, cap: int, *, is_whole: bool) -> tuple[str, str]:
    """`text` within the cap, with a word about the rest where it stood; and that word, empty when all is there."""
    if len(text) <= cap and is_whole:
        return text, ""
    head, tail = int(cap * HEAD), int(cap * TAIL)
    left_out = f"{len(text) - head - tail} of its {len(text)} characters" if is_whole else "its middle"
    cut = f"{left_out} are left out" if is_whole else f"{left_out} is left out"
    marker = f"[... truncated {name}: {cut}. The whole file is {path}; read it when you need the rest ...]"
    return f"{text[:head]}\n\n{marker}\n\n{text[len(text) - tail :]}", cut


def _no_files(environment: Environment, folder: str) -> list[StatusChanged]:
    """A word about each name that is there and cannot be read as a file: a link that leads nowhere or in a circle."""
    if environment.kind != "local":
        return []
    places = [f"{folder.rstrip('/')}/{name}" for name in (*UPWARD, *IN_FOLDER)]
    broken = [place for place in places if os.path.lexists(place) and not os.path.exists(place)]  # noqa: PTH110
    return [
        StatusChanged("rules", f"{place.rpartition('/')[2]} is a link that leads nowhere, and was left out")
        for place in broken
    ]


def _shown_name(path: str, folder: str) -> str:
    inside = path.removeprefix(f"{folder.rstrip('/')}/")
    return inside if inside != path else path
