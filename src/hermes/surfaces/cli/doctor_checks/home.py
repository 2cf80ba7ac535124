"""Whether the home is there, private and writable."""

import os
from collections.abc import Iterable

from hermes.config import paths
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.doctor import Check, Finding, ok, problem, warning


def run(cli: Cli) -> Iterable[Finding]:
    home = cli.home
    if not home.exists():
        yield ok(f"{home} is not there yet; it is made when something is kept")
        return
    if not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        yield problem(f"{home} cannot be written to", "export HERMES_HOME=FOLDER")
        return
    yield ok(f"{home}, profile {cli.profile}")
    for path in (home, paths.env_file(home)):
        if path.exists() and path.stat().st_mode & 0o077:
            yield warning(f"others can look into {path}", "hermes doctor --fix")


def fix(cli: Cli) -> Iterable[str]:
    for path, mode in ((cli.home, 0o700), (paths.env_file(cli.home), 0o600)):
        if path.exists() and path.stat().st_mode & 0o077:
            path.chmod(mode)
            yield f"{path} is now private"


CHECK = Check(title="Home", run=run, fix=fix)
