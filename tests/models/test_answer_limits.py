"""An answer that does not end by itself is ended at a limit, what came is kept, and a person is told which limit."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hermes import AIAgent
from hermes.config.sections.agent import AnswerLimits
from hermes.errors import ProviderError
from hermes.models.http.client import HttpClient
from hermes.scope import TurnScope
from hermes.testing.memory_store import MemoryStore
from hermes.testing.replies import Reply, ScriptedCall, calls, calls_with, fault, says, thinks
from hermes.testing.server import ScriptedServer
from hermes.testing.server.bedrock import event_message
from hermes.testing.server.wire import WireAnswer
from hermes.types import ModelResponse
from tests.models.rooms import Room, failing, scripted
from tests.models.wire_cases import CHAT, CONVERSE, WireCase, asked, every_wire

MARK = "mark" * 4  # one piece of an answer


def frames(case: WireCase, reply: Reply) -> list[bytes]:
    made = case.server_wire.frames(WireAnswer(reply=reply, number=1, model="m", usage=None))
    return [*made.content, *made.ending]


def again_and_again(case: WireCase, reply: Reply) -> Reply:
    """The beginning of `reply`, and then the piece of it that holds `MARK` without end."""
    sent = frames(case, reply)
    place = next(number for number, frame in enumerate(sent) if MARK.encode() in frame)
    return Reply().failing("endless", first=b"".join(sent[:place]), piece=sent[place])


async def answer_to(case: WireCase, http: HttpClient, reply: Reply, **limits: Any) -> Any:
    stream = limits.pop("stream", True)
    async with ScriptedServer([reply]) as server, asyncio.timeout(20):
        endpoint = replace(case.endpoint(server), answer=AnswerLimits(**limits))
        model = case.make(endpoint, http)
        *_, last = [event async for event in model.stream(asked(stream=stream), TurnScope())]
    assert isinstance(last, ModelResponse)
    return last


@every_wire
async def test_words_without_end_are_kept_up_to_the_limit(case: WireCase, http: HttpClient) -> None:
    found = await answer_to(case, http, again_and_again(case, says(MARK)), max_chars=5_000)
    assert found.partial
    assert "5,000 characters of text, the most that agent.answer.max_chars allows" in found.broken_by
    assert 5_000 < len(found.message.content) < 2_000_000
    assert set(found.message.content) == set(MARK)


async def test_words_that_go_on_after_the_reason_to_stop_are_no_whole_answer(http: HttpClient) -> None:
    *_, words, stop, _ = frames(CHAT, says(MARK))
    reply = Reply().failing("endless", first=stop, piece=words)
    found = await answer_to(CHAT, http, reply, max_chars=5_000)
    assert found.partial
    assert "max_chars" in found.broken_by


@every_wire
@pytest.mark.parametrize(
    ("reply", "limit"),
    [
        (thinks(MARK), {"max_thinking_chars": 5_000}),
        (calls_with("read", MARK), {"max_arguments_chars": 5_000}),
        (calls_with("read", MARK), {"max_chars": 5_000}),
    ],
    ids=["thoughts", "arguments", "all arguments"],
)
async def test_what_is_no_answer_yet_ends_in_a_sentence(
    case: WireCase, http: HttpClient, reply: Reply, limit: dict[str, int]
) -> None:
    (name,) = limit
    with pytest.raises(ProviderError, match=f"agent.answer.{name} allows") as caught:
        await answer_to(case, http, again_and_again(case, reply), **limit)
    assert caught.value.retryable


@every_wire
@pytest.mark.parametrize("stream", [True, False])
async def test_calls_are_counted_and_their_names_and_arguments_measured(
    case: WireCase, http: HttpClient, stream: bool
) -> None:
    many = Reply(calls=tuple(ScriptedCall("list", f'{{"n": {number}}}') for number in range(20)))
    assert len((await answer_to(case, http, many, stream=stream, max_calls=20)).message.tool_calls) == 20
    for reply, limit in (
        (many, {"max_calls": 19}),
        (calls("n" * 300), {"max_name_chars": 256}),
        (calls("read", path="x" * 900), {"max_arguments_chars": 900}),
    ):
        (name,) = limit
        with pytest.raises(ProviderError, match=f"agent.answer.{name} allows"):
            await answer_to(case, http, reply, stream=stream, **limit)


async def test_an_id_that_is_too_long_is_left_out(http: HttpClient) -> None:
    found = await answer_to(CONVERSE, http, calls_with("list", "{}", call_id="i" * 5_000))
    assert (found.message.tool_calls[0].id, found.message.tool_calls[0].name) == ("", "list")


@every_wire
async def test_signs_of_life_alone_are_no_answer(case: WireCase, http: HttpClient) -> None:
    sign = event_message("messageStart", {"role": "assistant"}) if case is CONVERSE else b": ping\n\n"
    with pytest.raises(ProviderError, match=r"nothing but signs of life for 0.2 s.*comments_timeout") as caught:
        await answer_to(case, http, Reply().failing("endless", piece=sign), comments_timeout=0.2)
    assert (caught.value.reason, caught.value.retryable) == ("timeout", True)


@every_wire
async def test_signs_of_life_after_words_leave_the_words(case: WireCase, http: HttpClient) -> None:
    sign = event_message("messageStart", {"role": "assistant"}) if case is CONVERSE else b": ping\n\n"
    words = case.server_wire.frames(WireAnswer(reply=says(MARK), number=1, model="m", usage=None)).content
    reply = Reply().failing("endless", first=b"".join(words), piece=sign)
    found = await answer_to(case, http, reply, comments_timeout=0.2)
    assert (found.message.content, found.partial) == (MARK, True)
    assert "comments_timeout" in found.broken_by


@every_wire
@pytest.mark.parametrize("piece", [b"x" * 4_096, b"data: x\n" * 500, b"data\n" * 1_000, b"\0\0\x10\x00" * 10])
async def test_an_event_without_end_ends_in_a_sentence(case: WireCase, http: HttpClient, piece: bytes) -> None:
    reply = Reply().failing("endless", first=b"data: ", piece=piece)
    with pytest.raises(ProviderError, match=r"more than|is not an AWS event stream|not valid"):
        await answer_to(case, http, reply, max_event_bytes=50_000)


@every_wire
@pytest.mark.parametrize("stream", [True, False])
async def test_one_object_without_end_ends_in_a_sentence(case: WireCase, http: HttpClient, stream: bool) -> None:
    reply = Reply().failing("endless", first=b'{"a": "', piece=b"x" * 4_096)
    with pytest.raises(ProviderError, match="more than"):
        await answer_to(case, http, reply, stream=stream, max_event_bytes=50_000)


@pytest.mark.parametrize("head", [b"x-more: y\r\n", b"x" * 4_096])
async def test_a_head_without_end_ends_in_a_sentence(http: HttpClient, head: bytes) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                writer.write(head * 100)
                await writer.drain()
        except ConnectionError:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, asyncio.timeout(20):
        model = CONVERSE.make(replace(CONVERSE.endpoint(_Address(url)), base_url=url), http)  # type: ignore[arg-type]  # only its address
        with pytest.raises(ProviderError, match=r"not HTTP|broke"):
            [event async for event in model.stream(asked(), TurnScope())]


class _Address:
    def __init__(self, url: str) -> None:
        self.url = self.base_url = url


# -- waiting for a provider --------------------------------------------------------------------------------------


async def test_a_wait_that_is_too_long_is_an_error_that_says_so() -> None:
    room = Room(scripted("one", failing("rate_limit", retryable=True, retry_after_s=601.0)))
    with pytest.raises(ProviderError, match=r"left alone for 601 s, and agent\.max_retry_after allows 600") as caught:
        await room.ask()
    assert (caught.value.reason, room.scope.slept) == ("rate_limit", [])


async def test_a_wait_up_to_the_limit_is_kept() -> None:
    room = Room(scripted("one", failing("overloaded", retryable=True, retry_after_s=600.0), says("ok")))
    await room.ask()
    assert room.scope.slept == [600.0]


@pytest.mark.parametrize("reason", ["overloaded", "server_error", "rate_limit"])
async def test_a_wait_that_is_too_long_goes_to_the_next_model(reason: Any) -> None:
    room = Room(scripted("one", failing(reason, retryable=True, retry_after_s=1e9)), scripted("two", says("from two")))
    assert (await room.ask()).model == "two"
    assert room.scope.slept == []


@pytest.mark.parametrize("told", ["999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "9" * 400])
async def test_no_header_makes_a_turn_wait_for_ever(http: HttpClient, told: str) -> None:
    reply = Reply().failing("verbatim", body=b"{}", status=429, headers={"retry-after": told})
    async with ScriptedServer([reply]) as server, asyncio.timeout(20):
        with pytest.raises(ProviderError, match=r"agent\.max_retry_after"):
            await Room(CONVERSE.model(server, http)).ask()


# -- a turn ------------------------------------------------------------------------------------------------------


@pytest.fixture
def settle(hermes_home: Path) -> Callable[[str], None]:
    def write(text: str) -> None:
        (hermes_home / "config.yaml").write_text(text)

    return write


async def told_by(server: ScriptedServer, tmp_path: Path, **keywords: Any) -> dict[str, Any]:
    agent = AIAgent(model="scripted", base_url=server.base_url, store=MemoryStore(), cwd=str(tmp_path), **keywords)
    try:
        async with asyncio.timeout(20):
            return await agent.arun_conversation("Go")
    finally:
        await agent.aclose()


async def test_a_turn_ends_at_its_limit(tmp_path: Path, settle: Callable[[str], None]) -> None:
    settle("agent: {turn_timeout: 0.3}")
    async with ScriptedServer(lambda _: fault("stall")) as server:
        result = await told_by(server, tmp_path)
    assert (result["turn_exit_reason"], result["failed"]) == ("deadline_exceeded", True)
    assert result["error"] == "the 0.3 s are over that a turn may take (agent.turn_timeout)"


@pytest.mark.parametrize("keywords", [{}, {"turn_timeout_s": 0}])
async def test_a_turn_without_a_limit_has_none(
    tmp_path: Path, settle: Callable[[str], None], keywords: dict[str, Any]
) -> None:
    settle("agent: {turn_timeout: 0}" if not keywords else "agent: {turn_timeout: 0.001}")
    async with ScriptedServer(lambda _: says("Done.").timed(latency_s=0.05)) as server:
        assert (await told_by(server, tmp_path, **keywords))["completed"]


async def test_the_limits_of_the_settings_hold_for_a_turn_and_are_told(
    tmp_path: Path, settle: Callable[[str], None]
) -> None:
    settle("agent: {answer: {max_chars: 100}}")
    words = "word " * 50
    async with ScriptedServer(lambda _: says(words)) as server:
        result = await told_by(server, tmp_path)
    assert (result["turn_exit_reason"], result["partial"]) == ("partial_stream_recovery", True)
    assert words.startswith(result["final_response"])
    assert "100 characters of text, the most that agent.answer.max_chars allows" in result["error"]
