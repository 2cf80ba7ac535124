"""Where a path leads on this disk: through symbolic links, and from a second name of a guarded file to its own."""

import os
import stat
from pathlib import Path

from hermes.tools.approval.command_text import words
from hermes.tools.approval.paths import is_guarded_name
from hermes.tools.approval.tables import word_list

_PROFILES = "profiles"  # each of them is a home of its own
_IN_HOME = words(". .ssh .aws .config/git .config/gh .docker .kube .gnupg .config/fish .config/systemd/user")


class RealPaths:
    """Follows links. A file may have several names, and the one that is written need not be the telling one."""

    def __init__(self, home: str, own_home: str) -> None:
        self._home = home
        self._own_home = own_home
        self._stamp: tuple[int, ...] = ()
        self._folders: list[str] = []
        self._names: dict[tuple[int, int], str] = {}  # guarded files by device and inode

    def __call__(self, path: str) -> str:
        try:
            found = os.path.realpath(path)
        except (OSError, ValueError):  # no such name can be on a disk
            return path
        about = _about(found)
        if about is not None and stat.S_ISREG(about.st_mode) and about.st_nlink > 1:
            return self._guarded().get((about.st_dev, about.st_ino), found)
        return found

    def _guarded(self) -> dict[tuple[int, int], str]:
        """Looked for again when a folder has changed. Most files with several names are of package stores, and one
        command may name thousands of them.
        """
        if not self._folders or self._stamp != _stamp(self._folders):
            self._folders, self._names = [], {}
            self._look_at_own(self._own_home)
            for name in _names_in(f"{self._own_home}/{_PROFILES}"):
                self._look_at_own(f"{self._own_home}/{_PROFILES}/{name}")
            for name in _IN_HOME:
                folder = os.path.normpath(f"{self._home}/{name}")
                self._keep(
                    folder,
                    [file for file in _names_in(folder) if name != "." or file in word_list("real_paths.settings")],
                )
            self._stamp = _stamp(self._folders)
        return self._names

    def _look_at_own(self, home: str) -> None:
        guarded = [name for name in _names_in(home) if name != _PROFILES and is_guarded_name(name)]
        self._keep(home, guarded)
        for name in guarded:
            for folder, _, files in os.walk(f"{home}/{name}"):
                self._keep(folder, files)

    def _keep(self, folder: str, names: list[str]) -> None:
        self._folders.append(folder)
        for name in names:
            about = _about(f"{folder}/{name}")
            if about is not None and stat.S_ISREG(about.st_mode):
                self._names[about.st_dev, about.st_ino] = f"{folder}/{name}"


def _about(path: str) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except (OSError, ValueError):
        return None


def _names_in(folder: str) -> list[str]:
    try:
        return [file.name for file in Path(folder).iterdir()]
    except OSError:
        return []


def _stamp(folders: list[str]) -> tuple[int, ...]:
    return tuple(about.st_mtime_ns if (about := _about(folder)) is not None else 0 for folder in folders)
