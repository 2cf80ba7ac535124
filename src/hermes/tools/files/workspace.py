"""The file tools' way to the session's environment: paths, rules, whole reads and checked writes."""

import os
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import structs

from hermes.config.paths import hermes_home, profiles_dir, root_home
from hermes.confinement.deciding_rule import deciding_rule
from hermes.confinement.policy import TEMP_FOLDERS, ConfinedEnvironment, Confinement
from hermes.errors import ToolError
from hermes.seams import OPEN_BUFFERS, Action, Decision, FileInfo, OpenBuffers, ToolContext
from hermes.tools.files import paths
from hermes.tools.files.encoding import Decoded, NotTextError, decode
from hermes.tools.files.file_memory import FileMemo, digest
from hermes.tools.files.paths import PathRules
from hermes.tools.files.reencode import Veil

MAX_EDITED_BYTES = 64 * 1024 * 1024
HANDLE_PREFIX = "hermes://result/"
_MAX_NAMES = 20_000
_MAX_CURRENT_CHARS = 20_000
# What only a result's display contains: text that has it was copied from a display, and lacks what was cut there.
_DISPLAY_MARKS = (("[line cut, ", "a line that read_file has cut"), ('"content_returned": false', "a status message"))


@dataclass(frozen=True, slots=True)
class WorkspacePath:
    """A path of the environment: as given, absolute, and where it leads with links followed; `info` when it exists."""

    given: str
    path: str
    resolved: str
    info: FileInfo | None
    unsaved: bytes | None = None  # what an editor holds of it and has not saved; `info` is about that, then
    on_disk: FileInfo | None = None

    @property
    def extension(self) -> str:
        return posixpath.splitext(self.path)[1].lstrip(".").lower()


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file in memory, ready to be edited; `decoded` is None for a file that does not exist."""

    place: WorkspacePath
    data: bytes
    decoded: Decoded | None

    @property
    def text(self) -> str | None:
        return self.decoded.text if self.decoded else None


EditTexts: TypeAlias = Callable[[], tuple[str | None, str | None]]  # a file before and after; None: there is none


@runtime_checkable
class ExactFiles(Protocol):
    """An environment that reaches files by descriptors: at real paths, through no link that came since."""

    async def read_exact(self, path: str, offset: int = 0, size: int | None = None) -> bytes: ...
    async def write_exact(self, path: str, data: bytes, *, mode: int | None = None) -> None: ...
    async def remove_exact(self, path: str) -> None: ...


class Workspace:
    """One call's access to files."""

    def __init__(self, ctx: ToolContext, tool: str, *, cross_profile: bool = False) -> None:
        self._ctx = ctx
        self._tool = tool
        self._cross_profile = cross_profile
        self._known_rules: PathRules | None = None
        self._agreed: set[str] = set()  # what a person was asked about and allowed in this call
        self.memo = FileMemo.of(ctx.memo)
        security = ctx.settings.get("security") or {}
        self.veil = Veil(self.memo.redactor, is_on=bool(security.get("redact_secrets", True)))

    async def locate(self, given: str) -> WorkspacePath:
        """Where `given` leads; the file need not exist."""
        if given.startswith(HANDLE_PREFIX):
            raise ToolError(f"{given!r} is a kept result: read_file and search_files open it, and nothing changes it")
        if not given.strip():
            raise ToolError("the path is empty; name a file")
        if "\0" in given:
            raise ToolError("the path contains a NUL character; no file has such a name")
        path = paths.absolute(given, cwd=self._ctx.environment.cwd, home=await self._home())
        if path.startswith(TEMP_FOLDERS):
            await self._confinement()  # commands may have a temporary folder of their own
        info = await self._ctx.environment.stat(path)
        if info is not None:
            return await self._as_edited(WorkspacePath(given, path, info.path, info, on_disk=info))
        return WorkspacePath(given, path, await self._future_path(path), None)

    async def _as_edited(self, place: WorkspacePath) -> WorkspacePath:
        """`place` with what an editor has not saved yet, where one is asked and has something."""
        buffers: OpenBuffers | None = self._ctx.memo.get(OPEN_BUFFERS)
        info = place.info
        if buffers is None or info is None or info.kind != "file" or info.size > MAX_EDITED_BYTES:
            return place
        text = await buffers.text(place.resolved)
        if text is None:
            return place
        unsaved = text.encode()
        if unsaved == await self.read(place):
            return place
        # Its time is made of its words, so that other words are another file for whoever compares.
        time_ns = int.from_bytes(sha256(unsaved).digest()[:6])
        return replace(place, unsaved=unsaved, info=structs.replace(info, size=len(unsaved), mtime_ns=time_ns))

    async def refuse_read(self, place: WorkspacePath) -> str | None:
        """Why the path may not be read, or None."""
        refusal = paths.refuse_read(place.path, place.resolved, place.info, await self._rules())
        return refusal or await self.refuse_look(place)

    async def refuse_look(self, place: WorkspacePath) -> str | None:
        """Why nothing at the path may be looked at, or None: what commands do not find, no tool shows either."""
        confinement = await self._confinement()
        if confinement is None:
            return None
        names = [place.resolved]
        if place.info is not None and place.info.kind == "file":  # which may have another name that says more
            names.append(await self._ctx.in_thread(_known_name, place.resolved, confinement.home))
        for name in names:
            rule = deciding_rule(confinement, _as_commands_know(name, confinement))
            if rule is not None and rule.access == "hidden":
                return f"{place.given!r} is out of sight, for tools as for commands: {rule.why}"
        return None

    async def check_write(self, place: WorkspacePath) -> None:
        """Raise `ToolError` unless the rules let this path be written; the gate is asked by `agree`, with the edit.

        Of what the model may not read nothing is looked at before the gate has said yes: an edit that does not fit
        tells what it was compared with.
        """
        refusal = paths.refuse_write(place.path, place.resolved, place.info, await self._rules())
        if refusal:
            raise ToolError(f"{refusal}; write elsewhere, or ask the user to do it")
        if place.info is not None and await self.refuse_read(place) is not None:
            await self._ask(place, {})

    async def agree(self, place: WorkspacePath, diff: str, texts: EditTexts) -> None:
        """Raise `ToolError` unless the gate lets this edit be made; `diff` shows it, without secrets.

        `texts` are the file before and after, made only for whoever shows them.
        """
        await self._ask(place, {"diff": diff, "edit": lambda: self._edit(place, texts)})
        now = await self._ctx.environment.stat(place.path) if self._agreed else place.on_disk
        if _stamp(now) != _stamp(place.on_disk):
            raise ToolError(f"{place.given!r} changed while a person was asked, so nothing was written; read it again")

    def _edit(self, place: WorkspacePath, texts: EditTexts) -> dict[str, Any]:
        before, after = (self.veil.hide(text) if text else text for text in texts())
        return {"path": place.resolved, "old_text": before, "new_text": after or ""}

    async def _ask(self, place: WorkspacePath, details: dict[str, Any]) -> None:
        names = [place.resolved]
        if place.info is not None and place.info.is_link:  # which a patch may remove, wherever it leads
            names.append(await self._own_place(place))
        for name in (each for each in names if each not in self._agreed):
            await self._ask_to_write(place, name, details)

    async def _ask_to_write(self, place: WorkspacePath, name: str, details: dict[str, Any]) -> None:
        confinement = await self._confinement()
        known = name if confinement is None else _as_commands_know(name, confinement)
        if known != name:
            name = known  # as whoever is asked knows it, too
        elif confinement is not None and confinement.seen_at(name) != name:
            raise ToolError(
                f"{place.given!r} is in the machine's temporary folder, which this session can only read; "
                "write to a new name there, or into the workspace"
            )
        action = Action(
            kind="write",
            tool=self._tool,
            text=name,
            cwd=self._ctx.environment.cwd,
            backend=self._ctx.environment.kind,
            route=self._ctx.route,
            session_id=self._ctx.session_id,
            task_id=self._ctx.task_id,
            details=details,
        )
        decision = await self._ctx.gate.decide(action, self._ctx.scope)
        if decision.decided_by == "person":
            self._agreed.add(name)
        if not decision.allowed:
            raise ToolError(f"writing {place.given!r} was not allowed: {decision.reason or 'denied'}")
        if decision.decided_by == "person" and decision.scope in ("task", "session", "always"):
            await self._open_folder(name)

    async def _open_folder(self, name: str) -> None:
        """Let commands write, too, what a person has opened for longer than one write."""
        confinement, environment = await self._confinement(), self._ctx.environment
        if confinement is None or not isinstance(environment, ConfinedEnvironment):
            return
        rule = deciding_rule(confinement, name)
        if rule is None or (rule.access != "write" and rule.kind not in ("protected", "self-running", "git-config")):
            environment.widen(confinement.with_root(posixpath.dirname(name), "a yes to a file tool"))

    async def read_text(self, place: WorkspacePath) -> TextFile:
        """The whole file, for an edit. Raises `ToolError` for what is no text, or too large for that."""
        if place.info is None:
            return TextFile(place, b"", None)
        if place.info.size > MAX_EDITED_BYTES:
            raise ToolError(
                f"{place.given!r} has {place.info.size} bytes, and at most {MAX_EDITED_BYTES} are edited in memory; "
                "use the terminal (sed, a script) for it"
            )
        data = await self.read(place)
        try:
            return TextFile(place, data, decode(data))
        except NotTextError as error:
            raise ToolError(f"{place.given!r} is binary, so it cannot be edited as text") from error

    async def write(self, place: WorkspacePath, data: bytes, *, mode: int | None = None) -> None:
        """Replace the file atomically, by default with its mode kept, and remember it as known to this task."""
        if mode is None and place.info is not None:
            mode = place.info.mode & 0o7777
        await self.put(place.resolved, data, mode=mode)
        self.memo.wrote(place.resolved)
        info = await self._ctx.environment.stat(place.resolved)
        if info is not None:
            self.memo.saw(info, digest(data))

    async def read(self, place: WorkspacePath, offset: int = 0, size: int | None = None) -> bytes:
        """What is in the file that was located, and not in another that has taken its place behind a link."""
        if place.unsaved is not None:
            return place.unsaved[offset:] if size is None else place.unsaved[offset : offset + size]
        environment = self._ctx.environment
        if isinstance(environment, ExactFiles):
            return await environment.read_exact(place.resolved, offset, size)
        return await environment.read(place.resolved, offset, size)

    async def put(self, path: str, data: bytes, *, mode: int | None) -> None:
        """Write at a real path, whatever has become of the folders above it."""
        environment = self._ctx.environment
        if isinstance(environment, ExactFiles):
            await environment.write_exact(path, data, mode=mode)
        else:
            await environment.write(path, data, mode=mode)

    async def remove(self, place: WorkspacePath) -> None:
        """Delete the file or link itself, in the folder where it was located."""
        environment = self._ctx.environment
        if isinstance(environment, ExactFiles):
            await environment.remove_exact(await self._own_place(place))
        else:
            await environment.remove(place.path)

    async def _own_place(self, place: WorkspacePath) -> str:
        """Where the name itself is, which may be a link to elsewhere."""
        folder = await self._ctx.environment.stat(posixpath.dirname(place.path))
        if folder is None:
            return place.path
        return posixpath.join(folder.path, posixpath.basename(place.path))

    async def _confinement(self) -> Confinement | None:
        environment = self._ctx.environment
        return await environment.confinement() if isinstance(environment, ConfinedEnvironment) else None

    def refuse_stale(self, files: Sequence[TextFile]) -> dict[str, Any]:
        """The refusal for files that are not what the task has read: their text as it is now, which it then knows."""
        current: dict[str, str] = {}
        for file in files:
            assert file.place.info is not None  # only a file that exists can be stale
            self.memo.saw(file.place.info, digest(file.data))
            text = self.veil.hide(file.text or "")
            left = len(text) - _MAX_CURRENT_CHARS
            current[file.place.given] = text[:_MAX_CURRENT_CHARS] + (
                f"\n… [{left} more characters; use read_file]" if left > 0 else ""
            )
        names = ", ".join(repr(name) for name in current)
        error = (
            f"{names} changed since you read it, so nothing was written; look at the current text, keep what is not "
            "yours, and call again"
        )
        return {"error": error, "current_text": current}

    async def similar(self, place: WorkspacePath) -> list[str]:
        """Paths near a missing one that may have been meant."""
        environment = self._ctx.environment
        for folder in paths.parents(place.path):
            info = await environment.stat(folder)
            if info is not None and info.kind == "dir":
                missing = posixpath.relpath(place.path, folder).split("/")[0]
                names = (await environment.list_dir(folder))[:_MAX_NAMES]
                found = (posixpath.join(folder, name) for name in paths.similar_names(missing, names))
                return [paths.display_path(path, environment.cwd) for path in found]
        return []

    async def _home(self) -> str:
        if self.memo.home is None:
            self.memo.home = await self._find_home()
        return self.memo.home

    async def _find_home(self) -> str:
        environment = self._ctx.environment
        if environment.kind == "local":
            return str(Path.home())
        own = Decision.own("find the home folder")
        answer = await environment.execute("(cd ~ && pwd -P)", own, self._ctx.scope, timeout_s=30.0)
        lines = answer.output.split()
        return lines[-1] if answer.exit_code == 0 and lines else "/root"

    async def _rules(self) -> PathRules:
        if self._known_rules is None:
            self._known_rules = await self._make_rules()
        return self._known_rules

    async def _make_rules(self) -> PathRules:
        roots = [
            await self._real_root(root) for root in os.environ.get("HERMES_WRITE_SAFE_ROOT", "").split(":") if root
        ]
        home, safe_root = await self._home(), ":".join(roots)
        if self._ctx.environment.kind != "local":
            return PathRules.from_settings(home=home, safe_root=safe_root)
        return replace(_local_rules(home, safe_root), crosses_profiles=self._cross_profile)

    async def _real_root(self, root: str) -> str:
        """A folder that writes are confined to, with its links followed, as they are in what is compared with it."""
        path = paths.absolute(root, cwd=self._ctx.environment.cwd, home=await self._home())
        info = await self._ctx.environment.stat(path)
        return info.path if info is not None else path

    async def _future_path(self, path: str) -> str:
        """Where a file that does not exist yet would be: below its nearest folder that exists, links followed."""
        environment = self._ctx.environment
        for folder in paths.parents(path):
            info = await environment.stat(folder)
            if info is None:
                continue
            rest = posixpath.relpath(path, folder)
            if info.kind != "dir":
                raise ToolError(f"{folder!r} is not a folder, so there is nothing below it")
            # A name that is there and leads nowhere is a broken link: writing through it could end up anywhere.
            if rest.split("/")[0] in await environment.list_dir(folder):
                raise ToolError(f"{path!r} goes through a broken link; remove the link first, or use another path")
            return posixpath.normpath(posixpath.join(info.path, rest))
        return path


