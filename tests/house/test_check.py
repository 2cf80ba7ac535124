"""`./check` itself: its options, its closing line, and its look for what the tests left running."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LEAVES_A_DETACHED_PROCESS = """
import subprocess, sys

def test_leaves():
    start = "import subprocess; print(subprocess.Popen(['sleep', '3600'], start_new_session=True).pid)"
    started = subprocess.run([sys.executable, "-c", start], stdout=open("pid", "w"), check=True)
"""


def run_check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "check", *arguments], capture_output=True, text=True, cwd="/")


def run_tests(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Run `source` as a test file through scripts/run_tests.py, with one worker process."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_inner.py").write_text(source)
    return subprocess.run(
        [sys.executable, ROOT / "scripts/run_tests.py", "-p", "no:cacheprovider", "-n", "1", "test_inner.py"],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "HERMES_CHECK_RUN": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
    )


def test_help_names_every_option() -> None:
    helped = run_check("--help")

    assert helped.returncode == 0
    assert all(option in helped.stdout for option in ("--fast", "--full", "--changed [BASE]", "PATH", "HERMES_PYTHON"))


def test_unknown_option_is_one_sentence() -> None:
    refused = run_check("--quick")

    assert (refused.returncode, refused.stderr) == (2, "check: there is no option --quick; see ./check --help\n")


def test_process_that_outlives_the_tests_fails_the_run_and_is_named(tmp_path: Path) -> None:
    ran = run_tests(tmp_path, LEAVES_A_DETACHED_PROCESS)
    left = int((tmp_path / "pid").read_text())
    os.kill(left, signal.SIGKILL)

    assert ran.returncode == 1
    assert f"left running after the tests: {left} sleep 3600" in ran.stdout
    assert "1 passed" in ran.stdout.splitlines()[-1]


def test_clean_run_ends_with_the_summary_and_zero(tmp_path: Path) -> None:
    ran = run_tests(tmp_path, "def test_x(): pass\n")

    assert ran.returncode == 0
    assert "1 passed" in ran.stdout.splitlines()[-1]


def test_failing_test_fails_the_run(tmp_path: Path) -> None:
    assert run_tests(tmp_path, "def test_x(): assert False\n").returncode == 1


def test_missing_programs_are_named_where_they_cannot_be_installed(tmp_path: Path) -> None:
    for tool in ("sh", "tr", "id"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)

    ran = subprocess.run(
        [ROOT / "scripts/install-system-parts"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )

    assert (ran.returncode, ran.stderr, ran.stdout.count("\n")) == (0, "", 1)
    assert ran.stdout.startswith("check: not installed and left out of the tests: git bash bubblewrap")


def test_a_base_that_is_none_is_one_sentence() -> None:
    refused = run_check("--changed", "no-such-commit", "--", "--collect-only")

    assert (refused.returncode, refused.stdout.splitlines()[-1]) == (2, "== what changed")
    assert refused.stderr.endswith("check: there is no commit 'no-such-commit' to compare with\n")
