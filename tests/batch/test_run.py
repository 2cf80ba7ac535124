"""`hermes.batch`: every sample is run once, and its files are as documented."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hermes.batch import RunReport, RunSpec, run_batch
from hermes.batch.opened_run import RunStop
from hermes.batch.run_spec import RunProgress
from hermes.config.load import load_settings
from hermes.errors import UserError
from hermes.model_tools import get_all_tool_names
from hermes.runtime.setup.process import shared
from hermes.state import SqliteStore, owner
from tests.batch.conftest import Dataset, MakeSpec, lines, rows

pytestmark = pytest.mark.usefixtures("own_store")


def states(report: RunReport) -> str:
    return "".join(row.state[:2] for row in rows().rows(report.run_id))


async def test_a_run_leaves_the_documented_files(spec: MakeSpec, dataset: Dataset, tmp_path: Path) -> None:
    report = await run_batch(spec(dataset("one", "two", "one"), batch_size=2, num_workers=2))

    assert report.is_complete
    folder = tmp_path / "data" / "run"
    found = lines(folder / "trajectories.jsonl")
    assert [one["prompt_index"] for one in found] == [0, 1, 2]  # two equal prompts are two samples
    assert set(found[0]) == {
        "prompt_index",
        "conversations",
        "metadata",
        "completed",
        "partial",
        "api_calls",
        "toolsets_used",
        "tool_stats",
        "tool_error_counts",
    }
    assert found[2]["metadata"]["batch_num"] == 1
    assert found[0]["toolsets_used"] == ["terminal", "file"]
    assert found[0]["api_calls"] == 4
    assert set(found[0]["tool_stats"]) == set(found[0]["tool_error_counts"]) == set(get_all_tool_names())
    assert found[0]["tool_stats"]["terminal"] == {"count": 3, "success": 3, "failure": 0}
    assert sorted(one["prompt_index"] for one in lines(folder / "batch_0.jsonl")) == [0, 1]
    checkpoint = json.loads((folder / "checkpoint.json").read_text())
    assert checkpoint["completed_prompts"] == [0, 1, 2]
    assert checkpoint["batch_stats"]["0"] == {"processed": 2, "skipped": 0, "discarded_no_reasoning": 0}
    statistics = json.loads((folder / "statistics.json").read_text())
    assert statistics["tool_statistics"]["terminal"]["count"] == 9
    assert statistics["tool_statistics"]["terminal"]["success_rate"] == 100.0
    assert statistics["reasoning_statistics"] == {
        "total_assistant_turns": 12,
        "turns_with_reasoning": 9,
        "turns_without_reasoning": 3,
    }
    assert (statistics["total_prompts"], statistics["total_batches"], statistics["batch_size"]) == (3, 2, 2)
    assert not (folder / "workspaces").exists()


async def test_a_line_has_the_turns_of_the_documented_format(spec: MakeSpec, dataset: Dataset, tmp_path: Path) -> None:
    await run_batch(spec(dataset("say ünïcode ")))

    text = (tmp_path / "data" / "run" / "trajectories.jsonl").read_text()
    assert "ünïcode" in text  # not escaped to ASCII
    turns = json.loads(text)["conversations"]
    assert [one["from"] for one in turns] == ["system", "human", *["gpt", "tool"] * 3, "gpt"]
    tools = turns[0]["value"].split("<tools>\n")[1].split("\n</tools>")[0]
    assert {"name", "description", "parameters"} == set(json.loads(tools)[0])
    assert "<tool_call>" in turns[0]["value"]
    assert "<tool_response>" in turns[0]["value"]
    assert turns[1] == {"from": "human", "value": "say ünïcode "}
    assert turns[2]["value"] == (
        '<think>\nRound 0.\n</think>\n<tool_call>\n{"name": "terminal", "arguments": '
        '{"command": "echo 12 0 >> log && cat log"}}\n</tool_call>'
    )
    assert turns[3]["value"].startswith('<tool_response>\n{"tool_call_id": "')
    response = json.loads(turns[3]["value"].split("\n")[1])
    assert (response["name"], response["content"]["output"]) == ("terminal", "12 0")
    assert turns[-1] == {"from": "gpt", "value": "<think>\n</think>\nIt is 12."}


async def test_what_is_dropped_is_counted_with_its_reason(spec: MakeSpec, dataset: Dataset, tmp_path: Path) -> None:
    file = dataset("good", "no thoughts", "unknown tool")

    report = await run_batch(spec(file, num_workers=1))

    folder = tmp_path / "data" / "run"
    assert states(report) == "dodrdr"
    assert report.reasons == {"no_reasoning": 1, "unknown_tool": 1}
    assert [one["prompt_index"] for one in lines(folder / "trajectories.jsonl")] == [0]
    assert [one["prompt_index"] for one in lines(folder / "batch_0.jsonl")] == [0, 2]
    statistics = json.loads((folder / "statistics.json").read_text())
    assert statistics["dropped"] == {"no_reasoning": 1, "unknown_tool": 1}
    assert statistics["samples"] == {"done": 1, "dropped": 2, "failed": 0}
    checkpoint = json.loads((folder / "checkpoint.json").read_text())
    assert checkpoint["batch_stats"]["0"]["discarded_no_reasoning"] == 1

    kept = await run_batch(spec(file, run_name="all", folder=str(tmp_path / "all"), keeps_unreasoned=True))
    assert kept.progress.done == 2


async def test_bad_lines_are_told_by_number_and_a_file_without_samples_is_refused(
    spec: MakeSpec, tmp_path: Path
) -> None:
    file = tmp_path / "mixed.jsonl"
    file.write_text(
        '{"prompt": "good"}\n\nnot json\n{"prompt": ""}\n[1]\n{"prompt": "x", "cwd": 3}\n{"prompt": "fine"}\n'
    )

    report = await run_batch(spec(file))

    assert report.progress.done == 2
    assert [number for number, _ in report.bad_lines] == [3, 4, 5, 6]
    (tmp_path / "empty.jsonl").write_text("nothing\n")
    with pytest.raises(UserError, match="no line that is a sample; line 1"):
        await run_batch(spec(tmp_path / "empty.jsonl", run_name="empty"))
    with pytest.raises(UserError, match="cannot read the dataset"):
        await run_batch(spec(tmp_path / "gone.jsonl", run_name="gone"))


async def test_a_run_is_not_begun_twice_and_goes_on_with_new_rows(
    spec: MakeSpec, dataset: Dataset, tmp_path: Path
) -> None:
    first = await run_batch(spec(dataset("a", "b")))
    file = dataset("a", "b", "c", "a")

    with pytest.raises(UserError, match="already; go on with it"):
        await run_batch(spec(file))
    second = await run_batch(spec(file), resume=True)

    assert (first.progress.done, second.progress.done, second.progress.here) == (2, 4, 2)
    found = lines(tmp_path / "data" / "run" / "trajectories.jsonl")
    assert [one["prompt_index"] for one in found] == [0, 1, 2, 3]


async def test_files_that_a_kill_has_torn_are_mended(spec: MakeSpec, dataset: Dataset, tmp_path: Path) -> None:
    file = dataset("a", "b", "c")
    await run_batch(spec(file))
    batch = tmp_path / "data" / "run" / "batch_0.jsonl"
    whole = batch.read_text().splitlines(keepends=True)
    batch.write_text(whole[0] + whole[0] + whole[1] + whole[2][:50])

    await run_batch(spec(file), resume=True)

    assert sorted(one["prompt_index"] for one in lines(batch)) == [0, 1, 2]


async def test_a_sample_that_fails_is_told_and_tried_again(spec: MakeSpec, dataset: Dataset, tmp_path: Path) -> None:
    file = dataset("a", "b")
    closed = spec(file, base_url="http://127.0.0.1:9/v1")

    failed = await run_batch(closed, settings=load_settings(flags={"agent.api_max_retries": 1}))

    assert failed.progress.failed == 2
    assert failed.reasons == {"failed": 2}
    assert all("127.0.0.1:9" in row.reason or "connect" in row.reason for row in rows().rows(failed.run_id))
    again = await run_batch(spec(file), resume=True)
    assert (again.progress.done, again.progress.failed) == (2, 0)
    assert (tmp_path / "data" / "run" / "trajectories.jsonl").read_text().count("\n") == 2


async def test_a_run_that_is_drained_begins_nothing_more_and_goes_on_later(spec: MakeSpec, dataset: Dataset) -> None:
    stop = RunStop()

    def watch(progress: RunProgress) -> None:
        if progress.done >= 2:
            stop.drain()

    file = dataset(*(f"prompt {n}" for n in range(8)))
    report = await run_batch(spec(file, num_workers=2), stop=stop, on_progress=watch)

    assert not report.is_complete
    assert 2 <= report.progress.done <= 4
    assert rows().counts(report.run_id)["running"] == 0
    rest = await run_batch(spec(file), resume=True)
    assert rest.progress.done == 8


async def test_a_budget_of_the_run_stops_it(spec: MakeSpec, dataset: Dataset) -> None:
    file = dataset(*(f"prompt {n}" for n in range(6)))

    report = await run_batch(spec(file, num_workers=1, run_tokens=10_000))

    assert "budget of 10,000 tokens is used up" in report.stopped
    assert 0 < report.progress.done < 6
    rest = await run_batch(spec(file, num_workers=2), resume=True)
    assert rest.is_complete


async def test_a_budget_of_a_sample_ends_that_sample_alone(spec: MakeSpec, dataset: Dataset) -> None:
    report = await run_batch(spec(dataset("a", "no thoughts"), sample_tokens=4000, keeps_unreasoned=True))

    assert states(report) == "fado"
    reason = next(iter(rows().rows(report.run_id))).reason
    assert reason.startswith("the sample's budget is used up: ")
    assert reason.endswith(" of 4000 tokens are spent. With another: hermes batch resume run --sample-tokens N")


async def test_each_sample_has_a_folder_of_its_own(spec: MakeSpec, dataset: Dataset, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()

    await run_batch(spec(dataset("a", {"prompt": "b", "cwd": str(own)}), keeps_workspaces=True))

    assert (tmp_path / "data/run/workspaces/000000/log").read_text() == "1 0\n1 1\n1 2\n"
    assert (own / "log").read_text() == "1 0\n1 1\n1 2\n"
    assert not (tmp_path / "data/run/workspaces/000001").exists()


async def test_the_seed_chooses_the_toolsets(spec: MakeSpec, dataset: Dataset, tmp_path: Path) -> None:
    def drawn(name: str) -> list[Any]:
        return [one["toolsets_used"] for one in lines(tmp_path / name / "trajectories.jsonl")]

    file = dataset(*["no thoughts"] * 12)
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        wanted = spec(
            file,
            run_name=name,
            folder=str(tmp_path / name),
            distribution="balanced",
            seed=seed,
            keeps_unreasoned=True,
            num_workers=4,
        )
        await run_batch(wanted)

    assert drawn("one") == drawn("same") != drawn("other")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"run_name": "../out"}, "a run's name has letters"),
        ({"distribution": "nothing"}, "there is no distribution 'nothing'"),
        ({"num_workers": 0}, "num_workers is at least 1"),
    ],
)
async def test_what_cannot_be_is_refused(spec: MakeSpec, dataset: Dataset, fields: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        await run_batch(spec(dataset("a"), **fields))


async def test_no_key_is_stored_with_the_run(spec: MakeSpec, dataset: Dataset) -> None:
    report = await run_batch(spec(dataset("a"), api_key="sk-very-secret-indeed"))

    kept = rows().find(report.run_id)
    assert kept is not None
    assert "sk-very" not in json.dumps(kept.spec)
    assert RunSpec(**kept.spec).api_key == ""


async def test_a_run_that_is_at_work_is_not_gone_on_with_by_another(spec: MakeSpec, dataset: Dataset) -> None:
    file = dataset("a", "b")
    report = await run_batch(spec(file))
    other = subprocess.Popen(["sleep", "60"])  # noqa: ASYNC220 - it is only there
    try:
        stat = Path(f"/proc/{other.pid}/stat").read_text()  # noqa: ASYNC240
        place = owner.this_process().split(":")[0]
        store = shared.store(load_settings())
        assert isinstance(store, SqliteStore)
        held = f"{place}:{other.pid}:{stat.rpartition(')')[2].split()[19]}"
        store.write(
            lambda conn: (
                conn.execute("UPDATE batch_samples SET state = 'running', owner = ? WHERE idx = 1", (held,)).rowcount
            )
        )
        with pytest.raises(UserError, match=f"is at work already .pid {other.pid}"):
            await run_batch(spec(file), resume=True)
    finally:
        other.kill()
        other.wait()
    assert (await run_batch(spec(file), resume=True)).progress.done == report.progress.done == 2
