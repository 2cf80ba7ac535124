"""One cgroup for all that this keeper starts confined, where the machine lets us have one. Standard library only."""

import contextlib
import os

_ROOT = "/sys/fs/cgroup"
_groups: list[str] = []  # the folders of our group: one in each hierarchy that has a limit to hold
_prepared: list[tuple[int, int]] = []  # the limits they were made for


def prepare(processes: int, memory_mb: int) -> None:
    """Make the group, once; without the right to make one nothing happens, and the keeper's own count remains."""
    if _prepared == [(processes, memory_mb)] and all(os.path.isdir(folder) for folder in _groups):  # noqa: PTH112
        return
    remove()
    _prepared[:] = [(processes, memory_mb)]
    try:
        with open("/proc/self/cgroup") as file:  # noqa: PTH123
            lines = [line.strip().split(":", 2) for line in file]
    except OSError:
        return
    own = {name: path for _, names, path in lines for name in names.split(",")}
    if memory_mb:
        _make("memory", own, {"memory.limit_in_bytes": memory_mb << 20, "memory.max": memory_mb << 20})
    if processes:
        _make("pids", own, {"pids.max": processes})


def _make(controller: str, own: dict[str, str], limits: dict[str, int]) -> None:
    """A folder of ours in the hierarchy of `controller`, of either version."""
    version_1 = f"{_ROOT}/{controller}{own[controller]}" if controller in own else None
    parent = version_1 or f"{_ROOT}{own.get('', '/')}"
    ours = f"hermes-{_pids()}-"
    folder = f"{parent}/{ours}{os.getpid()}"
    _sweep(parent, ours)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)  # noqa: PTH102
        names = [name for name in limits if os.path.exists(f"{folder}/{name}")]  # noqa: PTH110
        for name in names:
            _write(f"{folder}/{name}", str(limits[name]))
        if names and os.access(f"{folder}/cgroup.procs", os.W_OK):
            _groups.append(folder)
        else:
            os.rmdir(folder)  # noqa: PTH106
    except OSError:
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106


def _pids() -> str:
    """The namespace that pids are of: one in another namespace may be alive although we cannot see it."""
    try:
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))  # noqa: PTH115
    except OSError:
        return "0"


def _sweep(parent: str, ours: str) -> None:
    """Give back the empty groups of keepers that were killed, as far as that can be told of them here."""
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):  # noqa: PTH208 - pathlib is not worth its import here
            pid = name.removeprefix(ours)
            if pid != name and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):  # noqa: PTH110
                with contextlib.suppress(OSError):  # it has members still
                    os.rmdir(f"{parent}/{name}")  # noqa: PTH106


def enter() -> None:
    """Join the group; in a child, before exec."""
    for folder in _groups:
        _write(f"{folder}/cgroup.procs", "0")


def held() -> list[str]:
    """Which of the limits a group holds: the names of its hierarchies."""
    return ["memory" if "/memory" in folder else "pids" for folder in _groups]


def remove() -> None:
    """Give the group back; one that still has members stays until they are gone."""
    for folder in _groups:
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106
    _groups.clear()


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
