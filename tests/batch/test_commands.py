"""`hermes batch` and `hermes trajectories`, as a person uses them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.batch.export_file import require_free, write_lines
from hermes.errors import UserError
from hermes.state.batch_rows import BatchRun
from hermes.surfaces.cli.main import main
from hermes.testing.server import ScriptedServer
from tests.batch.conftest import Dataset, lines


@pytest.fixture
def hermes(tmp_path: Path) -> "Hermes":
    return Hermes(tmp_path)


class Hermes:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str, module: str = "hermes") -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", module, *words]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120)


def test_a_run_from_beginning_to_end(hermes: Hermes, server: ScriptedServer, dataset: Dataset, tmp_path: Path) -> None:
    file = dataset("a", "no thoughts", "b")
    model = [
        "--model",
        "scripted",
        "--base-url",
        server.base_url,
        "--api-key",
        "key",
        "--distribution",
        "terminal_only",
    ]

    done = hermes("batch", "run", str(file), "--run-name", "first", "--processes", "2", "--json", *model)

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["done"], result["dropped"], result["dropped_by"]) == (2, 1, {"no_reasoning": 1})
    assert json.loads(hermes("batch", "status", "first", "--json").stdout)["done"] == 2
    stats = hermes("batch", "stats", "first")
    assert "2 done, 1 dropped, 0 failed of 3" in stats.stdout
    assert "no_reasoning: 1 (the model showed no reasoning; run with --keep-unreasoned" in stats.stdout
    again = hermes("batch", "run", str(file), "--run-name", "first", *model)
    assert (again.returncode, "already" in again.stderr) == (1, True)
    exported = hermes("batch", "export", "first")
    assert exported.stdout == (tmp_path / "data/first/trajectories.jsonl").read_text()
    (tmp_path / "mine.jsonl").write_text("mine\n")
    refused = hermes("batch", "export", "first", "--output", "mine.jsonl")
    assert (refused.returncode, "or write over it with --force" in refused.stderr) == (1, True)
    forced = hermes("batch", "export", "first", "--output", "mine.jsonl", "--force")
    assert (forced.stderr, (tmp_path / "mine.jsonl").read_text()) == ("2 lines are in mine.jsonl\n", exported.stdout)
    verified = hermes("trajectories", "verify", "data/first")
    assert (verified.returncode, verified.stdout) == (0, "2 of 2 proven, 8 model calls rendered again\n")
    assert hermes("batch", "resume", "first", "--api-key", "key").returncode == 0
    assert hermes("batch", "forget", "first").returncode == 0
    assert "no run 'first'" in hermes("batch", "stats", "first").stderr


def test_compress_tells_what_stays_too_long_and_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    long = {"conversations": [{"from": "human", "value": "h" * 70_000}]}
    Path("in.jsonl").write_text(f"{json.dumps(long)}\nno json\n")

    assert main(["trajectories", "compress", "in.jsonl"]) == 0

    told = capsys.readouterr()
    assert told.out == "in_compressed.jsonl\n"
    assert told.err.splitlines() == [
        "0 of 1 trajectories are compressed, 0 fit as they are",
        "17,500 tokens before, 17,500 after",
        "  line 2: it is no trajectory, and is left out",
        "Longer than the target all the same: 1",
        "  line 1: 17,500 tokens",
    ]


def test_an_export_takes_the_place_of_nothing_that_is_needed(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" / "first"
    folder.mkdir(parents=True)
    (tmp_path / "link.jsonl").symlink_to(dataset("a"))
    run = BatchRun(run_id="1", name="first", folder=str(folder), spec={"dataset": str(dataset("a"))})
    for name, told in (
        ("prompts.jsonl", "is the dataset of the run 'first'"),
        ("link.jsonl", "is the dataset of the run 'first'"),
        ("data/first/records.jsonl", "is a file of the run 'first' itself"),
        ("data/first/batch_12.jsonl", "is a file of the run 'first' itself"),
        ("data/gone/mine.jsonl", "there is no folder 'data/gone' for 'mine.jsonl'; make it first"),
    ):
        with pytest.raises(UserError, match=told):
            require_free(Path(name), [run], force=True)
    require_free(Path("data/first/mine.jsonl"), [run], force=False)


def test_an_export_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "one"
        raise UserError("no more")

    mine = tmp_path / "mine.jsonl"
    mine.write_text("before\n")
    with pytest.raises(UserError, match="no more"):
        write_lines(mine, lines())
    assert mine.read_text() == "before\n"
    assert write_lines(Path("/dev/null"), ["one"]) == 1
    assert write_lines(mine, ["one", "two"]) == 2
    assert (mine.read_text(), [one.name for one in tmp_path.iterdir()]) == ("one\ntwo\n", ["mine.jsonl"])


def test_the_old_command_takes_the_old_options(hermes: Hermes, server: ScriptedServer, dataset: Dataset) -> None:
    file = dataset("a", "b", "c")
    words = [f"--dataset_file={file}", "--batch_size=2", "--run_name=old", "--distribution=terminal_only"]
    words += ["--model=scripted", f"--base_url={server.base_url}", "--api_key=key", "--max_samples", "2", "--verbose"]

    done = hermes(*words, module="hermes.compat.batch_runner")

    assert done.returncode == 0, done.stderr
    assert len(lines(hermes.folder / "data/old/trajectories.jsonl")) == 2
    assert hermes("--run_name=x", module="hermes.compat.batch_runner").returncode == 2
    listed = hermes("--list_distributions", module="hermes.compat.batch_runner").stdout
    assert "terminal_web" in listed


def test_a_failed_start_has_an_exit_code(hermes: Hermes, dataset: Dataset) -> None:
    gone = hermes("batch", "run", "gone.jsonl", "--run-name", "x", "--distribution", "terminal_only")
    assert (gone.returncode, "cannot read the dataset" in gone.stderr) == (1, True)
    ray = hermes("batch", "run", str(dataset("a")), "--run-name", "x", "--distribution", "terminal_only", "--on", "ray")
    assert ray.returncode == 1
    assert "ray" in ray.stderr.lower()
