"""Where a skill comes from: a folder of this machine, or a commit of a git repository."""

import asyncio
import io
import re
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from hermes.errors import ToolError, UserError
from hermes.extensions.skills.skill_file import FILE
from hermes.extensions.skills.skill_folder import MAX_FOLDER_BYTES, check_names, check_size, read_folder
from hermes.own_git import GitAnswer, OwnGit

FETCH_LIMIT_S = 120.0
_ADDRESS = re.compile(r"(?:https|ssh|file)://\S+|[\w.-]+@[\w.-]+:[^\s:][^\s]*")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_REF = re.compile(r"[A-Za-z0-9][\w./-]{0,200}")


class SkillSource(Struct, frozen=True, kw_only=True):
    """What a person named. `ref` is a branch, a tag or a commit; `path` a folder in the repository."""

    address: str
    ref: str = ""
    path: str = ""

    @property
    def is_git(self) -> bool:
        return bool(_ADDRESS.fullmatch(self.address))


class FetchedSkill(Struct, frozen=True):
    """A skill as it is there now."""

    files: dict[str, bytes]
    name: str
    commit: str = ""
    path: str = ""


def source_of(address: str, ref: str = "", path: str = "") -> SkillSource:
    """The source that these words name; `UserError` when they name none."""
    if _ADDRESS.fullmatch(address):
        if ref and not _REF.fullmatch(ref):
            raise UserError(f"{ref!r} is no name of a branch, tag or commit")
        if path.startswith(("/", "-")) or ".." in Path(path).parts:
            raise UserError(f"--path {path!r} must be a folder inside the repository")
        return SkillSource(address=address, ref=ref, path=path.strip("/"))
    if re.match(r"[a-z][a-z0-9+.-]*:", address):
        raise UserError(
            f"{address!r} is no address that skills are taken from; use https://, ssh://, file:// or a folder"
        )
    if ref:
        raise UserError("--ref is for git addresses; a folder has no versions")
    folder = Path(address).expanduser()
    folder = folder / path if path else folder
    if not address or not folder.is_dir():  # no words would be the folder that somebody happens to be in
        raise UserError(f"{address!r} is neither a folder nor a git address")
    return SkillSource(address=str(folder.resolve()))


async def fetch(source: SkillSource, git_in: Callable[[Path], OwnGit]) -> FetchedSkill:
    """The skill as it is there now; `UserError` says why it cannot be had. Nothing of it is run or checked out."""
    if not source.is_git:
        folder = Path(source.address)
        return FetchedSkill(read_folder(folder), folder.name)
    with tempfile.TemporaryDirectory(prefix="hermes-skill-") as place:
        git = git_in(Path(place))
        try:
            async with asyncio.timeout(FETCH_LIMIT_S):
                commit = await _fetched_commit(git, source)
                return await _unpacked(git, source, commit)
        except ToolError as error:
            raise UserError(f"git is needed to take a skill from {source.address}: {error}") from error
        except TimeoutError as error:
            raise UserError(f"{source.address} did not answer within {FETCH_LIMIT_S:g} s") from error


async def newest_commit(source: SkillSource, git_in: Callable[[Path], OwnGit]) -> str:
    """The commit that the source's ref is at now; empty for one that is pinned to a commit."""
    if _COMMIT.fullmatch(source.ref):
        return ""
    with tempfile.TemporaryDirectory(prefix="hermes-skill-") as place:
        async with asyncio.timeout(FETCH_LIMIT_S):
            asked = await git_in(Path(place)).ask(
                "ls-remote", "--", source.address, source.ref or "HEAD", purpose="look"
            )
    if asked.code:
        raise UserError(f"{source.address} cannot be looked at: {asked.complaint[:300]}")
    lines = asked.output.decode("utf-8", "replace").splitlines()
    # Of a tag that is an object of its own, the last line names the commit it stands for.
    return lines[-1].split()[0] if lines else ""


async def _fetched_commit(git: OwnGit, source: SkillSource) -> str:
    _good(await git.ask("init", "-q", "--bare", "--template=", ".", purpose="take a skill"), source)
    words = ("fetch", "-q", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-commit-graph")
    _good(await git.ask(*words, "--", source.address, source.ref or "HEAD", purpose="take a skill"), source)
    told = _good(await git.ask("rev-parse", "--verify", "FETCH_HEAD^{commit}", purpose="take a skill"), source)
    return told.output.decode().strip()


async def _unpacked(git: OwnGit, source: SkillSource, commit: str) -> FetchedSkill:
    listed = _good(await git.ask("ls-tree", "-r", "-z", "--name-only", commit, purpose="take a skill"), source)
    names = listed.output.decode("utf-8", "surrogateescape").split("\0")
    path = _skill_path(source, names)
    words = ("archive", "--format=tar", commit, *(("--", path) if path else ()))
    packed = await git.ask(*words, purpose="take a skill", most_bytes=4 * MAX_FOLDER_BYTES)
    _good(packed, source)
    if len(packed.output) >= 4 * MAX_FOLDER_BYTES:
        raise UserError(f"the skill has more than {MAX_FOLDER_BYTES // 1024 // 1024} MB; it is not taken")
    name = path.rpartition("/")[2] or source.address.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return FetchedSkill(_files(packed.output, path), name, commit, path)


def _skill_path(source: SkillSource, names: list[str]) -> str:
    """The folder of the one skill that is meant; `UserError` lists those there are when it is not clear."""
    skills = [name.removesuffix(FILE).rstrip("/") for name in names if name == FILE or name.endswith(f"/{FILE}")]
    if source.path in skills:
        return source.path
    below = [one for one in skills if not source.path or one.startswith(f"{source.path}/")]
    if len(below) == 1 and not source.path:
        return below[0]
    if not below:
        raise UserError(f"there is no {FILE} in {source.path or source.address!r}")
    more = f" and {len(below) - 12} more" if len(below) > 12 else ""
    raise UserError(f"several skills are there; name one with --path: {', '.join(sorted(below)[:12])}{more}")


def _files(packed: bytes, path: str) -> dict[str, bytes]:
    """The files of an archive below `path`. It is read in memory: no name in it decides where anything is written."""
    found: dict[str, bytes] = {}
    total = 0
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            name = member.name[len(path) :].lstrip("/") if path else member.name
            if member.isdir() or not name or "__pycache__" in name.split("/"):
                continue
            if not member.isreg():
                raise UserError(f"{name!r} is a link; a skill from elsewhere may hold none")
            total += member.size
            check_size(name, member.size, total, len(found) + 1)
            opened = archive.extractfile(member)
            assert opened is not None
            found[name] = opened.read()
    check_names(found)
    return found


def _good(answer: GitAnswer, source: SkillSource) -> GitAnswer:
    if answer.code:
        raise UserError(f"the skill cannot be taken from {source.address}: {answer.complaint[:300]}")
    return answer


def is_address(text: str) -> bool:
    """Whether a person means a place elsewhere, not the name of a skill."""
    return "/" in text or ":" in text or text.startswith((".", "~")) or Path(text).is_dir()
