"""A provider whose answers depend on what it is asked alone, so that a run gives the same however it is disturbed."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.batch import RunSpec
from hermes.config.load import load_settings
from hermes.runtime.setup.process import shared
from hermes.state.batch_rows import BatchRows
from hermes.testing import calls, says, thinks
from hermes.testing.replies import Reply
from hermes.testing.server import RecordedRequest, ScriptedServer, ServerThread

TURNS = 3

Dataset = Callable[..., Path]
MakeSpec = Callable[..., RunSpec]


def reply(request: RecordedRequest) -> Reply:
    """So many rounds of a tool, then an answer; what the prompt says chooses the kind of trouble."""
    messages = request.json["messages"]
    asked = next(str(one["content"]) for one in messages if one["role"] == "user")
    rounds = sum(one["role"] == "tool" for one in messages)
    if "no thoughts" in asked:
        return says("Just so.")
    if "break off" in asked:
        return (thinks("Well.") + says("Half of an answer that nobody got to hear.")).failing("disconnect", after=4)
    if "say nothing" in asked:
        return says("")
    if "unknown tool" in asked and not rounds:
        return thinks("Well.") + calls("teleport", to="Mars")
    if rounds < TURNS:
        return thinks(f"Round {rounds}.") + calls("terminal", command=f"echo {len(asked)} {rounds} >> log && cat log")
    return says(f"It is {len(asked)}.")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ServerThread(reply) as made:
        yield made


@pytest.fixture
async def own_store() -> AsyncIterator[None]:
    """The store of the process is closed after the test, on the loop that it was opened on."""
    yield
    await shared.close()


def rows() -> BatchRows:
    return shared.store(load_settings()).batch_rows


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    def make(*prompts: str | dict[str, Any], name: str = "prompts.jsonl") -> Path:
        file = tmp_path / name
        lines = [json.dumps(one if isinstance(one, dict) else {"prompt": one}) for one in prompts]
        file.write_text("".join(f"{line}\n" for line in lines))
        return file

    return make


@pytest.fixture
def spec(server: ScriptedServer, tmp_path: Path) -> MakeSpec:
    def make(dataset: Path, **fields: Any) -> RunSpec:
        given = {
            "run_name": "run",
            "model": "scripted",
            "base_url": server.base_url,
            "api_key": "key",
            "distribution": "terminal_only",
            "folder": str(tmp_path / "data" / "run"),
        }
        return RunSpec(dataset=str(dataset), **{**given, **fields})

    return make


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]
