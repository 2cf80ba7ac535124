"""What the keeper is told about a confined start: plain values, made once per confinement and kept."""

import base64
import platform
from functools import lru_cache

from msgspec import Struct

from hermes.confinement.policy import Confinement
from hermes.tools.supervisor.confine import bubblewrap, file_grants
from hermes.tools.supervisor.confine.system_calls import SocketRules, filter_program

SECCOMP_FD = 60  # where bubblewrap finds the filter; below all that a start moves out of the way
_MOST_KEPT = 16


class _Kept(Struct):
    confined: Confinement  # held, so that its identity stays its own
    mounts: bubblewrap.MountPlan | None = None
    grants: list[tuple[str, str]] | None = None


class Orders:
    """Turns confinements into words for the keeper."""

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}

    def words(self, confined: Confinement) -> dict[str, object]:
        """The keeper's part of a request; it looks at the file system, at the first call for a confinement longer."""
        limits = {"processes": confined.limits.processes, "memory_mb": confined.limits.memory_mb}
        limits |= {"open_files": confined.limits.open_files, "temp_mb": confined.limits.temp_mb}
        made: dict[str, object] = {"level": confined.level, "limits": limits, "temp": confined.temp}
        if confined.level == "none":
            return made
        kept = self._of(confined)
        if kept.mounts is not None:
            filtered = seccomp(unix=True, network=True)
            fd = SECCOMP_FD if filtered else -1
            prefix = bubblewrap.command_line(confined, kept.mounts, fd)
            entered = len(confined.namespaces)
            return {**made, "prefix": prefix, "seccomp": filtered, "seccomp_fd": fd, "namespaces": entered}
        return {**made, "grants": kept.grants, "seccomp": seccomp(unix=False, network=confined.network)}

    def _of(self, confined: Confinement) -> _Kept:
        known = self._kept.get(id(confined))
        if known is None:
            known = _Kept(confined)
            if confined.level == "full":
                known.mounts = bubblewrap.mount_plan(confined)
            else:
                known.grants = file_grants.grants(confined)
            while len(self._kept) >= _MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[id(confined)] = known
        return known


@lru_cache(maxsize=4)
def seccomp(*, unix: bool, network: bool) -> str:
    """The filter for this processor, as text; empty where there is none."""
    program = filter_program(platform.machine(), SocketRules(unix=unix, network=network))
    return base64.b64encode(program or b"").decode()
