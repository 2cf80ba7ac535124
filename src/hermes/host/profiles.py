"""Profiles on disk: homes under the root home, made, cloned, moved and packed whole or not at all."""

import contextlib
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

from hermes.config import paths
from hermes.config.paths import write_private
from hermes.errors import UserError
from hermes.state.sqlite.connection import copy_file

_CLONED = ("config.yaml", ".env", "SOUL.md", "memories", "skills")
_LEFT_OUT = ("profiles", "active_profile", "bin", "cache", "logs", "gateway.pid", "processes.json")
_SECRET = (".env", "auth.json")
_SCRIPT = '#!/bin/sh\nexec hermes -p {profile} "$@"\n'


def every(root: Path) -> list[tuple[str, Path]]:
    """Name and home of each profile, the default first."""
    folder = paths.profiles_dir(root)
    named = sorted(each for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []
    return [(paths.DEFAULT_PROFILE, root), *((each.name, each) for each in named if not each.name.startswith("."))]


def existing(root: Path, name: str) -> Path:
    """The home of profile `name`; `UserError` when there is none."""
    home = paths.profile_home(root, name)
    if home != root and not home.is_dir():
        raise UserError(f"there is no profile {name!r}; see: hermes profile list")
    return home


def create(root: Path, name: str, source: Path | None, *, everything: bool = False) -> Path:
    """Make profile `name`, as a clone of `source` when one is given."""
    home = _free(root, name)
    with _whole(home) as draft:
        if source is not None:
            wanted = [each.name for each in source.iterdir()] if everything and source.is_dir() else list(_CLONED)
            for each in wanted:
                if each not in _LEFT_OUT:
                    _copy(source / each, draft / each)
    return home


def use(root: Path, name: str) -> None:
    """Remember `name` as the profile to use."""
    existing(root, name)
    if name == paths.DEFAULT_PROFILE:
        paths.sticky_file(root).unlink(missing_ok=True)
    else:
        write_private(paths.sticky_file(root), f"{name}\n")


def rename(root: Path, old: str, new: str) -> None:
    """Give the profile `old` the name `new`."""
    home = existing(root, old)
    if home == root:
        raise UserError("the default profile keeps its name; its home is the root of the others")
    target = _free(root, new)
    home.rename(target)
    for file in aliases(root, old):
        file.write_text(_SCRIPT.format(profile=new), encoding="utf-8")
    if paths.sticky_profile(root) == old:
        use(root, new)


def delete(root: Path, name: str) -> None:
    """Delete the profile; when it was the one in use, the default takes its place."""
    home = existing(root, name)
    gone = home.with_name(f".{home.name}.deleted")
    home.rename(gone)  # from here on it is no profile, even if the rest is interrupted
    if paths.sticky_profile(root) == name:
        use(root, paths.DEFAULT_PROFILE)
    for file in aliases(root, name):
        file.unlink()
    shutil.rmtree(gone)


def alias(root: Path, profile: str, name: str, search: str) -> Path:
    """Make a command that is `hermes -p PROFILE`; its file. It must not hide another one on the PATH `search`."""
    existing(root, profile)
    paths.check_profile_name(name)
    file = _bin(root) / name
    other = shutil.which(name, path=search)
    if other is not None and Path(other) != file:
        raise UserError(f"{name!r} is a command already ({other}); choose another name with --name")
    paths.made(file.parent)
    file.write_text(_SCRIPT.format(profile=profile), encoding="utf-8")
    file.chmod(0o700)
    return file


def aliases(root: Path, profile: str) -> list[Path]:
    """The commands that stand for this profile."""
    files = sorted(_bin(root).iterdir()) if _bin(root).is_dir() else []
    return [file for file in files if file.read_text(encoding="utf-8") == _SCRIPT.format(profile=profile)]


def _bin(root: Path) -> Path:
    return root / "bin"


def facts(home: Path) -> dict[str, str]:
    """What a profile holds, in a person's words."""
    skills = paths.skills_dir(home)
    state = paths.state_file(home)
    return {
        "home": str(home),
        "settings": "config.yaml" if paths.config_file(home).exists() else "defaults",
        "secrets": ".env" if paths.env_file(home).exists() else "none",
        "sessions": f"{state.stat().st_size / 1e6:.1f} MB" if state.exists() else "none",
        "skills": str(sum(1 for _ in skills.rglob("SKILL.md"))) if skills.is_dir() else "none",
    }


def export(home: Path, output: str, *, with_secrets: bool) -> Path:
    """Pack a profile; the archive is private, since it holds sessions."""
    if not home.is_dir():
        raise UserError(f"there is nothing in {home} yet")
    left_out = (*_LEFT_OUT, *(() if with_secrets else _SECRET))
    file = Path(output).absolute()
    draft = file.with_name(f".{file.name}.draft")
    draft.touch(mode=0o600)
    try:
        with tarfile.open(draft, "w:gz") as archive:
            for each in sorted(home.iterdir()):
                if each.name in left_out or each.name.endswith(("-wal", "-shm")):
                    continue
                if each.name == "state.db":
                    _add_store(archive, each, draft)
                else:
                    archive.add(each, arcname=each.name)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    return file


def import_archive(root: Path, archive: str, name: str | None) -> tuple[str, Path]:
    """Make a profile from what `export` wrote."""
    name = name or Path(archive).name.partition(".")[0].lower()
    home = _free(root, name)
    with _whole(home) as draft:
        try:
            with tarfile.open(archive) as packed:
                _extract(packed, draft)
        except (tarfile.TarError, OSError) as error:
            raise UserError(f"cannot unpack {archive!r}: {error}") from error
    return name, home


def _extract(packed: tarfile.TarFile, folder: Path) -> None:
    """Unpack files and folders; a link, a device or a path that leads out of `folder` is a `TarError`."""
    if hasattr(tarfile, "data_filter"):
        packed.extractall(folder, filter="data")
        return
    for member in packed.getmembers():  # a Python 3.11 before 3.11.4, such as Debian 12's, has no filter of its own
        inside = (folder / member.name).resolve().is_relative_to(folder.resolve())
        if not inside or not (member.isreg() or member.isdir()):
            raise tarfile.TarError(f"{member.name!r} is no file of this folder")
    packed.extractall(folder)  # noqa: S202 - each member was looked at


def _free(root: Path, name: str) -> Path:
    home = paths.profile_home(root, name)
    if home == root or home.exists():
        raise UserError(f"there is a profile {name!r} already; see: hermes profile list")
    return home


@contextlib.contextmanager
def _whole(home: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `home` at the end, or is gone if that is not reached."""
    paths.made(home.parent)
    draft = home.with_name(f".{home.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    try:
        yield draft
        draft.rename(home)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    if source.name.endswith(("-wal", "-shm")):
        return
    if source.name == "state.db":
        copy_file(source, target)
    elif source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    elif source.exists():
        shutil.copy2(source, target)


def _add_store(archive: tarfile.TarFile, store: Path, beside: Path) -> None:
    copy = beside.with_name(f"{beside.name}.db")
    try:
        copy_file(store, copy)
        archive.add(copy, arcname=store.name)
    finally:
        copy.unlink(missing_ok=True)
