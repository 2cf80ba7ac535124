"""Whatever a server answers, the reader takes it or says in one sentence why not; nothing else ever leaves it."""

import asyncio
import itertools
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hermes import AIAgent
from hermes.errors import ProviderError
from hermes.models import client as client_module
from hermes.models.endpoint import Endpoint
from hermes.models.wires.answer_values import MAX_TOKENS
from hermes.scope import TurnScope
from hermes.state.sqlite.store import SqliteStore
from hermes.testing.fakes import CannedHttp
from hermes.testing.replies import Reply
from hermes.testing.server import ScriptedServer
from hermes.types import ModelResponse
from tests.models.hostile_answers import hostile_answer
from tests.models.wire_cases import WireCase, asked, every_wire

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
READ = 25_000 if FULL else 700  # of each protocol
TURNS = 100 if FULL else 6
MODES = {
    "chat": "chat_completions",
    "messages": "anthropic_messages",
    "responses": "codex_responses",
    "converse": "bedrock_converse",
}
LIES: tuple[dict[str, str], ...] = (
    {},
    {},
    {},
    {"content-type": "text/html; charset=klingon"},
    {"content-type": ""},
    {"content-length": "10"},
    {"content-length": "99999"},
    {"content-length": "-5"},
    {"content-encoding": "gzip"},
    {"transfer-encoding": "chunked"},
    {"set-cookie": "\x01=;;=", "x-odd": "\xff"},
)


@pytest.fixture
def faults() -> Iterator[list[str]]:
    """What the transport logs at its border: a reader that trips has a fault, also where that does no harm."""

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(self.format(record))

    told: list[str] = []
    handler = Heard(logging.ERROR)
    logger = logging.getLogger("hermes.models.wires.transport")
    logger.addHandler(handler)
    yield told
    logger.removeHandler(handler)


async def read(case: WireCase, seed: int) -> str:
    """What came of the answer of this number: `whole`, `partial` or `refused`."""
    answer = hostile_answer(case, seed)
    model = case.make(Endpoint(base_url="http://127.0.0.1:9", model="m", api_key="k"), CannedHttp(answer.canned()))
    try:
        *_, last = [event async for event in model.stream(asked(stream=answer.is_stream), TurnScope())]
    except ProviderError:
        return "refused"
    assert isinstance(last, ModelResponse)
    stored = msgspec.json.decode(msgspec.json.encode(last), type=ModelResponse)
    assert stored.message.tool_calls == last.message.tool_calls
    counts = msgspec.structs.astuple(last.usage)
    assert all(value is None or 0 <= value <= MAX_TOKENS for value in counts), counts
    assert last.partial == bool(last.broken_by)
    return "partial" if last.partial else "whole"


@every_wire
async def test_no_answer_gets_more_than_a_sentence_out_of_the_reader(case: WireCase, faults: list[str]) -> None:
    came: dict[str, int] = {"whole": 0, "partial": 0, "refused": 0}
    for seed in range(READ):
        try:
            async with asyncio.timeout(20):
                came[await read(case, seed)] += 1
        except Exception as error:
            raise AssertionError(f"answer {seed} of {case.name}: {error!r}") from error
        assert not faults, f"answer {seed} of {case.name}: {faults[0]}"
    assert min(came.values()) > READ // 50, came  # each ending is met often, else the answers are spoiled too much


# -- whole turns -------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts are tested on their own; here they only take time."""
    monkeypatch.setattr(client_module, "BACKOFF_BASE_S", 0.0)


def as_reply(case: WireCase, seed: int) -> Reply:
    """The hostile answer of this number as one that goes over a real connection, in the pieces it is made of."""
    answer = hostile_answer(case, seed)
    headers = {"retry-after": answer.retry_after} if answer.retry_after.isascii() and answer.retry_after else {}
    headers |= LIES[seed % len(LIES)]
    sizes = itertools.accumulate(len(piece) for piece in answer.pieces)
    return Reply().failing(
        "verbatim", body=b"".join(answer.pieces), status=answer.status, headers=headers, cuts=tuple(sizes)
    )


@pytest.mark.usefixtures("quick")
@every_wire
async def test_a_turn_has_an_end_whatever_comes_over_the_wire(
    case: WireCase, tmp_path: Path, faults: list[str]
) -> None:
    seeds = iter(range(100_000, 200_000))
    store = SqliteStore(tmp_path / "state.db")
    async with ScriptedServer(lambda _: as_reply(case, next(seeds)), is_checking=False) as server:
        for number in range(TURNS):
            agent = AIAgent(
                model=case.model_name,
                base_url=server.base_url if case.is_openai_style else server.url,
                provider="custom",
                api_key="k",
                api_mode=MODES[case.name],
                store=store,
                cwd=str(tmp_path),
                max_iterations=4,
                session_id=f"s{number}",
            )
            async with asyncio.timeout(60):
                result = await agent.arun_conversation("Go")
                await agent.aclose()
            assert result["turn_exit_reason"], number
            assert result["final_response"] or result["error"], number
            assert not faults, faults[0]
    await store.close()
