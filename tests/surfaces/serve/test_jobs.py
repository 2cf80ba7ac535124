"""Jobs that fall due while a server lives are run by it."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.surfaces.serve.conftest import WAIT_S, Serve


def cron(environ: dict[str, str], *words: str) -> Any:
    argv = [sys.executable, "-m", "hermes", "cron", *words, "--json"]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=WAIT_S)
    return json.loads(done.stdout)


def test_a_server_runs_what_is_due_and_ends_after_it(serve: Serve, environ: dict[str, str], home: Path) -> None:
    (home / "scripts").mkdir()
    (home / "scripts" / "slow.sh").write_text("touch began; sleep 3; touch ended; echo done")
    with serve("--idle", "0.3") as served:
        client = served.client()
        client.event("gateway.ready")
        cron(environ, "create", "every 2h", "--script", "slow.sh", "--no-agent", "--name", "Slow")
        until = time.monotonic() + WAIT_S
        while not cron(environ, "status")["ticker"]:
            assert time.monotonic() < until, "nobody keeps the time"
        cron(environ, "run", "Slow")
        while not (home / "began").exists():
            assert time.monotonic() < until, "the job was not run"
            time.sleep(0.02)
        served.hang_up()
        assert served.process.wait(WAIT_S) == 0  # nobody is there, and yet it has waited for the job
    assert (home / "ended").exists()
    (row,) = cron(environ, "history", "Slow")
    assert row["outcome"] == "ok"
    assert cron(environ, "status")["ticker"] is None  # it was let go, and not only left
