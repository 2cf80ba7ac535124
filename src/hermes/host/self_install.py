"""Putting `hermes` on the PATH: a link and a completion file, written down before they are made, and taken back whole.

These are the only things that Hermes writes outside its home and the workspace. What was made by somebody else, or has
been changed since, is never replaced and never removed.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from hermes.config import paths
from hermes.disk_trouble import reason_of
from hermes.errors import UserError
from hermes.host.command_word import NAME, is_same, program_file
from hermes.typed import from_json

Shell: TypeAlias = Literal["bash", "zsh", "fish"]
SHELLS: tuple[Shell, ...] = ("bash", "zsh", "fish")
RECORD = "installation.json"
NO_PROGRAM = "this Hermes was started as a module of Python, so there is no program to link to; start it as a command"


class WrittenFile(msgspec.Struct, frozen=True):
    """A link, by what it leads to, or a file, by the hash of what is in it."""

    path: str
    kind: Literal["link", "completion"]
    content: str

    @property
    def is_unchanged(self) -> bool:
        """Whether it still is what was written."""
        file = Path(self.path)
        try:
            if self.kind == "link":
                return file.is_symlink() and str(file.readlink()) == self.content
            return not file.is_symlink() and file.is_file() and hash_of(file.read_bytes()) == self.content
        except OSError:
            return False

    @property
    def is_gone(self) -> bool:
        return not os.path.lexists(self.path)


class InstallRecord(msgspec.Struct):
    """What was offered and written, in `installation.json` of the root home. `folders` were made for the files."""

    offered: bool = False
    files: list[WrittenFile] = []
    folders: list[str] = []
    updated_from: str = ""  # the commits between which the last update went
    updated_to: str = ""


class PlannedWrite(msgspec.Struct, frozen=True):
    """What `hermes install` would write at `path`: a link to `content`, or a file that holds it."""

    path: Path
    kind: Literal["link", "completion"]
    content: str

    @property
    def words(self) -> str:
        return f"{self.path} -> {self.content}" if self.kind == "link" else f"{self.path} (completion)"

    @property
    def written(self) -> WrittenFile:
        content = self.content if self.kind == "link" else hash_of(self.content.encode())
        return WrittenFile(str(self.path), self.kind, content)


class InstallPlan(msgspec.Struct, frozen=True):
    """What is to be written, and sentences about what is not."""

    writes: tuple[PlannedWrite, ...]
    told: tuple[str, ...]


def hash_of(content: bytes) -> str:
    """What a file is known by."""
    return hashlib.sha256(content).hexdigest()


def read_record(root: Path) -> InstallRecord:
    """What is written down; nothing where the file is missing, or is none of ours."""
    try:
        return from_json((root / RECORD).read_bytes(), InstallRecord)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return InstallRecord()


def write_record(root: Path, record: InstallRecord) -> None:
    """Keep `record`, durable when this returns."""
    paths.write_private(root / RECORD, msgspec.json.format(msgspec.json.encode(record)).decode() + "\n")


def shell_of(environ: Mapping[str, str]) -> Shell | None:
    """The person's shell, where completions are known for it."""
    name = Path(environ.get("SHELL", "")).name
    return next((shell for shell in SHELLS if shell == name), None)


def completion_file(environ: Mapping[str, str], shell: Shell) -> Path:
    """Where `shell` looks for a completion of one person's."""
    home = own_home(environ)
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local/share")
    match shell:
        case "bash":
            return data / "bash-completion/completions" / NAME
        case "zsh":
            return data / "zsh/site-functions" / f"_{NAME}"
        case "fish":
            return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "fish/completions" / f"{NAME}.fish"


def own_home(environ: Mapping[str, str]) -> Path:
    """The person's own folder."""
    return Path(environ.get("HOME") or Path.home())


def plan_install(
    environ: Mapping[str, str], record: InstallRecord, completion: tuple[Shell, str] | None
) -> InstallPlan:
    """What to write for this program; `UserError` where its place is taken by somebody else."""
    program = program_file(environ)
    if program is None:
        raise UserError(NO_PROGRAM)
    ours = {one.path: one for one in record.files if one.is_unchanged}
    link = PlannedWrite(own_home(environ) / ".local/bin" / NAME, "link", str(program))
    writes: list[PlannedWrite] = []
    told: list[str] = []
    if is_same(link.path, program):
        told.append(f"{link.path} leads to this Hermes already.")
    elif os.path.lexists(link.path) and str(link.path) not in ours:
        raise UserError(f"{link.path} is there already and is not ours; move it away, then try again")
    else:
        writes.append(link)
    if completion is not None:
        shell, script = completion
        file = PlannedWrite(completion_file(environ, shell), "completion", script)
        if file.written.is_unchanged:
            told.append(f"{file.path} is there already.")
        elif os.path.lexists(file.path) and str(file.path) not in ours:
            told.append(f"{file.path} is there already and is not ours; it stays as it is.")
        else:
            writes.append(file)
    return InstallPlan(tuple(writes), tuple(told))


def carry_out(root: Path, plan: InstallPlan) -> None:
    """Write what is planned. It is written down first: stopped at any point, `take_back` finds all of it."""
    record = read_record(root)
    new = [write.written for write in plan.writes]
    taken = {one.path for one in new}
    folders = [folder for write in plan.writes for folder in _missing_folders(write.path.parent)]
    record.offered = True
    record.files = [*(one for one in record.files if one.path not in taken), *new]
    record.folders = list(dict.fromkeys([*record.folders, *map(str, folders)]))
    before = {one.path: one for one in read_record(root).files}
    write_record(root, record)
    for write in plan.writes:
        try:
            write.path.parent.mkdir(parents=True, exist_ok=True)
            if (old := before.get(str(write.path))) is not None and old.is_unchanged:
                write.path.unlink()  # of an earlier place of this program
            _create(write)
        except OSError as error:
            raise UserError(f"cannot write {str(write.path)!r}: {reason_of(error)}") from error


def take_back(root: Path) -> list[tuple[WrittenFile, Literal["removed", "gone", "changed"]]]:
    """Remove what was written and has not been changed; what became of each. Folders made for it go when empty."""
    record = read_record(root)
    became: list[tuple[WrittenFile, Literal["removed", "gone", "changed"]]] = []
    for one in record.files:
        if one.is_gone:
            became.append((one, "gone"))
        elif one.is_unchanged:
            try:
                Path(one.path).unlink()
            except OSError as error:
                raise UserError(f"cannot remove {one.path!r}: {reason_of(error)}") from error
            became.append((one, "removed"))
        else:
            became.append((one, "changed"))
    for folder in sorted(record.folders, key=len, reverse=True):
        with suppress(OSError):  # not empty, or gone: it is the person's now
            Path(folder).rmdir()
    record.files, record.folders = [], []
    write_record(root, record)
    return became


def _create(write: PlannedWrite) -> None:
    """Make the link or the file; one that appeared meanwhile is not replaced."""
    if write.kind == "link":
        write.path.symlink_to(write.content)
        return
    handle = os.open(write.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
        out.write(write.content)


def _missing_folders(folder: Path) -> list[Path]:
    return [each for each in (folder, *folder.parents) if not each.exists()]
