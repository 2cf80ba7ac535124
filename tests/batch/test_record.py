"""A record proves what was sent; a changed byte is found."""

import json
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes.batch import run_batch
from hermes.batch.record import verify_record
from hermes.batch.verify_files import verify_file
from hermes.config.load import load_settings
from hermes.errors import UserError
from hermes.runtime.setup.process import shared
from hermes.testing import calls, says, thinks
from hermes.testing.server import ServerThread
from tests.batch.conftest import Dataset, MakeSpec, lines


@pytest.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    yield
    await shared.close()


@pytest.fixture(scope="module")
def left() -> dict[str, bytes]:
    """The files that a run leaves; the first test that asks for them makes it."""
    return {}


@pytest.fixture
async def folder(spec: MakeSpec, dataset: Dataset, tmp_path: Path, left: dict[str, bytes]) -> Path:
    made = tmp_path / "data" / "run"
    prefill = [{"role": "user", "content": "Be brief."}, {"role": "assistant", "content": "I will."}]
    wanted = spec(
        dataset("a", "bé", "c"), prefill_messages=prefill, ephemeral_system_prompt="Think twice.", max_tokens=99
    )
    if not left:
        await run_batch(wanted)
        left.update({file.name: file.read_bytes() for file in made.glob("*.jsonl")})
    made.mkdir(parents=True, exist_ok=True)
    for name, content in left.items():
        (made / name).write_bytes(content)
    return made


async def test_every_trajectory_of_a_run_is_proven(folder: Path) -> None:
    for name in ("trajectories.jsonl", "records.jsonl"):
        found = verify_file(folder / name)
        assert (found.total, found.proven, found.calls, found.problems) == (3, 3, 12, [])


async def test_a_record_holds_what_training_needs(folder: Path) -> None:
    record = lines(folder / "records.jsonl")[1]

    (segment,) = record["segments"]
    assert [bool(one["sha256"]) for one in segment["calls"]] == [True] * 4
    assert record["written_by_model"] == [one["role"] == "assistant" for one in segment["messages"]]
    assert record["rewards"] == {"total": None, "steps": [None] * 4}
    assert len(record["environment"]["digest"]) == 64
    assert isinstance(record["seed"], int)
    assert "api_key" not in json.dumps(record)


async def test_a_changed_byte_is_found_wherever_it_is(folder: Path) -> None:
    rng = random.Random(7)
    file = folder / "records.jsonl"
    good = file.read_bytes()
    rewards = [found.span() for found in re.finditer(rb'"rewards":\{[^}]*\}', good)]  # filled in later, so not proven
    letters = [
        place
        for place, byte in enumerate(good)
        if chr(byte).isalnum() and not any(start <= place < end for start, end in rewards)
    ]
    of_format = good.index(b"format") + len(b'format":"') + 1  # the word by which a file of records is known
    for place in (of_format, *rng.sample(letters, 60)):
        changed = good[:place] + (b"z" if good[place : place + 1] != b"z" else b"y") + good[place + 1 :]
        file.write_bytes(changed)
        found = verify_file(file)
        assert found.proven < 3, changed[max(0, place - 40) : place + 40]
    file.write_bytes(good)
    assert verify_file(file).is_proven


async def test_rewards_are_filled_in_later(folder: Path) -> None:
    record = lines(folder / "records.jsonl")[0]
    record["rewards"] = {"total": 1.0, "steps": [0.1, 0.2, 0.3, 0.4]}
    assert verify_record(record).is_proven


async def test_a_forged_record_with_a_new_digest_is_found_by_its_requests(folder: Path) -> None:
    from hermes.batch.record import digest_of

    record = lines(folder / "records.jsonl")[0]
    record["segments"][0]["messages"][1]["reasoning"] = record["segments"][0]["messages"][1].get("reasoning")
    record["segments"][0]["messages"][2]["content"] = "another result"
    record["sha256"] = digest_of(record)

    assert verify_record(record).problems == [
        f"session 1, call {number}: the stored steps do not give the bytes that were sent" for number in (2, 3, 4)
    ]


async def test_a_changed_trajectory_is_found(folder: Path) -> None:
    file = folder / "trajectories.jsonl"
    first, second, third = file.read_text().splitlines(keepends=True)
    file.write_text(first + second.replace("It is", "It was") + third)

    found = verify_file(file)

    assert (found.proven, found.problems) == (2, ["line 2: the conversation is not that of the record"])


async def test_a_changed_field_of_a_trajectory_is_found(folder: Path) -> None:
    file = folder / "trajectories.jsonl"
    first, second, third = lines(file)
    reordered = dict(reversed(second.items()))
    file.write_text("".join(f"{json.dumps(one, indent=None)}\n" for one in (first, reordered, third)))
    assert verify_file(file).is_proven  # the same values, written by another program
    for name, value in second.items():
        if name in ("prompt_index", "conversations"):
            continue
        changed = {**second, name: {**value, "x": 1} if isinstance(value, dict) else [value]}
        file.write_text("".join(f"{json.dumps(one)}\n" for one in (first, changed, third)))
        found = verify_file(file)
        assert (found.proven, len(found.problems)) == (2, 1), name
        assert found.problems[0].startswith("line 2: the trajectory has been changed"), name


