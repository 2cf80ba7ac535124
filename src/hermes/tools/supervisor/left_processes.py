"""Processes that a runtime which is gone has left running, found by the note it could not take back.

Where no pid namespace ends them (all levels but *full*), a program that leaves its session and sheds its mark outlives
a keeper that was killed. It cannot shed what confines it, and by that it is found. Linux alone.
"""

import json
import os
from pathlib import Path

from hermes.config.paths import make_private
from hermes.tools.supervisor.keeper import tree
from hermes.tools.supervisor.keeper.watcher import started

_PREFIX = "runtime-"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_KEEPER = b"hermes.tools.supervisor.keeper.main"  # in the command line of every keeper
_MOST_NAMED = 8


def leave_note(folder: Path, mark: str) -> Path | None:
    """Write down that this runtime has begun to start programs; whoever ends in good order removes the file."""
    if not _BOOT.exists():
        return None
    make_private(folder)
    note = folder / f"{_PREFIX}{mark}"
    pid = os.getpid()
    new = folder / f".new-{mark}"  # whole or not there: another start may read it
    new.write_text(json.dumps({"mark": mark, "pid": pid, "since": started(pid), "boot": _BOOT.read_text()}))
    new.replace(note)
    return note


def told_at_start(folder: Path) -> list[str]:
    """A line about what runtimes that are gone have left; without a note of one nothing is looked at."""
    try:
        with os.scandir(folder) as entries:
            notes = [Path(entry.path) for entry in entries if entry.name.startswith(_PREFIX)]
    except OSError:
        return []
    left: set[int] = set()
    for note in notes:
        found = _left_by(note)
        if found is not None and not found:
            note.unlink(missing_ok=True)
        left |= found or set()
    if not left:
        return []
    pids = sorted(left)
    named = ", ".join(map(str, pids[:_MOST_NAMED])) + (", …" if len(pids) > _MOST_NAMED else "")
    count = "a process" if len(pids) == 1 else f"{len(pids)} processes"
    all_of_them = " ".join(map(str, pids))
    what = f"Hermes was ended from outside, and {count} of its commands may still run ({named})"
    return [f"{what}; look with: ps -fp '{all_of_them}'; end with: kill -9 {all_of_them}"]


def _left_by(note: Path) -> set[int] | None:
    """The processes of the runtime that wrote `note`; None while it lives."""
    try:
        known = json.loads(note.read_text())
        mark, pid, since = str(known["mark"]), int(known["pid"]), float(known["since"])
        is_this_boot = known["boot"] == _BOOT.read_text()
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    if not is_this_boot:
        return set()
    if tree.look(pid) is not None and started(pid) == since:
        return None
    table = {each.pid: each for each in tree.table()}
    marked = {each for each in table if tree.mark_of(each).startswith(f"{mark}:".encode())}
    return marked | {each for each in table if started(each) >= since and _is_orphan(each, table)}


def _is_orphan(pid: int, table: dict[int, tree.ProcessEntry]) -> bool:
    """Whether it is confined as our commands are, and no keeper is above it."""
    if not is_confined(pid):
        return False
    while pid in table and pid > 1:
        if is_keeper(pid):
            return False
        pid = table[pid].parent
    return True


def is_keeper(pid: int) -> bool:
    return _KEEPER in _read(pid, "cmdline")


def is_confined(pid: int) -> bool:
    """This user's, with a system call filter, no new privileges, and no core files for good: none can be given up."""
    status = dict(line.split(b":\t", 1) for line in _read(pid, "status").splitlines() if b":\t" in line)
    if status.get(b"Seccomp") != b"2" or status.get(b"NoNewPrivs") != b"1":
        return False
    if status.get(b"Uid", b"").split()[:1] != [str(os.getuid()).encode()]:
        return False
    cores = next((line for line in _read(pid, "limits").splitlines() if line.startswith(b"Max core file size")), b"")
    return cores.split()[4:6] == [b"0", b"0"]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
