"""Whether the home is there, private, writable, and has room."""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes.config import paths
from hermes.host.doctor import Check, Finding, ok, problem, warning
from hermes.host.installation import Installation

LEAST_FREE_MB = 500


def run(installation: Installation) -> Iterable[Finding]:
    home = installation.home
    if not home.exists():
        yield ok(f"{home} is not there yet; it is made when something is kept")
        return
    if not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        yield problem(f"{home} cannot be written to", "export HERMES_HOME=FOLDER")
        return
    yield ok(f"{home}, profile {installation.profile}")
    for path, _ in _open_to_others(home):
        yield warning(f"others can look into {path}", "hermes doctor --fix")
    free_mb = shutil.disk_usage(home).free / 1e6
    if free_mb < LEAST_FREE_MB:
        yield warning(f"only {free_mb:.0f} MB are free there", "hermes sessions prune --dry-run")


def fix(installation: Installation) -> Iterable[str]:
    for path, mode in list(_open_to_others(installation.home)):
        path.chmod(mode)
        yield f"{path} is now private"


def _open_to_others(home: Path) -> Iterator[tuple[Path, int]]:
    """What only its owner should read, and does not: with the mode it should have."""
    state = paths.state_file(home)
    files = [paths.env_file(home), paths.config_file(home), state, state.with_name(f"{state.name}-wal")]
    folders = [home, paths.logs_dir(home), state.with_name(f"{state.name}-blobs")]
    for path, mode in (*((each, 0o700) for each in folders), *((each, 0o600) for each in files)):
        if path.exists() and path.stat().st_mode & 0o077:
            yield path, mode


CHECK = Check(title="Home", run=run, fix=fix)
