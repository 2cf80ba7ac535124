"""The example project's own tests pass, the way its user runs them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tests_of_the_example_pass(tmp_path: Path) -> None:
    project = tmp_path / "word_count"
    shutil.copytree(ROOT / "examples" / "word_count", project, ignore=shutil.ignore_patterns("__pycache__"))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src"), "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "hermes.testing.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
