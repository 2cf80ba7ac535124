"""Where the skills of a home come from: made by the agent, installed from elsewhere, bundled. One file beside them.

What is not in it was put there by hand and is the person's own. A skill that was installed counts as long as its files
are those that a person has seen: their hash is kept here.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct, field

from hermes.config import paths
from hermes.errors import UserError
from hermes.typed import from_json

FILE = ".lock.json"
_GUARD = ".lock"  # held while the file or a skill changes
_REPLACED = ".replaced"  # what a skill was, until the new one counts
Kind: TypeAlias = Literal["agent", "installed", "bundled", "own"]


class LockEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One skill's origin. `hash` is what counts, `taken` what it was when it came; they differ once it was edited."""

    kind: Kind
    hash: str
    taken: str = ""
    at: float = 0.0
    source: str = ""  # a folder or a git address
    ref: str = ""  # the branch or tag that updates follow
    commit: str = ""
    path: str = ""  # the skill's folder in the repository
    session: str = ""  # that the agent made it in
    write_origin: str = ""  # assistant_tool, background_review
    seen: tuple[str, ...] = ()  # findings that the person took it with
    is_pinned: bool = False


class _Lock(Struct, frozen=True):
    version: int = 1
    skills: dict[str, LockEntry] = field(default_factory=dict)


class LockFile:
    """The lock file of a folder of skills, by the skills' places below it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / FILE

    def entries(self) -> Mapping[str, LockEntry]:
        """All entries. `UserError` when the file is there and cannot be read: nothing is guessed then."""
        try:
            data = self._file.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UserError(f"cannot read {str(self._file)!r}: {error.strerror}") from error
        try:
            return from_json(data, _Lock).skills
        except msgspec.DecodeError as error:
            raise UserError(
                f"{str(self._file)!r} is damaged ({error}); mend it, or move it away: all skills then count as yours"
            ) from error

    def entry(self, place: str) -> LockEntry | None:
        return self.entries().get(place)

    @contextmanager
    def changing(self) -> Iterator[dict[str, LockEntry]]:
        """The entries, to be changed; written when the block ends well. One process at a time is inside."""
        paths.made(self.folder)
        guard = os.open(self.folder / _GUARD, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            self._recover()
            before = self.entries()
            entries = dict(before)
            yield entries
            if entries != before:
                text = msgspec.json.format(msgspec.json.encode(_Lock(1, dict(sorted(entries.items())))), indent=2)
                paths.write_private(self._file, text.decode() + "\n")
        finally:
            os.close(guard)

    def replace_folder(self, place: str, files: Mapping[str, bytes]) -> None:
        """Make the skill's folder hold exactly these files: the old ones or the new ones, never a mixture.

        Call it inside `changing`. A kill in between leaves the old folder set aside, and the next change puts it back.
        """
        target = self.folder / place
        fresh = self.folder / f".new-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            write_files(fresh, files)
            paths.made(target.parent)
            if target.exists():
                target.rename(paths.made(self.folder / _REPLACED) / quote(place, safe=""))
            fresh.rename(target)
        except OSError as error:
            raise UserError(f"cannot write the skill {place!r}: {error.strerror}") from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        self._recover()

    def archive_folder(self, place: str) -> None:
        """Set the skill aside in `.archive`, where a person finds it again. Call it inside `changing`."""
        aside = paths.made(self.folder / ".archive") / f"{quote(place, safe='')}-{time.strftime('%Y%m%d-%H%M%S')}"
        try:
            (self.folder / place).rename(aside.with_name(f"{aside.name}-{os.urandom(2).hex()}"))
        except OSError as error:
            raise UserError(f"cannot remove the skill {place!r}: {error.strerror}") from error
        self._drop_empty(place)

    def remove_folder(self, place: str) -> None:
        """Take the skill away, and its category when that is empty then. Call it inside `changing`."""
        target = self.folder / place
        gone = self.folder / f".new-{os.getpid()}-{os.urandom(4).hex()}"
        try:
            target.rename(gone)
        except OSError as error:
            raise UserError(f"cannot remove the skill {place!r}: {error.strerror}") from error
        shutil.rmtree(gone, ignore_errors=True)
        self._drop_empty(place)

    def _drop_empty(self, place: str) -> None:
        """Categories that hold nothing but their description go."""
        for parent in (self.folder / place).parents:
            if parent == self.folder:
                break
            with suppress(OSError):  # something else is in it
                if [one.name for one in parent.iterdir()] == ["DESCRIPTION.md"]:
                    (parent / "DESCRIPTION.md").unlink()
                parent.rmdir()

    def _recover(self) -> None:
        """Put back what a kill left set aside; drop what was only half made."""
        for old in [*(self.folder / _REPLACED).glob("*")]:
            target = self.folder / unquote(old.name)
            if target.exists():
                shutil.rmtree(old, ignore_errors=True)
            else:
                paths.made(target.parent)
                old.rename(target)
        for half in self.folder.glob(".new-*"):
            shutil.rmtree(half, ignore_errors=True)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write these files below `folder`, readable by their owner alone; what begins with `#!` may be run."""
    for name, data in files.items():
        file = folder / name
        paths.made(file.parent)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700 if data.startswith(b"#!") else 0o600)
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
