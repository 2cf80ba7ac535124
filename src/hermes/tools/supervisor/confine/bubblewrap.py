"""A confinement as the command line of bubblewrap: which mounts, in which order.

The mounts are settled once per confinement, from what was there when it was planned: a folder of the workspace that
appears later, or is put in another's place, is never mounted. What is mounted cannot be renamed inside, so every folder
on the way to a protected one is mounted on itself, too: else the way could be moved and made anew beside it.
"""

import os
import posixpath
import stat
from collections.abc import Iterator

from msgspec import Struct

from hermes.confinement.policy import TEMP_FOLDERS, Bind, Confinement, PathRule, is_below

_SOCKETS_SIZE = 64 << 20
_NOTHING_SIZE = 1 << 20
KERNEL_SETTINGS = "/proc/sys"
KEY_NAMES = "/proc/keys"  # which the kernel shows to every process of the same user
NOTHING = "/dev/null"  # bound without devices allowed, it can be neither read nor written


class MountPlan(Struct, frozen=True):
    """The mounts of one confinement, each the words for one."""

    steps: tuple[tuple[str, ...], ...]


def mount_plan(confined: Confinement) -> MountPlan:
    """What to mount, outer folders first. It looks at the file system; do it once."""
    chosen = {rule.path: rule for rule in confined.rules}  # of two for one path the later counts
    # What is hidden is an empty folder, small, and gone with the command: to shut it as well would cost another mount.
    steps: list[tuple[int, tuple[str, ...]]] = []
    pinned: set[str] = set()
    for rule in chosen.values():
        depth = _depth(rule.path)
        made = _mount(confined, rule, _around(chosen, rule.path))
        if made:
            steps.append((depth, made))
        elif rule.kind != "git-config":
            continue
        if rule.access != "write":
            for folder in _way_to(rule.path, chosen):
                if folder not in pinned and folder not in chosen:
                    pinned.add(folder)
                    steps.append((_depth(folder), ("--bind-try", folder, folder)))
    steps += [(_depth(bind.target), _bound(bind)) for bind in confined.binds]
    ordered = [made for _, made in sorted(steps, key=lambda each: each[0])]
    return MountPlan(tuple(ordered))


def command_line(confined: Confinement, mounts: MountPlan, seccomp_fd: int) -> list[str]:
    """bubblewrap and its words, up to the program's own."""
    words = [confined.bwrap, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL"]
    if not confined.network and not confined.namespaces:
        words.append("--unshare-net")
    if seccomp_fd >= 0:
        words += ["--seccomp", str(seccomp_fd)]
    words += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    # bubblewrap leaves it as it is where the folder itself cannot be written, and root owns the files in it.
    words += ["--ro-bind", KERNEL_SETTINGS, KERNEL_SETTINGS]
    if _is_there(KEY_NAMES):
        words += ["--ro-bind", NOTHING, KEY_NAMES]
    for step in mounts.steps:
        if step[0] not in ("--size", "--ro-bind") or _is_there(step[-1]):  # the person may have removed it since
            words += step
    for path in visible_sockets(confined):
        words += ("--ro-bind", NOTHING, path)
    return [*words, "--"]


def visible_sockets(confined: Confinement) -> list[str]:
    """The machine's sockets that a program would find although no rule is about them, but for those it may write to."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as table:  # noqa: PTH123
            paths = {line.split(" ", 7)[-1].strip() for line in table if " /" in line}
    except OSError:
        return []
    return sorted(path for path in paths if _is_open_socket(confined, path))


def _is_open_socket(confined: Confinement, path: str) -> bool:
    if not path.startswith("/"):
        return False
    rule = confined.rule_for(path)
    if rule is not None and (rule.access != "read" or rule.kind == "socket"):
        return False  # hidden, a session's own, or granted by name
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode) and os.path.realpath(path) == path
    except OSError:
        return False


def _mount(confined: Confinement, rule: PathRule, around: PathRule | None) -> tuple[str, ...]:
    """How one rule is mounted; nothing when it is not there, or what is around it does the same."""
    path = rule.path
    outer = around.access if around is not None else "read"
    if rule.kind == "git-config":
        return ()  # git renames a file over it, which a mount forbids; what became of it is settled after each command
    if rule.kind == "temp" and path in TEMP_FOLDERS:
        return ("--bind", confined.temp, path) if confined.temp and os.path.isdir(path) else ()  # noqa: PTH112
    if path == "/":
        return ("--bind", "/", "/")
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return ()
    if stat.S_ISLNK(mode):
        return ()  # a mount would land where it leads; the link itself is compared after each command
    match rule.access:
        case "write":
            return ("--bind-try" if path != confined.workspace else "--bind", path, path)
        case "read":
            return ("--ro-bind-try", path, path) if outer != "read" else ()
        case "hidden":
            if outer == "hidden" or not os.access(path, os.R_OK):  # nobody here can look into it as it is
                return ()
            if not stat.S_ISDIR(mode):
                return ("--ro-bind", NOTHING, path)
            size = _SOCKETS_SIZE if rule.kind == "socket" else _NOTHING_SIZE
            return ("--size", str(size), "--tmpfs", path)


def _bound(bind: Bind) -> tuple[str, ...]:
    return ("--bind" if bind.writable else "--ro-bind", bind.source, bind.target)


def _around(chosen: dict[str, PathRule], path: str) -> PathRule | None:
    """The rule for the nearest folder above."""
    while path != "/":
        path = posixpath.dirname(path)
        if path in chosen:
            return chosen[path]
    return None


def _way_to(path: str, chosen: dict[str, PathRule]) -> Iterator[str]:
    """The folders between `path` and the writable folder it lies in; none when it lies in none."""
    between: list[str] = []
    above = posixpath.dirname(path)
    while above != "/" and above not in chosen:
        between.append(above)
        above = posixpath.dirname(above)
    if above in chosen and chosen[above].access == "write" and chosen[above].kind != "temp":
        yield from between


def _depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")


def _is_there(path: str) -> bool:
    return os.path.lexists(path)


def covered(confined: Confinement, mounts: MountPlan) -> frozenset[str]:
    """The paths whose rule a mount enforces; what else is protected is compared after each command."""
    return frozenset(step[-1] for step in mounts.steps if any(is_below(step[-1], each) for each in confined.writable))
