"""`.worktreeinclude`: what git does not keep and a worktree needs. Files are copied, folders are linked."""

import filecmp
import shutil
from collections.abc import Iterator
from pathlib import Path

NAME = ".worktreeinclude"


def bring(root: Path, worktree: Path) -> Iterator[str]:
    """Bring what the file names into `worktree`; yields a sentence for each line that was left out."""
    for name in names(root):
        here, there = root / name, worktree / name
        if not _is_inside(here, root) or not _is_inside(there, worktree):
            yield f"{NAME}: {name!r} leads out of the repository and is left out"
        elif not here.exists():
            yield f"{NAME}: there is no {name!r}"
        elif not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            if here.is_dir():
                there.symlink_to(here.resolve(), target_is_directory=True)
            else:
                shutil.copy2(here, there)


def names(root: Path) -> list[str]:
    """The paths in the file, relative to `root`."""
    try:
        text = (root / NAME).read_text(encoding="utf-8")
    except OSError:
        return []
    lines = (line.strip() for line in text.splitlines())
    return [line.rstrip("/") for line in lines if line and not line.startswith("#")]


def changed(root: Path, worktree: Path) -> list[str]:
    """Copies that are no longer like what they were copied from."""
    return [
        name
        for name in names(root)
        if (worktree / name).is_file() and not (worktree / name).is_symlink() and _differ(root / name, worktree / name)
    ]


def take_away(root: Path, worktree: Path) -> None:
    """Remove the links and the copies that are still like their originals."""
    for name in names(root):
        there = worktree / name
        if not _is_inside(there.parent, worktree):
            continue
        if there.is_symlink() or (there.is_file() and not _differ(root / name, there)):
            there.unlink()


def _differ(one: Path, other: Path) -> bool:
    return not one.is_file() or not filecmp.cmp(one, other, shallow=False)


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
