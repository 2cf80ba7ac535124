"""What runs or has gone wrong lately: background processes, abandoned threads, errors in the log."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from hermes.config import paths
from hermes.host.doctor import Check, Finding, ok, warning
from hermes.host.installation import Installation
from hermes.host.logs import NAMES

RECENT = timedelta(days=1)


def run(installation: Installation) -> Iterable[Finding]:
    from hermes.runtime.setup.process import shared  # brings the kernel
    from hermes.tools.calling.loops import loops_held_up
    from hermes.tools.registry import registry

    stuck = shared.pool.abandoned + loops_held_up() + registry.checks.abandoned
    if stuck:
        yield warning(f"{stuck} threads of this process still run work that nobody waits for", "start hermes again")
    folder = installation.home / "processes"
    held = [each for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []
    if held:
        yield ok(f"{len(held)} background processes are kept in {folder}")
    errors = _recent_errors(installation)
    if errors:
        yield warning(
            f"{errors} record{'' if errors == 1 else 's'} of the last day in errors.log",
            "hermes logs errors --since 1d",
        )
    if not (stuck or held or errors):
        yield ok("nothing runs in the background, and the log is quiet")


def _recent_errors(installation: Installation) -> int:
    file = paths.logs_dir(installation.home) / NAMES["errors"]
    if not file.is_file():
        return 0
    since = (datetime.now() - RECENT).strftime("%Y-%m-%d %H:%M:%S")  # noqa: DTZ005 - logs are in local time
    with file.open(encoding="utf-8", errors="replace") as lines:
        return sum(line[:1].isdigit() and line[: len(since)] >= since for line in lines)


CHECK = Check(title="Running", run=run)
