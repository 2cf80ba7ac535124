"""Runs that go on, or are begun anew: one conversation for each sample, one budget, one set of files."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest

from hermes.batch import run_batch
from hermes.batch.opened_run import RunStop
from hermes.batch.run_spec import RunProgress
from hermes.batch.verify_files import verify_file
from hermes.config.load import load_settings
from hermes.errors import UserError
from hermes.runtime.setup.process import shared
from hermes.state import SqliteStore
from hermes.testing.server import ScriptedServer
from tests.batch.conftest import Dataset, MakeSpec, lines, rows

pytestmark = pytest.mark.usefixtures("own_store")


def asked(folder: Path) -> list[list[str]]:
    """What people said in each trajectory."""
    found = lines(folder / "trajectories.jsonl")
    return [[turn["value"] for turn in one["conversations"] if turn["from"] == "human"] for one in found]


async def test_a_place_with_other_words_is_another_conversation(spec: MakeSpec, dataset: Dataset) -> None:
    await run_batch(spec(dataset("one", "two")))

    report = await run_batch(spec(dataset("one", "three")), resume=True)

    assert asked(report.folder) == [["one"], ["three"]]


async def test_a_forgotten_run_is_begun_anew_with_nothing_of_the_old_one(spec: MakeSpec, dataset: Dataset) -> None:
    file = dataset("one")
    first = await run_batch(spec(file))
    rows().forget(first.run_id)
    with pytest.raises(UserError, match="holds files of another run"):
        await run_batch(spec(file))
    for each in first.folder.iterdir():
        each.unlink()

    second = await run_batch(spec(file))

    assert asked(second.folder) == [["one"]]
    assert rows().spending(second.run_id).calls == 4


async def test_a_budget_of_the_run_counts_what_was_cut_off(
    spec: MakeSpec, dataset: Dataset, server: ScriptedServer
) -> None:
    file = dataset(*(f"prompt {n}" for n in range(4)))
    first = await run_batch(spec(file, num_workers=2, run_tokens=3000))
    assert first.progress.done == 0
    spent, sent = rows().spending(first.run_id), len(server.requests)
    assert spent.tokens >= 3000

    again = await run_batch(spec(file, num_workers=2, run_tokens=3000), resume=True)

    assert f"budget of 3,000 tokens is used up ({spent.tokens:,})" in again.stopped
    assert len(server.requests) == sent


async def test_no_budget_in_dollars_is_pretended_where_nobody_knows_the_price(
    spec: MakeSpec, dataset: Dataset, server: ScriptedServer
) -> None:
    report = await run_batch(spec(dataset("a", "b", "c"), num_workers=1, run_usd=1.0))

    assert "nobody knows what 'scripted' costs" in report.stopped
    assert len(server.requests) == 1


async def test_a_resume_gives_a_sample_no_second_budget(
    spec: MakeSpec, dataset: Dataset, server: ScriptedServer
) -> None:
    wanted = spec(dataset("a"), sample_tokens=4000)
    await run_batch(wanted)
    sent = len(server.requests)

    again = await run_batch(wanted, resume=True)

    assert (again.progress.failed, len(server.requests)) == (1, sent)
    assert (await run_batch(spec(dataset("a"), sample_tokens=40_000), resume=True)).progress.done == 1


async def test_a_model_that_says_nothing_has_failed(spec: MakeSpec, dataset: Dataset) -> None:
    report = await run_batch(spec(dataset("say nothing"), keeps_unreasoned=True))

    (row,) = rows().rows(report.run_id)
    assert (row.state, row.reason) == ("failed", "the model gave no answer")


@pytest.mark.parametrize(("name", "value"), [("batch_size", 3), ("seed", 7), ("model", "other"), ("max_turns", 2)])
async def test_a_run_goes_on_as_it_was_begun(spec: MakeSpec, dataset: Dataset, name: str, value: Any) -> None:
    file = dataset("a")
    await run_batch(spec(file))

    with pytest.raises(UserError, match=f"was begun with {name} .* and cannot go on with {value!r}"):
        await run_batch(spec(file, **{name: value}), resume=True)


async def test_samples_past_the_end_of_the_dataset_wait(spec: MakeSpec, dataset: Dataset) -> None:
    stop = RunStop()

    def watch(progress: RunProgress) -> None:
        if progress.done:
            stop.drain()

    first = await run_batch(spec(dataset("a", "b", "c", "d"), num_workers=1), stop=stop, on_progress=watch)
    assert first.progress.done < 4

    report = await run_batch(spec(dataset("a", "b")), resume=True)

    assert (report.progress.done, report.progress.total, report.is_complete) == (2, 2, True)
    assert rows().counts(report.run_id)["waiting"] == 2


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"provider": "nosuch", "base_url": ""}, "nosuch"),
        ({"providers_allowed": ["one"]}, "provider"),
        ({"sample_usd": float("nan")}, "sample_usd is a number above 0"),
        ({"run_tokens": -1}, "run_tokens is a number above 0"),
        ({"distribution": "browser_only"}, "none of the toolsets of 'browser_only' has a tool here"),
    ],
)
async def test_what_no_sample_could_run_with_is_refused_before_anything_is_written(
    spec: MakeSpec, dataset: Dataset, tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    with pytest.raises(UserError, match=told):
        await run_batch(spec(dataset("a"), **fields))

    assert rows().runs() == []
    assert not (tmp_path / "data" / "run").exists()


async def test_toolsets_without_a_tool_are_told_and_not_claimed(spec: MakeSpec, dataset: Dataset) -> None:
    told: list[list[str]] = []
    wanted = spec(dataset("no thoughts"), distribution="default", keeps_unreasoned=True)

    report = await run_batch(wanted, on_progress=lambda progress: told.append(progress.notes))

    (line,) = lines(report.folder / "trajectories.jsonl")
    ((note,), *_) = told
    absent = note.removeprefix("these toolsets have no tool here, so no sample has them: ").split(", ")
    assert "browser" in absent
    assert not set(absent) & set(line["toolsets_used"])


async def test_secrets_in_the_words_of_a_run_are_neither_stored_nor_sent(
    spec: MakeSpec, dataset: Dataset, server: ScriptedServer
) -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 5
    wanted = spec(
        dataset("no thoughts"),
        ephemeral_system_prompt=f"Use {secret}.",
        prefill_messages=[{"role": "user", "content": f"I have {secret}"}, {"role": "assistant", "content": "Ok."}],
        keeps_unreasoned=True,
    )

    report = await run_batch(wanted)

    assert report.progress.done == 1
    (line,) = lines(report.folder / "trajectories.jsonl")
    assert "Use " in server.requests[0].json["messages"][0]["content"].splitlines()[-1]
    assert "Use " not in line["conversations"][0]["value"].split("<tools>")[0].splitlines()[-1]  # for this run alone
    assert verify_file(report.folder / "trajectories.jsonl").is_proven
    kept = rows().find(report.run_id)
    assert kept is not None
    assert secret not in json.dumps(kept.spec)
    assert secret not in json.dumps(server.requests[0].json)


async def test_a_folder_that_a_sample_names_has_to_be_there(spec: MakeSpec, dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    gone = {"prompt": "no thoughts", "cwd": "gone"}
    report = await run_batch(
        spec(dataset({"prompt": "a", "cwd": "own"}, gone, {**gone, "cwd": "a\0b"}), keeps_unreasoned=True)
    )

    found = list(rows().rows(report.run_id))
    assert [row.state for row in found] == ["done", "failed", "failed"]
    assert found[1].reason == "there is no folder 'gone', which the sample names as its cwd"
    assert (tmp_path / "own" / "log").exists()  # beside the dataset


async def test_a_link_in_place_of_the_workspaces_is_not_followed(
    spec: MakeSpec, dataset: Dataset, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    (precious / "000000").mkdir(parents=True)
    wanted = spec(dataset("a"))
    folder = tmp_path / "data" / "run"
    folder.mkdir(parents=True)
    (folder / "workspaces").symlink_to(precious)

    with pytest.raises(UserError, match="is a link"):
        await run_batch(wanted)

    assert (precious / "000000").is_dir()


async def test_a_dataset_that_changes_under_a_run_is_found_out(spec: MakeSpec, dataset: Dataset) -> None:
    def swap(_: RunProgress) -> None:
        if swap.__dict__.setdefault("is_done", False) is False:
            swap.__dict__["is_done"] = True
            dataset("b")

    report = await run_batch(spec(dataset("a")), on_progress=swap)

    (row,) = rows().rows(report.run_id)
    assert (row.state, "has changed in the dataset" in row.reason) == ("failed", True)


async def test_a_dataset_that_can_be_read_but_once_is_refused(spec: MakeSpec) -> None:
    with pytest.raises(UserError, match="is no file; it is read more than once"):
        await run_batch(spec(Path("/dev/null")))


async def test_a_kill_before_the_row_leaves_a_broken_answer_broken(spec: MakeSpec, dataset: Dataset) -> None:
    wanted = spec(dataset("break off"))
    first = await run_batch(wanted)
    before = lines(first.folder / "trajectories.jsonl")
    store = shared.store(load_settings())
    assert isinstance(store, SqliteStore)
    undone = "UPDATE batch_samples SET state = 'waiting', owner = NULL, facts = NULL, body = NULL"
    store.write(lambda conn: conn.execute(undone).rowcount)

    again = await run_batch(wanted, resume=True)

    after = lines(again.folder / "trajectories.jsonl")
    assert (before[0]["completed"], before[0]["partial"]) == (False, True)
    told = ("conversations", "completed", "partial", "api_calls")
    assert [after[0][name] for name in told] == [before[0][name] for name in told]
    assert json.loads((again.folder / "statistics.json").read_text())["incomplete_samples"] == 1


async def test_one_process_at_a_time_works_on_a_run(spec: MakeSpec, dataset: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "run"
    folder.mkdir(parents=True)
    other = os.open(folder, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)

    with pytest.raises(UserError, match="is at work already"):
        await run_batch(spec(dataset("a")))

    assert rows().runs() == []
    os.close(other)
    assert (await run_batch(spec(dataset("no thoughts"), keeps_unreasoned=True))).is_complete


async def test_what_changed_in_a_dataset_is_told_and_another_one_refused(spec: MakeSpec, dataset: Dataset) -> None:
    plain = {"keeps_unreasoned": True, "num_workers": 1}
    await run_batch(spec(dataset("no thoughts", "no thoughts 2", "no thoughts 3"), **plain))
    told: list[list[str]] = []

    other = dataset("no thoughts 9", name="other.jsonl")
    with pytest.raises(UserError, match="holds other words at 1 of its places"):
        await run_batch(spec(other, **plain), resume=True)
    await run_batch(
        spec(dataset("no thoughts", "no thoughts 5"), **plain),
        resume=True,
        on_progress=lambda one: told.append(one.notes),
    )

    assert told[0] == [
        "places of the dataset that hold other words now, and are new samples: 1",
        "samples past the end of the dataset: 1; what has ended of these stays, the others wait",
    ]


async def test_folders_that_a_kill_left_of_ended_samples_go(spec: MakeSpec, dataset: Dataset, tmp_path: Path) -> None:
    file = dataset("no thoughts", "no thoughts")
    await run_batch(spec(file, keeps_unreasoned=True))
    left = tmp_path / "data" / "run" / "workspaces" / "000001"
    left.mkdir(parents=True)
    (left / "log").write_text("x")

    await run_batch(spec(file, keeps_unreasoned=True), resume=True)

    assert not left.parent.exists()
