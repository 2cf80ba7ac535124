"""Which programs the runtime may start for itself: none that lies where the agent's commands can put one.

What the runtime starts by itself (a shell, git, bubblewrap, a container client) runs outside the sandbox, so a program
of that name in the workspace or in the active virtualenv would be a way out of it.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

# What package managers and compilers write outside a project, and sandboxed commands with them. Below the home folder;
# some have a `bin` that people put on PATH.
TOOL_CACHES = (
    *(".bun", ".cache", ".cargo/git", ".cargo/registry", ".ccache", ".composer", ".conan2", ".gradle", ".ivy2", ".m2"),
    *(".local/lib", ".local/share/pnpm", ".local/share/uv", ".local/share/virtualenvs", ".local/state", ".node-gyp"),
    *(".npm", ".nuget", ".pub-cache", ".rustup/tmp", ".sbt", ".terraform.d", ".yarn", "go/pkg"),
)


class SearchPath(NamedTuple):
    """PATH in two parts: the folders for the runtime's own programs, and those that the agent may write."""

    own: str
    others: str


def split_path(environ: Mapping[str, str], *workspaces: str | os.PathLike[str]) -> SearchPath:
    """PATH of `environ`, divided. Where Hermes was started counts as a workspace, beside those given."""
    return _split(environ.get("PATH", os.defpath), _writable_by_agent(environ, workspaces))


def find_program(name: str, environ: Mapping[str, str], *workspaces: str | os.PathLike[str]) -> str | None:
    """The full path of a program for the runtime itself; None when there is none outside what the agent may write."""
    writable = _writable_by_agent(environ, workspaces)
    for folder in _split(environ.get("PATH", os.defpath), writable).own.split(os.pathsep):
        found = shutil.which(name, path=folder)
        if found and not _is_in(found, writable):  # a link in a good folder may lead into a bad one
            return found
    return None


def _writable_by_agent(environ: Mapping[str, str], workspaces: tuple[str | os.PathLike[str], ...]) -> tuple[str, ...]:
    named = (*(os.fspath(each) for each in workspaces), environ.get("VIRTUAL_ENV", ""), _start_folder())
    return _spelled(named, environ.get("HOME", ""))


@lru_cache(maxsize=64)
def _spelled(named: tuple[str, ...], home: str) -> tuple[str, ...]:
    caches = [f"{home}/{cache}" for cache in TOOL_CACHES] if home else []
    both = {folder.rstrip("/") for name in (*named, *caches) if name for folder in (name, os.path.realpath(name))}
    return tuple(filter(None, both))  # without the root: whoever works there has no border to keep


@lru_cache(maxsize=64)
def _split(path: str, writable: tuple[str, ...]) -> SearchPath:
    # A relative folder means another one wherever a program starts, so it is in neither part.
    folders = [folder for folder in path.split(os.pathsep) if Path(folder).is_absolute()]
    others = [folder for folder in folders if _is_in(folder, writable)]
    own = [folder for folder in folders if folder not in others]
    return SearchPath(os.pathsep.join(own) or os.defpath, os.pathsep.join(others))


def _start_folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:  # removed since
        return ""


def _is_in(path: str, folders: Iterable[str]) -> bool:
    """As it is spelled, or where it leads: either can be changed by whoever may write there."""
    spellings = (f"{os.path.normpath(path)}/", f"{os.path.realpath(path)}/")
    return any(spelled.startswith(f"{folder}/") for folder in folders for spelled in spellings)
