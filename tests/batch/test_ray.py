"""`--on ray`: two real nodes in a namespace of their own, one of them lost in the middle."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.batch.conftest import lines

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = 40


@pytest.mark.full
@pytest.mark.real
def test_a_lost_node_costs_no_sample_and_doubles_none(tmp_path: Path) -> None:
    made = subprocess.run([ROOT / "scripts" / "ray_env"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"needs Ray, which scripts/ray_env could not install: {made.stderr[-200:]}")
    apart = ["unshare", "-n", "-p", "-f", "--mount-proc", "--kill-child"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("needs namespaces of its own (unshare -n -p), which this machine does not give")
    python = made.stdout.strip()
    script = str(ROOT / "tests" / "batch" / "ray_nodes.py")
    env = {**os.environ, "TMPDIR": "/tmp", "PYTHONPATH": ""}

    done = subprocess.run(
        [*apart, python, script, str(tmp_path), str(SAMPLES)], capture_output=True, text=True, timeout=900, env=env
    )

    told = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, told
    assert "node killed" in done.stdout
    assert "run ended with 0" in done.stdout, told
    assert f"{SAMPLES} of {SAMPLES} proven" in done.stdout
    run = tmp_path / "data" / "run"
    assert [one["prompt_index"] for one in lines(run / "trajectories.jsonl")] == list(range(SAMPLES))
    statistics = json.loads((run / "statistics.json").read_text())
    assert statistics["samples"] == {"done": SAMPLES, "dropped": 0, "failed": 0}
    assert statistics["tool_statistics"]["terminal"]["success"] == 2 * SAMPLES
    assert statistics["api_calls"] == 3 * SAMPLES
