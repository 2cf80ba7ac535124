"""A batch whose samples name images: each runs in its own, in a real engine, and leaves no container behind."""

import json
import subprocess
from pathlib import Path

import pytest

from hermes.batch import RunSpec, run_batch
from hermes.runtime.setup.process import shared
from hermes.testing import calls, says, thinks
from hermes.testing.replies import Reply
from hermes.testing.server import RecordedRequest, ServerThread
from tests.tools.real_backends import IMAGE, Engine

OTHER = "hermes-test-other"


def reply(request: RecordedRequest) -> Reply:
    if any(one["role"] == "tool" for one in request.json["messages"]):
        return says("Done.")
    return thinks("A look.") + calls("terminal", command='echo "mark:${MARK:-none}:$PWD"')


def _other_image(engine: Engine) -> None:
    def run(*words: str) -> str:
        line = [engine.program, *words]
        return subprocess.run(line, env=engine.env, check=True, capture_output=True, text=True).stdout.strip()

    made = run("create", "--network", "none", IMAGE, "true")
    run("commit", "--change", "ENV MARK=other", made, OTHER)
    run("rm", made)


async def test_each_sample_runs_in_the_image_it_names(
    docker_engine: Engine, hermes_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _other_image(docker_engine)
    for name, value in docker_engine.env.items():
        monkeypatch.setenv(name, value)
    (hermes_home / "config.yaml").write_text(
        f"terminal: {{backend: docker, docker_image: {IMAGE}, docker_network: false, container_memory: 512}}\n"
    )
    dataset = tmp_path / "prompts.jsonl"
    samples = [{"prompt": "plain"}, {"prompt": "other", "docker_image": OTHER, "cwd": "/opt"}]
    dataset.write_text("".join(f"{json.dumps(one)}\n" for one in samples))
    with ServerThread(reply) as server:
        spec = RunSpec(
            dataset=str(dataset),
            run_name="run",
            model="scripted",
            base_url=server.base_url,
            api_key="key",
            distribution="terminal_only",
            folder=str(tmp_path / "data"),
        )
        report = await run_batch(spec)
    await shared.close()
    assert report.is_complete
    found = (tmp_path / "data" / "trajectories.jsonl").read_text().splitlines()
    assert "mark:none:/root" in found[0]
    assert "mark:other:/opt" in found[1]
