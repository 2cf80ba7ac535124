"""Start a program of Hermes itself that outlives whoever started it: the server of a home, whose lock owns it."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_START_S = 30.0


def start_detached(argv: Sequence[str], env: Mapping[str, str], cwd: str, log_file: Path) -> None:
    """Start `argv` in a session of its own, its words appended to `log_file`. It is nobody's child afterwards."""
    script = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 &'
    with subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", str(log_file), *argv],
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as shell:
        shell.wait(_START_S)
