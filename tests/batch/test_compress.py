"""`hermes trajectories compress`: what is too long gets a summary, and nothing else changes."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.batch.compress import SUMMARY_MARK, plan_cut
from hermes.batch.compress_config import CompressConfig
from hermes.batch.compress_files import CompressReport, CompressWish, compress_files
from hermes.config.load import load_settings
from hermes.errors import UserError
from hermes.runtime.setup.process import shared
from hermes.testing import says
from hermes.testing.server import ScriptedServer, ServerThread
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


async def test_a_run_that_failed_goes_on_with_what_is_missing(source: Path) -> None:
    refused = pytest.raises(UserError, match="1 of 4 trajectories of in")
    with ServerThread([says("One.")]) as server, refused:  # and no reply for the second one
        await compress(source, server)
    assert not source.with_name("in_compressed.jsonl").exists()
    await shared.close()
    with ServerThread([says("Two.")]) as server:
        report = await compress(source, server)
        server.assert_finished()

    assert report.metrics.summary_calls == 1
    after = lines(source.with_name("in_compressed.jsonl"))
    summaries = {turn["value"] for one in after for turn in one["conversations"] if SUMMARY_MARK in turn["value"][:20]}
    assert summaries == {f"{SUMMARY_MARK} One.", f"{SUMMARY_MARK} Two."}
    assert not list(source.parent.glob("*.partial"))


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
