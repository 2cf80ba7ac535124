"""`hermes model local`: the GGUF files and the servers that are on this machine are offered."""

import json
import os
from pathlib import Path

import pytest

from hermes.surfaces.cli.local_models import MAX_FILES, gguf_files
from hermes.testing.replies import says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.conftest import Run
from tests.surfaces.cli.interactive.terminal import hermes


def weights(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"GGUF" + bytes(60))
    return file


def test_files_and_servers_that_are_there_are_listed(run: Run, tmp_path: Path) -> None:
    here = weights(tmp_path / "here.gguf")
    far = weights(tmp_path / ".lmstudio/models/a/b/far.gguf")
    (tmp_path / "models").mkdir()
    (tmp_path / "models/text.gguf").write_text("no weights")
    weights(tmp_path / "models/mmproj-model.gguf")
    weights(tmp_path / "models/big-00002-of-00003.gguf")
    first = weights(tmp_path / "models/big-00001-of-00003.gguf")

    with ServerThread(lambda _: says("Hi.")) as server:
        address = server.base_url
        found = run("model", "local", "--models", "--json", OLLAMA_HOST=address.split("/")[2])

    rows = json.loads(found.stdout)
    files = [row["model"] for row in rows if row["provider"] == "local" and row["model"]]
    assert files == sorted(map(str, (here, far, first)))
    assert ["scripted", address] in [[row["model"], row["base_url"]] for row in rows]


def test_a_home_full_of_files_is_looked_at_for_a_while_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(MAX_FILES + 20):
        weights(tmp_path / f"models/{number:03}.gguf")
    (tmp_path / "models/loop").symlink_to(tmp_path / "models")
    (tmp_path / "models/closed").mkdir(mode=0o000)
    os.mkfifo(tmp_path / "models/pipe.gguf")
    assert len(gguf_files(tmp_path / "home", {"HOME": str(tmp_path)})) == MAX_FILES


def test_a_server_that_is_offered_is_taken_by_its_number(environ: dict[str, str], tmp_path: Path) -> None:
    with ServerThread(lambda _: says("Hi.")) as server:
        address = server.base_url
        seen = {**environ, "OLLAMA_HOST": address.split("/")[2], "TERM": "dumb"}
        with hermes("model", "local", environ=seen, cwd=tmp_path) as terminal:
            terminal.wait_for("path of a GGUF file")
            number = next(line.split()[0] for line in terminal.text.splitlines() if "scripted" in line)
            terminal.type(f"99\n{number}\n")
            assert terminal.ended() == 0
    assert f"base_url = {address}" in terminal.text
    assert "Now type: hermes" in terminal.text


def test_a_path_that_is_no_model_changes_nothing(environ: dict[str, str], tmp_path: Path, home: Path) -> None:
    with hermes("model", "local", environ={**environ, "TERM": "dumb"}, cwd=tmp_path) as terminal:
        terminal.wait_for("path of a GGUF file")
        terminal.type("gone.gguf\n")
        assert terminal.ended() == 1
    assert "No such file" in terminal.text
    assert not (home / "config.yaml").exists()


def test_an_address_for_one_run_is_not_called_the_box(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("model: {provider: local}\n")
    with ServerThread(lambda _: says("Hello.")) as server:
        done = run("chat", "-q", "hi", "--base-url", server.base_url)
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "in the box" not in done.stderr