def _stamp(info: FileInfo | None) -> tuple[object, ...]:
    return () if info is None else (info.path, info.size, info.mtime_ns, info.mode)


def _as_commands_know(name: str, confinement: Confinement) -> str:
    """The path at which commands find a file: their temporary folder may be one of the session's own."""
    if confinement.temp and name.startswith(f"{confinement.temp}/"):
        return TEMP_FOLDERS[0] + name[len(confinement.temp) :]
    return name


def _known_name(path: str, home: str) -> str:
    """The name by which a guarded file is known, when `path` is a second name of it."""
    if os.stat(path).st_nlink < 2:  # noqa: PTH116
        return path
    from hermes.tools.approval.real_paths import RealPaths  # the whole reader comes with it

    return RealPaths(os.path.realpath(home or Path.home()), os.path.realpath(root_home()))(path)


def _local_rules(home: str, safe_root: str) -> PathRules:
    return PathRules.from_settings(
        home=os.path.realpath(home),
        hermes_home=os.path.realpath(hermes_home()),
        profiles=os.path.realpath(profiles_dir(root_home())),
        safe_root=safe_root,
    )


def refuse_display_text(content: str, before: str | None) -> None:
    """Raise `ToolError` when `content` brings a mark of some display into a file that does not have it."""
    for mark, what in _DISPLAY_MARKS:
        if mark in content and mark not in (before or ""):
            raise ToolError(
                f"the text contains {mark!r}, which comes from {what}; writing it would lose what stood there. "
                "Change single places with patch instead"
            )
