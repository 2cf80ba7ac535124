"""What a call uses, counted from outside, and whether that is more than it may. Standard library only."""

import os

from hermes.tools.supervisor.keeper import tree

_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST_ENTRIES = 100_000  # of a temporary folder: more files than that are too much by themselves


class CallUsage:
    """The limits of one call. The exact counts are taken only when the machine as a whole has changed by as much."""

    def __init__(self, limits: dict[str, object], temp: str) -> None:
        self._processes = int(str(limits.get("processes") or 0))
        self._memory = int(str(limits.get("memory_mb") or 0)) << 20
        self._temp = int(str(limits.get("temp_mb") or 0)) << 20
        self._folder = temp
        self._tasks = tree.total() if self._processes else 0
        self._available = _available() if self._memory else 0
        self._free = _free(temp) if self._temp and temp else 0

    @property
    def is_limited(self) -> bool:
        return bool(self._processes or self._memory or (self._temp and self._folder))

    def may_be_over(self) -> bool:
        """Whether an exact count is worth its cost."""
        return (
            bool(self._processes and tree.total() - self._tasks > self._processes)
            or bool(self._memory and self._available - _available() > self._memory // 2)
            or bool(self._temp and self._folder and self._free - _free(self._folder) > self._temp // 2)
        )

    def excess(self, processes: list[tree.ProcessEntry]) -> str:
        """What there is too much of, for a sentence that begins with "it had"; empty when there is not."""
        if self._processes and len(processes) > self._processes:
            return f"more than {self._processes} processes"
        if self._memory and sum(_resident(each.pid) for each in processes) > self._memory:
            return f"more than {self._memory >> 20} MB of memory"
        if self._temp and self._folder and _is_larger(self._folder, self._temp):
            return f"more than {self._temp >> 20} MB in the temporary folder"
        return ""


def _available() -> int:
    try:
        with open("/proc/meminfo", "rb") as file:  # noqa: PTH123
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def _free(folder: str) -> int:
    try:
        state = os.statvfs(folder)
    except OSError:
        return 0
    return state.f_bavail * state.f_frsize


def _resident(pid: int) -> int:
    """Memory that is this process's own: what it shares with others is theirs as well."""
    try:
        with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return max(0, resident - shared) * _PAGE


def _is_larger(folder: str, most: int) -> bool:
    used = entries = 0
    todo = [folder]
    while todo:
        try:
            with os.scandir(todo.pop()) as found:
                for entry in found:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    else:
                        used += entry.stat(follow_symlinks=False).st_blocks * 512
                    if used > most or entries > _MOST_ENTRIES:
                        return True
        except OSError:
            continue
    return False
