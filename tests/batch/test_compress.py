"""`hermes trajectories compress`: what is too long gets a summary, and nothing else changes."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.batch.compress import SUMMARY_MARK, plan_cut
from hermes.batch.compress_config import CompressConfig, read_config
from hermes.batch.compress_files import CompressReport, CompressWish, compress_files
from hermes.batch.compress_journal import open_journal
from hermes.config.load import load_settings
from hermes.errors import ProviderError, UserError
from hermes.runtime.setup.process import shared
from hermes.testing import fault, says
from hermes.testing.replies import Reply
from hermes.testing.server import RecordedRequest, ScriptedServer, ServerThread
from tests.batch.conftest import lines


@pytest.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    yield
    await shared.close()


def trajectory(rounds: int, **fields: Any) -> dict[str, Any]:
    turns = [{"from": "system", "value": "s" * 400}, {"from": "human", "value": "h" * 40}]
    for number in range(rounds):
        turns += [{"from": "gpt", "value": f"<tool_call>{number}" + "g" * 390}, {"from": "tool", "value": "t" * 400}]
    return {"prompt_index": 3, "conversations": [*turns, {"from": "gpt", "value": "done"}], **fields}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "in.jsonl"
    fill(file, trajectory(1), trajectory(20, other="kept"), trajectory(0), trajectory(15))
    return file


def fill(file: Path, *entries: dict[str, Any]) -> None:
    file.write_text("".join(json.dumps(one) + "\n" for one in entries))


async def compress(beside: Path, server: ScriptedServer | None, **wish: Any) -> CompressReport:
    config = beside.with_name("c.yaml")
    url = server.base_url if server else "http://127.0.0.1:9/v1"
    config.write_text(
        "compression: {target_max_tokens: 2000, summary_target_tokens: 100}\n"
        f"summarization: {{model: scripted, base_url: '{url}', max_retries: 1}}\n"
    )
    made = CompressWish(**{"source": beside, "config": config, **wish})
    return await compress_files(made, load_settings(), lambda _: None)


async def test_what_is_too_long_gets_a_summary(source: Path) -> None:
    with ServerThread([says("Much was done."), says("Much was done.")]) as server:
        report = await compress(source, server)

    before, after = lines(source), lines(source.with_name("in_compressed.jsonl"))
    assert [one["prompt_index"] for one in after] == [3] * 4
    assert (after[0], after[2]) == (before[0], before[2])
    turns = after[1]["conversations"]
    assert after[1]["other"] == "kept"
    assert [one["from"] for one in turns[:5]] == ["system", "human", "gpt", "tool", "human"]
    assert turns[4]["value"] == f"{SUMMARY_MARK} Much was done."
    assert "summarized" in turns[0]["value"]
    assert turns[1:4] == before[1]["conversations"][1:4]
    assert turns[-4:] == before[1]["conversations"][-4:]
    assert sum(len(one["value"]) for one in turns) / 4 <= 2000
    metrics = json.loads(source.with_name("in_compressed_metrics.json").read_text())
    assert (metrics["trajectories"], metrics["compressed"], metrics["copied"]) == (4, 2, 2)
    assert report.metrics.summary_calls == 2
    assert not list(source.parent.glob("*.partial"))


async def test_a_dry_run_asks_nobody_and_writes_nothing(source: Path) -> None:
    report = await compress(source, None, is_dry=True)
    assert report.metrics.copied == 2
    assert sorted(one.name for one in source.parent.glob("in*")) == ["in.jsonl"]


def poisoned(source: Path) -> None:
    """Make line 3 one that no server sums up."""
    entry = trajectory(15)
    entry["conversations"][10]["value"] += "poison"
    fill(source, trajectory(1), trajectory(20), entry)


def refuses_poison(request: RecordedRequest) -> Reply:
    return fault("refused") if "poison" in json.dumps(request.json) else says("Much was done.")


def breaks_off_at_poison(request: RecordedRequest) -> Reply:
    return fault("reset") if "poison" in json.dumps(request.json) else says("Much was done.")


async def test_a_summary_that_fails_leaves_its_line_as_it_is_and_is_tried_again(source: Path) -> None:
    output = source.with_name("in_compressed.jsonl")
    poisoned(source)
    with ServerThread(refuses_poison) as server:
        first = (await compress(source, server)).metrics
        with output.with_name(f"{output.name}.partial").open("a") as kept:
            kept.write('{"key": "ab')  # what a kill in the middle of a write leaves
        again = (await compress(source, server)).metrics

    assert (first.failed, first.compressed, first.copied) == (1, 1, 1)
    assert first.errors[0].startswith("line 3: ")
    before, after = lines(source), lines(output)
    assert (after[0], after[2]) == (before[0], before[2])
    assert len(after[1]["conversations"]) < len(before[1]["conversations"])
    assert (again.failed, again.summary_calls) == (1, 3)
    await shared.close()
    with ServerThread([says("Now it is well.")]) as server:
        last = (await compress(source, server)).metrics
        server.assert_finished()

    assert (last.failed, last.compressed, last.summary_calls) == (0, 2, 4)
    assert not list(source.parent.glob("*.partial"))


async def test_a_server_that_breaks_off_at_one_trajectory_and_answers_others_is_there(source: Path) -> None:
    poisoned(source)
    with ServerThread(breaks_off_at_poison) as server:
        metrics = (await compress(source, server)).metrics
    assert (metrics.failed, metrics.compressed, metrics.copied) == (1, 1, 1)
    assert len(lines(source.with_name("in_compressed.jsonl"))) == 3


async def test_figures_of_a_run_that_was_cut_off_are_those_of_the_whole(source: Path) -> None:
    with ServerThread(lambda _: says("Much was done.")) as server:
        whole = (await compress(source, server, output=source.with_name("whole.jsonl"))).metrics
        await shared.close()
    with ServerThread([says("Much was done."), fault("unauthorized")]) as server, pytest.raises(ProviderError):
        await compress(source, server)
    await shared.close()
    with ServerThread([says("Much was done.")]) as server:
        await compress(source, server)
        server.assert_finished()

    metrics = json.loads(source.with_name("in_compressed_metrics.json").read_text())
    assert {**metrics, "seconds": 0} == {**msgspec.to_builtins(whole), "seconds": 0}


async def test_a_run_that_fails_leaves_an_earlier_output_as_it_was(source: Path) -> None:
    output = source.with_name("in_compressed.jsonl")
    output.write_text("from before\n")
    with pytest.raises(UserError, match=r"0\.001 % of its lines are none"):
        await compress(source, None, sample_percent=0.001)
    with pytest.raises(ProviderError):  # nobody listens
        await compress(source, None)
    with ServerThread(lambda _: fault("refused")) as server, pytest.raises(UserError, match="left as it was"):
        await compress(source, server)
    fill(source, {"conversations": []})
    with pytest.raises(UserError, match="there are no trajectories"):
        await compress(source, None)
    assert output.read_text() == "from before\n"
    assert not list(source.parent.glob("*.partial"))  # nothing in it would be worth keeping


async def test_a_second_run_on_one_output_is_refused(source: Path) -> None:
    with (
        open_journal(source.with_name("in_compressed.jsonl")),
        pytest.raises(UserError, match="another process is writing"),
    ):
        await compress(source, None)
    assert sorted(one.name for one in source.parent.glob("in*")) == ["in.jsonl"]


async def test_secrets_are_not_sent_to_the_model_that_sums_up(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_PASSWORD", "correct-horse-battery")
    entry = trajectory(20)
    entry["conversations"][8]["value"] += " correct-horse-battery sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    fill(source, entry)
    with ServerThread([says("Done.")]) as server:
        await compress(source, server)
        sent = json.dumps([request.json for request in server.requests])

    assert "<tool_call>4" in sent
    assert "correct-horse" not in sent
    assert "sk-proj" not in sent


async def test_what_stays_too_long_is_named(source: Path) -> None:
    long = {"from": "human", "value": "h" * 40_000}
    fill(source, trajectory(1), {"conversations": [long, *trajectory(5)["conversations"]]}, {"conversations": [long]})
    with ServerThread([says("Done.")]) as server:
        report = await compress(source, server)

    assert report.metrics.still_over == 2
    assert [one.partition(":")[0] for one in report.metrics.over] == ["line 2", "line 3"]


async def test_the_notice_stands_once_however_often_a_trajectory_is_compressed(source: Path) -> None:
    fill(source, trajectory(40))
    with ServerThread(lambda _: says("Much was done.")) as server:
        await compress(source, server)
        twice = await compress(source, server, source=source.with_name("in_compressed.jsonl"), target_max_tokens=1200)

    system = lines(twice.output)[0]["conversations"][0]["value"]
    assert (twice.metrics.compressed, system.count("summarized")) == (1, 1)


async def test_a_sample_is_the_same_for_the_same_seed(source: Path) -> None:
    fill(source, *(trajectory(0, n=n) for n in range(100)))
    chosen = []
    for seed in (1, 1, 2):
        await compress(source, None, sample_percent=20.0, seed=seed)
        chosen.append([one["n"] for one in lines(source.with_name("in_compressed.jsonl"))])
    assert chosen[0] == chosen[1] != chosen[2]
    assert len(chosen[0]) == 20
    assert chosen[0] == sorted(chosen[0])


async def test_a_folder_is_compressed_file_by_file(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (folder / name).write_text(json.dumps(trajectory(1)) + "\n")
    report = await compress(source, None, source=folder)
    assert sorted(one.name for one in (tmp_path / "many_compressed").iterdir()) == ["a.jsonl", "b.jsonl"]
    assert report.metrics.trajectories == 2
    assert (tmp_path / "many_compressed_metrics.json").is_file()


async def test_of_the_folder_of_a_run_only_its_trajectories_are_taken(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("trajectories.jsonl", "batch_0.jsonl", "trajectories_compressed.jsonl"):
        fill(folder / name, trajectory(1), trajectory(0))
    fill(folder / "records.jsonl", {"prompt_index": 3})
    report = await compress(source, None, source=folder)
    assert [one.name for one in (tmp_path / "run_compressed").iterdir()] == ["trajectories.jsonl"]
    assert (report.metrics.trajectories, report.metrics.bad_lines) == (2, 0)


@pytest.mark.parametrize("output", ["many", "./many", "link"])
async def test_a_folder_is_never_written_onto_itself(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "many"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    fill(folder / "a.jsonl", trajectory(1), trajectory(0))
    with pytest.raises(UserError, match="would take the place of the input"):
        await compress(source, None, source=folder, output=Path(output))
    assert lines(folder / "a.jsonl") == [trajectory(1), trajectory(0)]


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("summarization: {api_key_env: NOT_SET_ANYWHERE}", "names 'NOT_SET_ANYWHERE', which is not set"),
        ("output: {output_suffix: /x}", "is part of a file's name"),
        ("metrics: {output_file: in.jsonl}", "would take the place of trajectories"),
    ],
)
async def test_a_setting_that_cannot_be_is_refused(source: Path, setting: str, told: str) -> None:
    config = source.with_name("own.yaml")
    config.write_text(f"compression: {{target_max_tokens: 2000}}\n{setting}\n")
    before = lines(source)
    with pytest.raises(UserError, match=told):
        await compress(source, None, config=config)
    assert lines(source) == before


def test_settings_without_effect_are_told(tmp_path: Path) -> None:
    config, told = tmp_path / "c.yaml", list[str]()
    config.write_text("processing: {num_workers: 8, max_concurrent_requests: 2}\n")
    assert read_config(config, told.append).processing.max_concurrent_requests == 2
    assert told == ["c.yaml: processing.num_workers has no effect here"]


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"sample_percent": 0.0}, "sample-percent is above 0"),
        ({"tokenizer": "some/hub-name"}, "nothing is fetched from a hub"),
        ({"target_max_tokens": 50}, "has to be larger"),
    ],
)
async def test_what_cannot_be_is_refused(source: Path, wish: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        await compress(source, None, **wish)


@given(
    kinds=st.lists(st.sampled_from(["gpt", "tool", "human"]), max_size=30),
    sizes=st.lists(st.integers(1, 500), min_size=40, max_size=40),
    tail=st.integers(0, 6),
)
@settings(max_examples=300, deadline=None)
def test_a_cut_never_parts_a_call_from_its_result(kinds: list[str], sizes: list[int], tail: int) -> None:
    kinds = ["system", "human", *kinds]
    sizes = sizes[: len(kinds)]
    config = CompressConfig()
    config.compression.target_max_tokens, config.compression.summary_target_tokens = 1000, 100
    config.protected_turns.last_n_turns = tail

    cut = plan_cut(sizes, kinds, config)

    if sum(sizes) <= 1000:
        assert cut is None
    if cut is not None:
        assert 0 < cut.start < cut.end <= max(cut.start, len(kinds) - tail)
        assert cut.tokens == sum(sizes[cut.start : cut.end])
        assert kinds[cut.start] != "tool"
        assert cut.end == len(kinds) or kinds[cut.end] != "tool"
