"""Which skills are on disk, by name and time alone; and the list for the prompt as it was last made of them.

A start with hundreds of skills looks at their files and reads one: the list that was kept, if nothing was changed.
"""

import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes.config import paths
from hermes.config.sections.skills import Section
from hermes.errors import UserError

SKILL_FILE = "SKILL.md"
CATEGORY_FILE = "DESCRIPTION.md"
DEEPEST = 3  # skills/[category/[category/]]name
Stamp = tuple[int, int, int]  # mtime, size and inode
log = logging.getLogger(__name__)


def skill_roots(own: Path, section: Section) -> tuple[str, ...]:
    """The folders that skills are looked for in: the home's own first."""
    folders = (os.path.expanduser(folder) for folder in section.external_dirs)  # noqa: PTH111 - no error for an unknown user
    return tuple(dict.fromkeys((str(own), *folders)))


def skill_files(root: str, deeper: int = DEEPEST) -> Iterator[tuple[str, Stamp]]:
    """Every SKILL.md below, with its stamp. Folders that cannot be read hold no skills."""
    try:
        with os.scandir(root) as entries:
            names = sorted(entry.name for entry in entries if entry.name[0] != "." and entry.is_dir())
    except OSError:
        return
    for name in names:
        file = f"{root}/{name}/{SKILL_FILE}"
        stamp = _stamp(file)
        if stamp is not None:
            yield file, stamp
        elif deeper > 1:
            yield from skill_files(f"{root}/{name}", deeper - 1)


class KeptIndex:
    """The list that was last made for a session of these `facts`: its tools, the settings, the version of Hermes."""

    def __init__(self, home: Path, roots: Sequence[str], beside: Sequence[str], facts: object) -> None:
        found = [one for root in roots for one in skill_files(root)]
        folders = sorted({os.path.dirname(os.path.dirname(file)) for file, _ in found})  # noqa: PTH120 - hundreds
        more = [(file, _stamp(file)) for file in (*beside, *(f"{folder}/{CATEGORY_FILE}" for folder in folders))]
        known = repr((found, more, facts)).encode("utf-8", "surrogatepass")
        self._key = hashlib.blake2b(known, digest_size=16).hexdigest()
        self._file = paths.cache_dir(home) / "skill-index.txt"

    def text(self) -> str | None:
        """None when something has changed since."""
        try:
            key, _, text = self._file.read_text(encoding="utf-8").partition("\n")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            log.info("the list of skills that was kept cannot be used: %s", error)
            return None
        return text if key == self._key else None

    def keep(self, text: str) -> None:
        try:
            paths.write_private(self._file, f"{self._key}\n{text}")
        except (UserError, ValueError) as error:  # a name that is no text, or a disk that is full: it costs time only
            log.info("the list of skills was not kept: %s", error)


def _stamp(file: str) -> Stamp | None:
    try:
        info = os.stat(file)  # noqa: PTH116 - hundreds at the start of a session
    except OSError:
        return None
    return info.st_mtime_ns, info.st_size, info.st_ino
