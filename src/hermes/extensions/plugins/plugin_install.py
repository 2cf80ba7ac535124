"""Take a plugin from a folder or a git repository into the home, take a newer one, and remove one. Nothing is run.

A plugin is written beside its place first and then put there in one step: whatever fails, the old one stays whole.
"""

import asyncio
import io
import os
import re
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from hermes.config import paths
from hermes.errors import ToolError, UserError
from hermes.extensions.plugins.manifest import FILES, PluginManifest, read_manifest
from hermes.own_git import OwnGit
from hermes.typed import from_json

ORIGIN = ".hermes-plugin.json"  # beside the manifest: where it was taken from
FETCH_LIMIT_S = 120.0
MAX_BYTES = 64_000_000
MAX_FILES = 5000
_ADDRESS = re.compile(r"(?:https|ssh|file)://\S+|[\w.-]+@[\w.-]+:[^\s:][^\s]*")
_OWNER_AND_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_PURPOSE = "take a plugin"


class PluginOrigin(Struct, frozen=True, kw_only=True):
    """Where a plugin was taken from."""

    address: str
    commit: str = ""
    taken_at: float = 0.0


class FetchedPlugin(Struct, frozen=True, kw_only=True):
    """A plugin as it is there now: its files, and what its manifest says."""

    files: dict[str, bytes]
    manifest: PluginManifest
    origin: PluginOrigin


def address_of(words: str) -> str:
    """The git address or folder that a person means; `owner/name` is a repository of GitHub."""
    if _ADDRESS.fullmatch(words):
        return words
    folder = Path(words).expanduser()
    if words and folder.is_dir():  # no words would be the folder that somebody happens to be in
        return str(folder.resolve())
    if _OWNER_AND_NAME.fullmatch(words):
        return f"https://github.com/{words}.git"
    raise UserError(f"{words!r} is neither a folder nor a git address nor owner/name")


async def fetch_plugin(words: str, git_in: Callable[[Path], OwnGit]) -> FetchedPlugin:
    """The plugin that `words` name; `UserError` says why it cannot be had."""
    address = address_of(words)
    if not _ADDRESS.fullmatch(address):
        files, commit = _folder_files(Path(address)), ""
    else:
        with tempfile.TemporaryDirectory(prefix="hermes-plugin-") as place:
            try:
                async with asyncio.timeout(FETCH_LIMIT_S):
                    files, commit = await _git_files(git_in(Path(place)), address)
            except ToolError as error:
                raise UserError(f"git is needed to take a plugin from {address}: {error}") from error
            except TimeoutError as error:
                raise UserError(f"{address} did not answer within {FETCH_LIMIT_S:g} s") from error
    origin = PluginOrigin(address=address, commit=commit, taken_at=time.time())
    fallback = address.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return FetchedPlugin(files=files, manifest=_manifest_in(files, fallback), origin=origin)