async def test_a_record_of_before_proves_the_conversation(folder: Path) -> None:
    from hermes.batch.record import digest_of

    records = lines(folder / "records.jsonl")
    for record in records:
        del record["line_sha256"]
        record["sha256"] = digest_of(record)
    (folder / "records.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    assert verify_file(folder / "trajectories.jsonl").is_proven


async def test_only_the_line_that_is_doubled_or_missing_is_blamed(folder: Path) -> None:
    file = folder / "trajectories.jsonl"
    first, second, third = file.read_text().splitlines(keepends=True)

    def found(*parts: str, name: str = "trajectories.jsonl") -> tuple[int, int, list[str]]:
        (folder / name).write_text("".join(parts))
        made = verify_file(folder / name)
        assert made.is_proven is not bool(made.problems)
        return made.proven, made.total, made.problems

    assert found(third, second, first) == (3, 3, [])
    told = "line 3: sample 1 is here once more; it is on line 2 already"
    assert found(first, second, second, third) == (3, 4, [told])
    assert found(first, third) == (2, 2, ["sample 1 has a record and no line"])
    assert found(first, third, name="some.jsonl") == (2, 2, [])
    assert found(first, "{\n", third) == (2, 3, ["line 2: the trajectory is no JSON object"])
    stranger = second.replace('"prompt_index": 1', '"prompt_index": 9')
    assert found(first, stranger, third)[2] == ["line 2: it has no record", "sample 1 has a record and no line"]


async def test_a_doubled_or_damaged_record_is_found(folder: Path) -> None:
    file = folder / "records.jsonl"
    first, second, third = file.read_text().splitlines(keepends=True)
    file.write_text(first + second + third + second)
    assert verify_file(file).problems == ["line 4: it is the record on line 2 once more"]
    file.write_text(first + second[: len(second) // 2] + "\n" + third)
    found = verify_file(folder / "trajectories.jsonl")
    assert (found.proven, found.problems) == (
        2,
        ["line 2: it has no record", "line 2 of the records is no JSON object with a prompt_index"],
    )


@pytest.mark.parametrize("text", ["", "[]\n", "{}\n", "no json\n", '{"format": "hermes-trajectory-record/1"}\n'])
async def test_what_is_no_record_is_never_proven(tmp_path: Path, text: str) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(text)
    if text.startswith('{"format"'):
        assert not verify_file(file).is_proven
    else:
        with pytest.raises(UserError):
            verify_file(file)


async def test_a_secret_is_redacted_before_it_is_sent_so_that_record_and_bytes_agree(
    spec: MakeSpec, dataset: Dataset, tmp_path: Path
) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"

    await run_batch(spec(dataset(f"my key is {secret}")))

    text = (tmp_path / "data/run/records.jsonl").read_text()
    assert secret not in text
    assert verify_file(tmp_path / "data/run/records.jsonl").is_proven


async def test_words_beside_a_message_are_part_of_the_proof(spec: MakeSpec, dataset: Dataset, tmp_path: Path) -> None:
    """The model is told when few calls are left; that is no message, and yet it is sent."""
    script = [thinks("Hm.") + calls("terminal", command=f"echo {n}") for n in range(9)]
    with ServerThread([*script, says("Enough.")]) as server:
        await run_batch(spec(dataset("a"), base_url=server.base_url, max_turns=8))

    record = lines(tmp_path / "data/run/records.jsonl")[0]
    assert any("calls are left" in one.get("context", "") for one in record["segments"][0]["messages"])
    assert verify_record(record).is_proven
    assert not lines(tmp_path / "data/run/trajectories.jsonl")[0]["completed"]


async def test_tokens_and_their_probabilities_are_kept_where_the_server_gives_them(
    spec: MakeSpec, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.batch.logprob_server import LogprobServer

    with LogprobServer() as url:
        report = await run_batch(spec(dataset("a"), base_url=url, logprobs=True, keeps_unreasoned=True))

    assert report.progress.done == 1, [row.reason for row in _rows(report.run_id)]
    (call,) = lines(tmp_path / "data/run/records.jsonl")[0]["segments"][0]["calls"]
    assert call["tokens"] == {
        "logprobs": [{"token": "He", "logprob": -0.5}, {"token": "llo", "logprob": -0.25}],
        "ids": [11, 12],
    }
    assert call["facts"]["options"]["extra_body"] == {"logprobs": True, "return_token_ids": True}


def _rows(run_id: str) -> list[Any]:
    return list(shared.store(load_settings()).batch_rows.rows(run_id))
