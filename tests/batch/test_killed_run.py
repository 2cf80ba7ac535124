"""SIGKILL at any point: every sample is in the output exactly once, and the figures are those of an undisturbed run."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from hermes.batch.verify_files import verify_file
from hermes.testing.replies import Reply
from hermes.testing.server import RecordedRequest, ServerThread
from tests.batch.conftest import lines, reply

KILLS = 100 if os.environ.get("HERMES_TEST_FULL") == "1" else 4
OF_TIME = ("completed_at", "duration_seconds")


class KillingReply:
    """Answers, and at its `at`-th request kills whoever asks."""

    def __init__(self) -> None:
        self.victim: subprocess.Popen[bytes] | None = None
        self.at = 0

    def __call__(self, request: RecordedRequest) -> Reply:
        self.at -= 1
        if self.at == 0 and self.victim is not None:
            self.victim.send_signal(signal.SIGKILL)
        # What is made up otherwise counts the ids of calls, which grow with the number of requests.
        return reply(request).with_usage(input_tokens=100, output_tokens=10)


def start(folder: Path, url: str, dataset: Path) -> "subprocess.Popen[bytes]":
    options = ["--run-name", "run", "--model", "scripted", "--base-url", url, "--api-key", "key", "--resume"]
    options += ["--distribution", "terminal_only", "--num-workers", "6", "--batch-size", "5"]
    command = [sys.executable, "-m", "hermes", "batch", "run", str(dataset), *options]
    folder.mkdir(exist_ok=True)
    env = {**os.environ, "HERMES_HOME": str(folder / "home")}
    return subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finished(process: "subprocess.Popen[bytes]") -> int:
    try:
        process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    return process.returncode


def figures(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "data" / "run" / "statistics.json").read_text())
    return {name: value for name, value in told.items() if name not in OF_TIME}


def test_killed_runs_give_each_sample_once_and_the_same_figures(tmp_path: Path) -> None:
    rng = random.Random(34)
    many = max(20, KILLS * 2)
    dataset = tmp_path / "prompts.jsonl"
    dataset.write_text("".join(json.dumps({"prompt": f"question {n % 7}"}) + "\n" for n in range(many)))
    killing = KillingReply()
    with ServerThread(killing) as server:
        assert finished(start(tmp_path / "calm", server.base_url, dataset)) == 0
        killed = 0
        while True:
            killing.at = rng.randint(2, 14) if killed < KILLS else 0
            killing.victim = start(tmp_path / "wild", server.base_url, dataset)
            code = finished(killing.victim)
            if code == 0:
                break
            assert code == -signal.SIGKILL
            killed += 1

    assert killed >= KILLS // 2
    run = tmp_path / "wild" / "data" / "run"
    assert [one["prompt_index"] for one in lines(run / "trajectories.jsonl")] == list(range(many))
    in_batches = [one["prompt_index"] for file in run.glob("batch_*.jsonl") for one in lines(file)]
    assert sorted(in_batches) == list(range(many))
    assert figures(tmp_path / "wild") == figures(tmp_path / "calm")
    assert verify_file(run / "trajectories.jsonl").is_proven
    said = [
        [turn["value"] for turn in one["conversations"] if turn["from"] == "gpt"]
        for one in lines(run / "trajectories.jsonl")
    ]
    calm = lines(tmp_path / "calm" / "data" / "run" / "trajectories.jsonl")
    assert said == [[turn["value"] for turn in one["conversations"] if turn["from"] == "gpt"] for one in calm]
