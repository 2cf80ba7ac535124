"""`hermes cron` as a person and a script use it."""

import json
import re
from pathlib import Path

from hermes.testing.replies import says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.conftest import Run


def test_a_job_from_its_making_to_its_end(run: Run, home: Path) -> None:
    (home / "scripts").mkdir()
    (home / "scripts" / "a.sh").write_text("echo it works")
    made = run("cron", "create", "every 2h", "--script", "a.sh", "--no-agent", "--name", "Checker")
    job_id = made.stdout.strip()
    assert (made.returncode, len(job_id)) == (0, 12)
    assert len(re.findall(r" \d{4}-\d\d-\d\d \d\d:\d\d\b", made.stderr)) == 5, (
        "the next five runs are told, as lists tell"
    )
    assert "No scheduler is alive" in made.stderr, "who makes a first job learns that nobody runs it yet"
    listed = run("cron", "list").stdout
    assert "Checker" in listed
    assert "never" in listed
    status = run("cron", "status")
    assert status.returncode == 1
    assert "No scheduler is alive" in status.stdout
    assert run("cron", "run", "Checker").returncode == 0
    assert run("cron", "tick").stdout == "1 run\n"
    (moment,) = json.loads(run("cron", "history", "--json").stdout)
    assert (moment["job_id"], moment["kind"], moment["outcome"]) == (job_id, "manual", "ok")
    page = Path(moment["output"])
    assert "it works" in page.read_text()
    assert (page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert run("cron", "edit", job_id, "--schedule", "0 9 * * *", "--repeat", "3").returncode == 0
    shown = json.loads(run("cron", "show", job_id, "--json").stdout)
    assert (shown["schedule"], shown["repeat"], len(shown["next_runs"])) == ("0 9 * * *", "3 times", 3)
    assert run("cron", "pause", job_id).returncode == 0
    assert json.loads(run("cron", "next", "--json").stdout) == []
    assert run("cron", "resume", job_id).returncode == 0
    assert run("cron", "rm", job_id).returncode == 0
    assert json.loads(run("cron", "list", "--all", "--json").stdout) == []
    assert "ok" in run("cron", "runs", job_id).stdout, "its history stays"


def test_mistakes_are_one_sentence_and_an_exit_code(run: Run) -> None:
    for words in (
        ("create", "soon", "x"),
        ("create", "every 0m", "x"),
        ("create", "9999-01-01", "x"),
        ("create", "1h", "x", "--script", "../x"),
        ("create", "1h", "x", "--deliver", "slack"),
        ("edit", "nobody", "--name", "x"),
        *((word, "nobody") for word in ("show", "run", "history")),
        ("import", "/no/such/file"),
    ):
        done = run("cron", *words)
        assert done.returncode == 1, words
        assert done.stdout == ""
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1, done.stderr


def test_looking_makes_no_store(run: Run, home: Path) -> None:
    for words in (("list",), ("history",), ("next",)):
        assert json.loads(run("cron", *words, "--json").stdout) == []
    assert list(home.glob("state.db*")) == []


def test_old_jobs_are_taken_once_and_bad_ones_are_named(run: Run, home: Path) -> None:
    jobs = [
        {"id": "0123456789ab", "name": "Old", "prompt": "Work.", "schedule": {"kind": "interval", "minutes": 90}},
        {"id": "0123456789ac", "prompt": "Daily.", "schedule": {"kind": "cron", "expr": "0 9 * * *"}, "enabled": False},
        {"id": "x", "prompt": "No.", "schedule": {"kind": "once", "run_at": "2020-01-01T00:00:00"}},
        "nonsense",
    ]
    (home / "cron").mkdir()
    (home / "cron" / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    assert "hermes cron import" in run("cron", "list").stderr
    came = run("cron", "import")
    assert came.returncode == 1
    assert "2 jobs were taken" in came.stdout
    assert "is in the past" in came.stderr
    listed = {job["job_id"]: job for job in json.loads(run("cron", "list", "--json").stdout)}
    assert listed["0123456789ab"]["schedule"] == "every 90m"
    assert listed["0123456789ac"]["state"] == "paused"
    assert "2 were here already" in run("cron", "import").stdout


def test_a_tick_runs_what_is_due_with_the_model_of_the_job(run: Run, home: Path) -> None:
    with ServerThread([says("Good morning.")]) as server:
        (home / "config.yaml").write_text(f"model: {{default: other, base_url: {server.base_url}}}\n")
        job_id = run("cron", "create", "every 1h", "Greet me.", "--model", "scripted").stdout.strip()
        run("cron", "run", job_id)
        ticked = json.loads(run("cron", "tick", "--json").stdout)
        body = server.requests[0].json
    assert ticked == {"success": True, "ran": 1, "ticker": None}
    assert isinstance(body, dict)
    assert body["model"] == "scripted"
    (view,) = json.loads(run("cron", "list", "--json").stdout)
    assert view["last_status"] == "ok"
    assert "cron" in run("sessions", "list", "--source", "cron").stdout
