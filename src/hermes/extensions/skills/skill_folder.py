"""The files of a skill: which there are, what one of them says, and what all of them are together."""

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from hermes.errors import UserError
from hermes.extensions.skills.skill_file import FILE

MAX_FILE_BYTES = 1024 * 1024
MAX_TEXT_CHARS = 100_000
MAX_FOLDER_BYTES = 10 * 1024 * 1024
MAX_FILES = 500
LINKED = ("references", "templates", "scripts", "assets")
_NOT_TAKEN = frozenset({".git", "__pycache__"})  # what git and Python keep for themselves
_ENDINGS = {
    "references": (".md",),
    "templates": (".md", ".py", ".yaml", ".yml", ".json", ".tex", ".sh"),
    "scripts": (".py", ".sh", ".bash", ".js", ".ts", ".rb"),
}


def linked_files(folder: Path) -> dict[str, list[str]]:
    """What a skill brings beside its SKILL.md, by kind; paths are relative to its folder."""
    found: dict[str, list[str]] = {}
    for kind in LINKED:
        endings = _ENDINGS.get(kind)
        names = [name for name in files_below(folder, kind) if endings is None or name.endswith(endings)]
        if names:
            found[kind] = names
    return found


def files_below(folder: Path, kind: str = "") -> list[str]:
    """The regular files below, sorted, as paths relative to `folder`; no link is followed."""
    found: list[str] = []
    for place, folders, names in os.walk(folder / kind if kind else folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            file = Path(place, name)
            if not name.startswith(".") and file.is_file() and not file.is_symlink():
                found.append(file.relative_to(folder).as_posix())
        if len(found) > MAX_FILES:
            break
    return sorted(found)[:MAX_FILES]


def inside(folder: Path, name: str) -> Path:
    """The file of this name in the folder; `UserError` when it is no relative path, or leads out of it."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith(("/", "~")) or ".." in parts or "\\" in name or "\0" in name:
        raise UserError(f"{name!r} is no path inside the skill; give it relative to its folder, without '..'")
    file = folder.joinpath(*parts)
    real, root = os.path.realpath(file), os.path.realpath(folder)
    if real != root and not real.startswith(f"{root}/"):
        raise UserError(f"{name!r} leads out of the skill's folder through a link")
    return file


def read_inside(folder: Path, name: str) -> bytes:
    """The bytes of a file of the skill; `FileNotFoundError` where there is none, `UserError` when it is too long."""
    file = inside(folder, name)
    info = file.stat()
    if not stat.S_ISREG(info.st_mode):
        raise FileNotFoundError(name)
    if info.st_size > MAX_FILE_BYTES:
        size = f"{info.st_size / 1_000_000:.1f} MB"
        raise UserError(f"{name!r} has {size}, too much to view; commands can work with it at {str(file)!r}")
    return file.read_bytes()


def read_folder(folder: Path) -> dict[str, bytes]:
    """All files of a skill by relative path; `UserError` for links, odd names, and more than a skill may have."""
    found: dict[str, bytes] = {}
    total = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_TAKEN)
        for name in [*sorted(names), *folders]:
            file = Path(place, name)
            relative = file.relative_to(folder).as_posix()
            info = file.lstat()
            if stat.S_ISLNK(info.st_mode):
                raise UserError(f"{relative!r} is a link; a skill from elsewhere may hold none")
            if stat.S_ISDIR(info.st_mode):
                continue
            if not stat.S_ISREG(info.st_mode):
                raise UserError(f"{relative!r} is no regular file")
            total += info.st_size
            check_size(relative, info.st_size, total, len(found) + 1)
            found[relative] = file.read_bytes()
    if FILE not in found:
        raise UserError(f"there is no {FILE} in {str(folder)!r}")
    check_names(found)
    return found


def check_size(name: str, size: int, total: int, count: int) -> None:
    """`UserError` when a file, or all of them together, are more than a skill may have."""
    if size > MAX_FOLDER_BYTES or total > MAX_FOLDER_BYTES:
        raise UserError(f"the skill has more than {MAX_FOLDER_BYTES // 1024 // 1024} MB (at {name!r}); it is not taken")
    if count > MAX_FILES:
        raise UserError(f"the skill has more than {MAX_FILES} files; it is not taken")


def check_names(names: Mapping[str, bytes]) -> None:
    """`UserError` for a path that would be written elsewhere, or that a person could not read."""
    for name in names:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\\" in name or not name.isprintable():
            raise UserError(f"the file name {name!r} is not one that a skill may have")


def folder_hash(files: Mapping[str, bytes]) -> str:
    """What changes when any file does."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode("utf-8", "surrogateescape"))
        digest.update(files[name])
    return f"sha256:{digest.hexdigest()}"
