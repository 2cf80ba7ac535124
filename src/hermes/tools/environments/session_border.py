"""The border of one local session: its level, its confinement, and the folders that come with it."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct, structs

from hermes.config.paths import make_private
from hermes.confinement import places
from hermes.confinement.plan import opened, plan
from hermes.confinement.policy import Confinement, Enforcement, PlanRequest, is_below
from hermes.confinement.protected_files import ProtectedFiles
from hermes.errors import MissingPart, ToolError, UserError
from hermes.seams import Supervisor
from hermes.tools.environments.shell_state import ShellState
from hermes.tools.supervisor.confine import bubblewrap
from hermes.tools.supervisor.confine.probe import enforcement
from hermes.tools.supervisor.threads import RunBlocking

if TYPE_CHECKING:
    from hermes.tools.environments.local import Border
    from hermes.tools.network.session_network import NetworkWishes, SessionNetwork

_NO_ASKING = "the network is off, since terminal.network: ask cannot be held here: {}"
_AT_FILES = "it needs level full, and commands are confined at level files"


@runtime_checkable
class NotesItself(Protocol):
    """A supervisor that leaves a note for the next start, in case nobody can end what it started."""

    def note_in(self, folder: Path) -> None: ...


class MadeBorder(Struct, frozen=True, kw_only=True):
    """What a session's commands run in. `note` says why they are confined by less than was wished for."""

    state: ShellState
    confinement: Confinement
    protected: ProtectedFiles | None = None
    note: str = ""


async def make_border(
    supervisor: Supervisor, border: "Border | None", workspace: str, run_blocking: RunBlocking
) -> MadeBorder:
    """Find out what can be enforced here and plan with it, once; `MissingPart` where a border must be and none can."""
    found, note = Enforcement("none"), ""
    if border is not None and border.mode != "off":
        found = await enforcement(supervisor, border.level, workspace)
        if found.level == "none" and border.mode == "on":
            raise missing_border(found.why)
        if found.level == "none":
            note = f"commands run without a sandbox: {found.why}"
        elif found.level == "files" and border.level == "auto":
            note = f"commands are confined at level files: {found.why}"
    request = border.request if border is not None else PlanRequest(workspace=workspace)
    if border is not None and border.network == "ask" and found.level != "full":
        request = structs.replace(request, network=not border.is_network_said)
        note = note or (_NO_ASKING.format(_AT_FILES) if found.level == "files" and border.is_network_said else "")
    try:
        if found.level != "full" and request.hermes_home and isinstance(supervisor, NotesItself):
            await run_blocking(supervisor.note_in, Path(request.hermes_home) / "run")
        state = await run_blocking(ShellState.make, _private_root(request, found))
    except OSError as error:
        raise ToolError(f"the session's own folder could not be made: {error}") from error
    if found.level == "none":
        return MadeBorder(state=state, confinement=await run_blocking(plan, request, found), note=note)
    request = structs.replace(request, temp=str(state.temp), shared=(str(state.shared),), shown=(str(state.own),))
    if request.caches:
        await run_blocking(_make_caches, request)
    confined = await run_blocking(plan, request, found)
    if border is not None and border.network == "ask" and found.level == "full":
        confined = structs.replace(confined, without=(*confined.without, *places.PROXY_VARIABLES))
    protected = await run_blocking(_protected_files, confined)
    return MadeBorder(state=state, confinement=confined, protected=protected, note=note)


class OwnNetwork(Struct, frozen=True, kw_only=True):
    """A session's own network and the confinement of programs that have it; without one, `note` says why."""

    network: "SessionNetwork | None"
    confinement: Confinement
    note: str = ""


async def own_network(
    supervisor: Supervisor,
    border: "Border",
    confined: Confinement,
    wishes: "NetworkWishes",
    ways: tuple[Path, RunBlocking],
) -> OwnNetwork:
    """Open it, before the first command. Where none can be had, nothing is pretended: it is off, or as by default."""
    from hermes.tools.network.open_network import open_network
    from hermes.tools.network.space import MakesNetworks

    folder, run_blocking = ways
    try:
        if not isinstance(supervisor, MakesNetworks):
            raise ToolError("this supervisor makes no namespaces")
        network, wider = await open_network(supervisor, confined, wishes, folder, run_blocking)
    except ToolError as error:
        if border.is_network_said:
            return OwnNetwork(network=None, confinement=confined, note=_NO_ASKING.format(error))
        is_open = structs.replace(confined, network=True)
        return OwnNetwork(network=None, confinement=is_open, note=f"the network is open: {error}")
    return OwnNetwork(network=network, confinement=wider)


def with_folder(
    confined: Confinement, border: "Border | None", folder: str
) -> Callable[[], tuple[Confinement, ProtectedFiles]]:
    """What plans one more folder, protected inside as the workspace is, and looks at what is to be protected."""
    safe = _real(border.request.safe_roots if border is not None else ())
    if safe and not any(is_below(folder, root) for root in safe):
        raise UserError(f"HERMES_WRITE_SAFE_ROOT keeps writes below {', '.join(safe)}")

    def work() -> tuple[Confinement, ProtectedFiles]:
        wider = opened(confined, folder, "opened by the person")
        return wider, _protected_files(wider)

    return work


def opened_folders(confined: Confinement | None, border: "Border | None") -> tuple[str, ...]:
    """What may be written beyond the settings, by a yes or by name."""
    if confined is None or border is None:
        return ()
    known = {*_real(border.request.writable), *_real(border.request.safe_roots), "/"}
    found = (rule.path for rule in confined.of_kind("granted") if rule.access == "write")
    return tuple(dict.fromkeys(path for path in found if path not in known))


def _real(folders: Sequence[str]) -> list[str]:
    return [os.path.realpath(folder) for folder in folders]


def missing_border(why: str) -> MissingPart:
    """The error for a border that must be enforced where nothing can."""
    return MissingPart(
        f"terminal.sandbox is on, and {why}; install bubblewrap (Debian, Fedora, Arch: package bubblewrap) "
        "or set terminal.sandbox: auto"
    )


def _private_root(request: PlanRequest, found: Enforcement) -> Path | None:
    if found.level == "none":
        return None
    return Path(request.hermes_home) / "run" if request.hermes_home else Path(tempfile.gettempdir())


def _make_caches(request: PlanRequest) -> None:
    """The folders of Hermes' own caches. Cargo keeps its settings there, too: the person's are read through a link."""
    for name in places.CACHES.values():
        make_private(Path(request.caches, name))
    for name in ("config.toml", "config"):
        link, theirs = Path(request.caches, "cargo", name), Path(request.home, ".cargo", name)
        if theirs.is_file() and not link.is_symlink() and not link.exists():
            link.symlink_to(theirs)


def _protected_files(confined: Confinement) -> ProtectedFiles:
    covered: frozenset[str] = frozenset()
    if confined.level == "full":
        covered = bubblewrap.covered(confined, bubblewrap.mount_plan(confined))
    # A mount holds a name; a file that has a second one beside it is compared as well.
    return ProtectedFiles(confined, [path for path in covered if not _has_second_name(path)])


def _has_second_name(path: str) -> bool:
    files = [path, *(f"{path}/{name}" for name in (os.listdir(path) if os.path.isdir(path) else ()))]  # noqa: PTH112, PTH208
    return any(os.path.isfile(file) and os.stat(file).st_nlink > 1 for file in files)  # noqa: PTH113, PTH116