def place(fetched: FetchedPlugin, home: Path, *, force: bool = False) -> PluginManifest:
    """Put the plugin into the home; one that is there already is replaced with `force` alone."""
    target = home / "plugins" / fetched.manifest.name
    if target.exists() and not force:
        raise UserError(
            f"there is a plugin {fetched.manifest.name!r} already; hermes plugins update {fetched.manifest.name} takes "
            "a newer one, --force replaces it"
        )
    paths.made(home)
    paths.make_private(target.parent)
    beside = Path(tempfile.mkdtemp(prefix=".taking-", dir=target.parent))
    try:
        _write(beside, {**fetched.files, ORIGIN: msgspec.json.encode(fetched.origin)})
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=".old-", dir=target.parent))
            target.rename(old / target.name)
            try:
                beside.rename(target)
            except OSError:
                (old / target.name).rename(target)
                raise
            finally:
                shutil.rmtree(old, ignore_errors=True)
        else:
            beside.rename(target)
    except OSError as error:
        raise UserError(f"the plugin cannot be written to {str(target)!r}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return read_manifest(target)


def origin_of(manifest: PluginManifest) -> PluginOrigin:
    """Where an installed plugin was taken from; `UserError` for one that was put there by hand."""
    try:
        return from_json((Path(manifest.path) / ORIGIN).read_bytes(), PluginOrigin)
    except FileNotFoundError as error:
        raise UserError(
            f"the plugin {manifest.key!r} was not installed by Hermes; its files are yours to change"
        ) from error
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise UserError(
            f"cannot read where {manifest.key!r} is from: {error}; install it again with --force"
        ) from error


def remove(manifest: PluginManifest, home: Path) -> None:
    """Delete an installed plugin; one of a project or a package is not ours to delete."""
    if manifest.source == "entrypoint":
        raise UserError(f"{manifest.key!r} is part of an installed package; remove that with pip")
    folder = Path(manifest.path)
    if manifest.source != "user" or (home / "plugins").resolve() not in folder.resolve().parents:
        raise UserError(f"{manifest.key!r} is in {folder}, which is not the home's; delete it there")
    if folder.is_symlink():
        folder.unlink()  # made by hand, to a folder that is somebody's work
        return
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise UserError(f"cannot delete {str(folder)!r}: {error.strerror or error}") from error


def changed_files(fetched: FetchedPlugin, manifest: PluginManifest) -> list[str]:
    """What an update would change, a file a line."""
    old = _folder_files(Path(manifest.path))
    lines = [f"new: {name}" for name in sorted(fetched.files.keys() - old.keys())]
    lines += [f"gone: {name}" for name in sorted(old.keys() - fetched.files.keys())]
    return lines + [
        f"changed: {name}"
        for name in sorted(fetched.files)
        if old.get(name, fetched.files[name]) != fetched.files[name]
    ]


async def _git_files(git: OwnGit, address: str) -> tuple[dict[str, bytes], str]:
    async def ask(*words: str, most_bytes: int | None = None) -> bytes:
        answer = await git.ask(*words, purpose=_PURPOSE, most_bytes=most_bytes)
        if answer.code:
            raise UserError(f"the plugin cannot be taken from {address}: {answer.complaint[:300]}")
        return answer.output

    await ask("init", "-q", "--bare", "--template=", ".")
    quiet = ("fetch", "-q", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-commit-graph")
    await ask(*quiet, "--", address, "HEAD")
    commit = (await ask("rev-parse", "--verify", "FETCH_HEAD^{commit}")).decode().strip()
    packed = await ask("archive", "--format=tar", commit, most_bytes=MAX_BYTES + 10_000_000)
    return _unpacked(packed), commit


def _unpacked(packed: bytes) -> dict[str, bytes]:
    """The files of an archive. It is read in memory: no name in it decides where anything is written."""
    found: dict[str, bytes] = {}
    size = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for member in archive:
                if member.isdir() or "__pycache__" in member.name.split("/"):
                    continue
                if not member.isreg():
                    raise UserError(f"{member.name!r} is a link; a plugin from elsewhere may hold none")
                size += member.size
                _check(member.name, size, len(found) + 1)
                opened = archive.extractfile(member)
                assert opened is not None
                found[member.name] = opened.read()
    except tarfile.TarError as error:
        raise UserError(
            f"the plugin is larger than {MAX_BYTES // 1_000_000} MB, or was sent broken: {error}"
        ) from error
    return found


def _folder_files(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    size = 0
    for where, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if name not in ("__pycache__", ".git"))
        for name in sorted(names):
            file = Path(where, name)
            inside = file.relative_to(folder).as_posix()
            if name == ORIGIN or name.endswith(".pyc"):
                continue
            if file.is_symlink() or not file.is_file():
                raise UserError(f"{inside!r} is a link; a plugin that is taken from elsewhere may hold none")
            size += file.stat().st_size
            _check(inside, size, len(found) + 1)
            found[inside] = file.read_bytes()
    return found


def _check(name: str, size: int, count: int) -> None:
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or "\0" in name or not parts:
        raise UserError(f"{name!r} is no name of a file inside the plugin")
    if size > MAX_BYTES or count > MAX_FILES:
        raise UserError(f"the plugin has more than {MAX_BYTES // 1_000_000} MB or {MAX_FILES} files; it is not taken")


def _manifest_in(files: Mapping[str, bytes], fallback: str) -> PluginManifest:
    """What the manifest among the files says; read from a folder of its own, by the reader of all manifests."""
    if not any(name in files for name in FILES):
        raise UserError(f"there is no {FILES[0]} in it, so it is no plugin")
    with tempfile.TemporaryDirectory(prefix="hermes-plugin-") as made:
        folder = Path(made) / (re.sub(r"[^\w.-]", "-", fallback) or "plugin")
        folder.mkdir()
        _write(folder, {name: data for name, data in files.items() if name in (*FILES, "__init__.py")})
        found = read_manifest(folder)
    if found.error:
        raise UserError(f"the plugin cannot be used: {found.error}")
    if not re.fullmatch(r"[\w][\w.-]*", found.name):
        raise UserError(f"{found.name!r} is no name for a folder; plugin.yaml must name the plugin by a word")
    return found


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
