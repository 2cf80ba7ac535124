"""Which Python runs a script: the project's own where there is one, else the runtime's."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from hermes.errors import ToolError
from hermes.seams import Decision, SpawnSpec, Supervisor
from hermes.tools.environments.running import run_child
from hermes.tools.environments.spool import Spool
from hermes.tools.supervisor.threads import RunBlocking

OLDEST = (3, 8)
_PROBE_LIMIT_S = 10.0
_PROBE = "import sys; print(*sys.version_info[:2])"

_versions: dict[tuple[str, int], tuple[int, int] | None] = {}  # a cache: by program and the time it was changed


async def project_python(environ: Mapping[str, str], supervisor: Supervisor, run_blocking: RunBlocking) -> str:
    """The Python of the active virtual or conda environment when it is usable, else our own."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = environ.get(variable)
        if not prefix:
            continue
        if Path(prefix) == Path(sys.prefix):
            return sys.executable
        program = Path(prefix) / "bin" / "python"
        version = await _version(program, supervisor, run_blocking)
        if version is not None and version >= OLDEST:
            return str(program)
    return sys.executable


def version_of(program: str) -> tuple[int, int]:
    """The version of a program that `project_python` returned."""
    if program == sys.executable:
        return sys.version_info[:2]
    known = (version for (path, _), version in _versions.items() if path == program and version is not None)
    return next(known, sys.version_info[:2])


async def _version(program: Path, supervisor: Supervisor, run_blocking: RunBlocking) -> tuple[int, int] | None:
    changed = _changed(program)
    if changed is None:
        return None
    key = (str(program), changed)
    if key not in _versions:
        _versions[key] = await _ask(program, supervisor, run_blocking) if os.access(program, os.X_OK) else None
    return _versions[key]


def _changed(program: Path) -> int | None:
    try:
        return program.stat().st_mtime_ns
    except OSError:
        return None


async def _ask(program: Path, supervisor: Supervisor, run_blocking: RunBlocking) -> tuple[int, int] | None:
    spool = Spool(Path("/"), memory_bytes=4096, disk_bytes=0)
    spec = SpawnSpec(argv=(str(program), "-I", "-S", "-c", _PROBE), cwd="/", env={})
    try:
        child = await supervisor.spawn(Decision.own("version of the project's Python"), spec)
    except ToolError:  # it is there and cannot be started: another architecture, a dangling interpreter line
        return None
    ended = await run_child(child, spool, _PROBE_LIMIT_S, run_blocking)
    numbers = spool.finish().split()
    if ended.code != 0 or len(numbers) != 2 or not all(number.isdigit() for number in numbers):
        return None
    return int(numbers[0]), int(numbers[1])
