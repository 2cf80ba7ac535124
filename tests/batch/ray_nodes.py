"""Two real Ray nodes and a run on them, one node killed in the middle. Run by test_ray.py in a namespace of its own.

python ray_nodes.py FOLDER SAMPLES
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path

from hermes.testing import calls, says, thinks
from hermes.testing.replies import Reply
from hermes.testing.server import RecordedRequest, ServerThread

BIN = Path(sys.executable).parent
RAY, HERMES = str(BIN / "ray"), str(BIN / "hermes")


def reply(request: RecordedRequest) -> Reply:
    rounds = sum(one["role"] == "tool" for one in request.json["messages"])
    asked = thinks("Hm.") + calls("terminal", command=f"echo {rounds}") if rounds < 2 else says("Done.")
    return asked.with_usage(input_tokens=100, output_tokens=10)


class NodeKiller:
    """Answers; at the given request the second node is lost, at once and whole."""

    def __init__(self, at: int) -> None:
        self.node = 0
        self._left = at
        self._lock = threading.Lock()

    def __call__(self, request: RecordedRequest) -> Reply:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                for pid in (*descendants(self.node), self.node):
                    os.kill(pid, signal.SIGKILL)
                sys.stdout.write("node killed\n")
        return reply(request)


def descendants(pid: int) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [*descendants(int(child)), int(child)]
    return found


def main(folder: Path, samples: int) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32), RAY_USAGE_STATS_ENABLED="0")
    dataset = folder / "prompts.jsonl"
    dataset.write_text("".join(json.dumps({"prompt": f"question {n % 5}"}) + "\n" for n in range(samples)))
    killer = NodeKiller(at=samples)
    with ServerThread(killer) as server:
        head = ["--head", "--node-ip-address=127.0.0.1", "--port=6380", "--include-dashboard=false"]
        subprocess.run([RAY, "start", *head, "--num-cpus=2"], check=True, stdout=subprocess.DEVNULL)
        second = [RAY, "start", "--address=127.0.0.1:6380", "--num-cpus=2", "--block"]
        node = subprocess.Popen(second, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        killer.node = node.pid
        command = [HERMES, "batch", "run", str(dataset), "--run-name", "run", "--on", "ray", "--num-workers", "8"]
        command += ["--model", "scripted", "--base-url", server.base_url, "--api-key", "key"]
        env = {**os.environ, "HERMES_HOME": str(folder / "home"), "RAY_ADDRESS": "127.0.0.1:6380"}
        done = subprocess.run([*command, "--distribution", "terminal_only"], cwd=folder, env=env, timeout=600)
        sys.stdout.write(f"run ended with {done.returncode}\n")
        verify = [HERMES, "trajectories", "verify", str(folder / "data/run/trajectories.jsonl")]
        sys.stdout.flush()
        subprocess.run(verify, env=env, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
