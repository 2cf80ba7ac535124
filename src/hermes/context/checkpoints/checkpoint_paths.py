"""Which folder a snapshot covers, and what inside it is left out."""

import hashlib
import os
import tempfile
from pathlib import Path

MARKERS = (
    ".git",
    "pyproject.toml",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "Makefile",
    "pom.xml",
    ".hg",
    "Gemfile",
)


def _names(text: str) -> frozenset[bytes]:
    return frozenset(text.encode().split())


# Folders that can be made again, or that belong to another program.
SKIPPED_FOLDERS = _names(
    """
    .git .hg .svn .bzr .jj CVS node_modules bower_components .venv venv virtualenv __pycache__ .mypy_cache .pytest_cache
    .ruff_cache .hypothesis .tox .nox .eggs dist build target out .next .nuxt .svelte-kit .parcel-cache .turbo .cache
    .gradle .terraform .cargo .npm .yarn .pnpm-store site-packages DerivedData
    """
)
SKIPPED_FILES = frozenset({b".git", b".DS_Store", b"Thumbs.db"})
SKIPPED_ENDINGS = _names(
    """
    .pyc .pyo .o .obj .a .so .dylib .dll .lib .exe .class .jar .wasm .bin .log .mp3 .mp4 .m4a .mov .avi .mkv .webm
    .wav .flac .ogg .zip .tar .gz .tgz .bz2 .xz .zst .7z .rar .iso .dmg .img
    """
)


def project_key(root: Path) -> str:
    """The name of a project in the store."""
    return hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def root_of(path: Path, user_home: Path) -> Path | None:
    """The nearest folder at or above `path` that looks like a project; None when there is none below home or `/`."""
    start = path if path.is_dir() else path.parent
    for folder in (start, *start.parents):
        if not is_allowed(folder, user_home):
            return None
        if any((folder / marker).exists() for marker in MARKERS):
            return folder
    return None


def folder_for(path: Path, cwd: Path, user_home: Path, *, projects_only: bool = False) -> Path | None:
    """The folder to take a snapshot of before `path` changes; None when there is none that makes sense.

    What lies in the project that the session works in belongs to that; anything else to its own project or, unless
    `projects_only`, to the folder it is in.
    """
    here = root_of(cwd, user_home) or (cwd if is_folder_of_work(cwd, user_home) else None)
    if here is not None and (path == here or here in path.parents):
        return here
    found = root_of(path, user_home)
    if found is not None or projects_only:
        return found
    folder = path if path.is_dir() else path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder if is_folder_of_work(folder, user_home) else None


def is_folder_of_work(folder: Path, user_home: Path) -> bool:
    """Whether a folder without a project's marks may be covered: not `/tmp`, `/etc` and their like."""
    shared = Path(os.path.realpath(tempfile.gettempdir()))
    return is_allowed(folder, user_home) and folder.parent != Path(folder.anchor) and folder != shared


def is_allowed(folder: Path, user_home: Path) -> bool:
    """Whether a snapshot of the folder makes sense: never of `/`, of the user's home, or of what is above it."""
    return folder not in (folder.parent, user_home, *user_home.parents)
