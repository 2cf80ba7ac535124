"""Every transport against the scripted server: the same answers, the same faults, the same endings."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from hermes.errors import ProviderError
from hermes.models.endpoint import Endpoint
from hermes.models.http.client import HttpClient
from hermes.models.wires.chat_completions import ChatWire
from hermes.models.wires.transport import HttpModel
from hermes.schemas import for_wire
from hermes.scope import TurnScope
from hermes.seams import Body, HttpLimits, ModelRequest, Unit, UnitLog, whole
from hermes.testing.replies import Reply, calls, calls_with, fault, says, thinks
from hermes.testing.server import ScriptedServer
from hermes.testing.server.wire import WireAnswer
from hermes.types import (
    CallAnnounced,
    Message,
    ModelEvent,
    ModelResponse,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Usage,
)
from tests.models.wire_cases import CASES, CHAT, CONVERSE, MESSAGES, RESPONSES, WireCase, asked, every_wire, request

BOTH = thinks("Let me look first.") + says("Two calls: grün 🌲.") + calls("read", path="a") + calls("list")
COUNTS = {"input_tokens": 11, "output_tokens": 7, "cache_read_tokens": 5}
QUICK = HttpLimits(connect_s=5.0, first_byte_s=0.5, idle_s=0.5)


async def ask(model: HttpModel, what: ModelRequest | None = None) -> list[ModelEvent]:
    return [event async for event in model.stream(what or asked(), TurnScope())]


async def answer_to(case: WireCase, http: HttpClient, *replies: Reply, **options: Any) -> ModelResponse:
    """The last answer of a conversation of one question per reply."""
    async with ScriptedServer(replies) as server, asyncio.timeout(20):
        model = case.model(server, http)
        for _ in replies:
            *_, last = await ask(model, asked(**options))
    server.assert_finished()
    assert isinstance(last, ModelResponse)
    return last


@every_wire
@pytest.mark.parametrize("stream", [True, False])
async def test_words_thoughts_calls_and_counts_arrive(case: WireCase, http: HttpClient, stream: bool) -> None:
    async with ScriptedServer([BOTH.with_usage(**COUNTS)]) as server:
        *deltas, last = await ask(case.model(server, http), asked(stream=stream))
    assert isinstance(last, ModelResponse)
    message = last.message
    assert (message.content, message.reasoning) == (BOTH.text, BOTH.thinking)
    assert [(call.id, call.name, call.arguments) for call in message.tool_calls] == [
        ("call_1_0", "read", '{"path":"a"}'),
        ("call_1_1", "list", "{}"),
    ]
    assert (last.finish_reason, last.partial, last.model) == ("tool_calls", False, case.model_name)
    usage = last.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (11, 7, 5)
    assert "".join(event.text for event in deltas if isinstance(event, TextDelta)) == BOTH.text
    assert "".join(event.text for event in deltas if isinstance(event, ReasoningDelta)) == BOTH.thinking
    assert [event.name for event in deltas if isinstance(event, CallAnnounced)] == ["read", "list"]
    assert sum(isinstance(event, ModelResponse) for event in deltas) == 0


@every_wire
async def test_what_was_answered_is_taken_back_by_the_same_provider(case: WireCase, http: HttpClient) -> None:
    """An answer with reasoning and calls, stored and sent back with its results, is a request that is right."""
    first = await answer_to(case, http, BOTH)
    history = [Message(role="user", content="hi"), first.message]
    history += [
        Message(role="tool", content=f"result of {call.name}", tool_call_id=call.id, tool_name=call.name)
        for call in first.message.tool_calls
    ]
    async with ScriptedServer([says("Done.")]) as server:
        model = case.model(server, http, replay_reasoning=case is CHAT)
        *_, last = await ask(model, request(*history))
        body = case.check(model.body(request(*history)))
    server.assert_finished()
    assert isinstance(last, ModelResponse)
    assert last.message.content == "Done."
    assert BOTH.thinking in json.dumps(body, ensure_ascii=False)


@every_wire
@pytest.mark.parametrize(
    ("finish", "expected"), [("length", "length"), ("content_filter", "content_filter"), ("stop", "stop")]
)
async def test_the_reason_to_stop_is_told(case: WireCase, http: HttpClient, finish: Any, expected: str) -> None:
    found = await answer_to(case, http, says("words").finishing(finish))
    assert found.finish_reason == expected


REFUSALS: dict[str, tuple[Reply, str, bool]] = {
    "rate_limit": (fault("rate_limit", retry_after=7), "rate_limit", True),
    "rate_limit without a time": (fault("rate_limit"), "rate_limit", True),
    "server_error": (fault("server_error"), "server_error", True),
    "overloaded": (fault("overloaded"), "overloaded", True),
    "unauthorized": (fault("unauthorized"), "auth", False),
    "no_credit": (fault("no_credit"), "billing", False),
    "model_not_found": (fault("model_not_found"), "model_not_found", False),
    "bad_tool": (fault("bad_tool", tool="read"), "tool_rejected", False),
    "bad_image": (fault("bad_image"), "image_rejected", False),
    "context_overflow": (fault("context_overflow"), "context_overflow", False),
    "too_large": (fault("too_large"), "payload_too_large", False),
    "policy_blocked": (fault("policy_blocked"), "policy_blocked", False),
    "reset": (fault("reset"), "connection", True),
    "disconnect": (fault("disconnect"), "connection", True),
    "stall": (fault("stall"), "timeout", True),
    "truncated_json": (calls("read", path="x" * 200).failing("truncated_json", after=2), "server_error", True),
}


@every_wire
@pytest.mark.parametrize("name", REFUSALS)
async def test_a_failure_is_named_by_who_must_act(case: WireCase, http: HttpClient, name: str) -> None:
    reply, reason, retryable = REFUSALS[name]
    async with ScriptedServer([reply]) as server, asyncio.timeout(20):
        with pytest.raises(ProviderError) as caught:
            await ask(case.model(server, http, limits=QUICK if name == "stall" else None))
    assert (caught.value.reason, caught.value.retryable) == (reason, retryable), str(caught.value)
    if name == "rate_limit":
        assert caught.value.retry_after_s == 7.0
    if name == "bad_tool":
        assert caught.value.subject == "read"


@every_wire
@pytest.mark.parametrize("name", ["reset", "disconnect", "stall"])
async def test_a_stream_that_dies_after_words_is_a_partial_answer(case: WireCase, http: HttpClient, name: str) -> None:
    words = "This answer does not get to its end. " * 4
    async with ScriptedServer([says(words).failing(name, after=6)]) as server, asyncio.timeout(20):
        *_, last = await ask(case.model(server, http, limits=QUICK if name == "stall" else None))
    assert isinstance(last, ModelResponse)
    assert last.partial
    assert words.startswith(str(last.message.content))
    assert last.message.content
    assert last.usage == Usage()


@every_wire
async def test_words_without_an_end_are_a_partial_answer(case: WireCase, http: HttpClient) -> None:
    found = await answer_to(case, http, says("all words").failing("cut_before_end"))
    assert (found.message.content, found.partial) == ("all words", True)


# Frames after the one that says why the model stopped, or that it did: nothing of the answer is in them.
AFTER_THE_END = {"chat": 2, "messages": 1, "responses": 0, "converse": 1}


def sent_in(case: WireCase, reply: Reply) -> list[bytes]:
    made = case.server_wire.frames(WireAnswer(reply=reply, number=1, model="m", usage=Usage(11, 7)))
    return [*made.content, *made.ending]


@every_wire
@pytest.mark.parametrize("name", ["reset", "disconnect", "stall"])
@pytest.mark.parametrize("reply", [says("all words"), calls("read", path="x")], ids=["words", "call"])
async def test_what_is_cut_after_the_model_has_stopped_is_whole(
    case: WireCase, http: HttpClient, name: str, reply: Reply
) -> None:
    total = len(sent_in(case, reply))
    for after in range(total - AFTER_THE_END[case.name], total + 1):
        cut = reply.failing(name, after=after)
        async with ScriptedServer([cut]) as server, asyncio.timeout(20):
            *_, last = await ask(case.model(server, http, limits=QUICK if name == "stall" else None))
        assert isinstance(last, ModelResponse)
        assert (last.message.content, last.partial, last.finish_reason) == (reply.text, False, reply.finish_reason)
        assert [(call.name, call.arguments) for call in last.message.tool_calls] == [
            (call.name, call.arguments) for call in reply.calls
        ]


@every_wire
@pytest.mark.parametrize("stalls", [True, False])
async def test_a_complete_answer_does_not_wait_for_the_length_that_was_promised(
    case: WireCase, http: HttpClient, stalls: bool
) -> None:
    body = b"".join(sent_in(case, says("all words")))
    reply = Reply().failing("verbatim", body=body, headers={"content-length": "99999"}, stalls=stalls)
    async with ScriptedServer([reply]) as server, asyncio.timeout(20):
        *_, last = await ask(case.model(server, http))
    assert isinstance(last, ModelResponse)
    assert (last.message.content, last.partial, last.usage.output_tokens) == ("all words", False, 7)


@every_wire
async def test_a_complete_answer_does_not_wait_for_a_stream_without_end(case: WireCase, http: HttpClient) -> None:
    body = b"".join(sent_in(case, says("all words")))
    async with ScriptedServer([Reply().failing("endless", first=body, piece=b": ping\n\n")]) as server:
        async with asyncio.timeout(20):
            *_, last = await ask(case.model(server, http))
    assert isinstance(last, ModelResponse)
    assert (last.message.content, last.partial) == ("all words", False)


async def test_an_error_after_an_end_without_words_is_told(http: HttpClient) -> None:
    body = b'data: {"choices":[{"delta":{},"finish_reason":"error"}]}\n\ndata: {"error":{"message":"no room"}}\n\n'
    async with ScriptedServer([Reply().failing("verbatim", body=body)]) as server:
        with pytest.raises(ProviderError, match="no room"):
            await ask(CHAT.model(server, http))


@every_wire
async def test_calls_without_an_end_are_never_handed_out(case: WireCase, http: HttpClient) -> None:
    async with ScriptedServer([calls("read", path="x").failing("cut_before_end")]) as server:
        with pytest.raises(ProviderError, match="ended before"):
            await ask(case.model(server, http))


@every_wire
async def test_a_call_that_ends_before_its_arguments_is_never_taken_for_one_without(
    case: WireCase, http: HttpClient
) -> None:
    """Cut at its first byte, it looks like a call that needs no arguments."""
    async with ScriptedServer([calls_with("list", "").failing("without_finish")]) as server:
        try:
            *_, last = await ask(case.model(server, http))
        except ProviderError as error:
            assert error.retryable  # noqa: PT017 - one of two good endings
            return
    assert isinstance(last, ModelResponse)
    assert last.finish_reason == "length"


@every_wire
async def test_an_answer_that_drips_is_whole(case: WireCase, http: HttpClient) -> None:
    found = await answer_to(case, http, (says("grün 🌲") + calls("list")).failing("slow_drip", delay_s=0.0005, size=9))
    assert (found.message.content, found.finish_reason, found.partial) == ("grün 🌲", "tool_calls", False)


@every_wire
@pytest.mark.parametrize("name", ["split_utf8", "duplicate", "late", "not_streamed", "wrong_usage"])
async def test_an_odd_but_whole_answer_is_read_once(case: WireCase, http: HttpClient, name: str) -> None:
    found = await answer_to(case, http, (says("grün 🌲 und 日本") + calls("list")).failing(name))
    assert (found.message.content, found.partial) == ("grün 🌲 und 日本", False)
    assert [call.name for call in found.message.tool_calls] == ["list"]
    if name == "wrong_usage":
        assert found.usage.input_tokens is None


@every_wire
async def test_arguments_arrive_as_the_model_wrote_them(case: WireCase, http: HttpClient) -> None:
    found = await answer_to(case, http, calls_with("read", '{"path": "a'))
    assert found.message.tool_calls[0].arguments == '{"path": "a'


@pytest.mark.parametrize("together", [True, False])
def test_half_a_character_in_a_delta_is_no_reason_to_fail(together: bool) -> None:
    texts = (r"a \ud83d", r"\ude00 b", r"\ud83d\ude00 \\ud83d")
    events = [f'{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}' for text in texts]
    events += ['{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}', "[DONE]"]
    chunks = [f"data: {event}\n\n".encode() for event in events]
    reading = ChatWire(Endpoint(base_url="http://127.0.0.1:9", model="m")).reading()
    for chunk in [b"".join(chunks)] if together else chunks:
        reading.feed(chunk)
    assert reading.response().message.content == "a \ufffd\ufffd b\U0001f600 \\ud83d"


def test_words_that_arrive_with_an_event_that_is_not_valid_are_kept() -> None:
    reading = ChatWire(Endpoint(base_url="http://none", model="m")).reading()
    with pytest.raises(ProviderError):
        reading.feed(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: {"choices":[{"delta":{"content":"b"\n\n')
    assert reading.response(broken_by="why").message.content == "a"


def test_what_comes_beside_words_is_kept() -> None:
    reading = ChatWire(Endpoint(base_url="http://none", model="asked")).reading()
    thought = {"type": "reasoning.text", "text": "hm"}
    deltas: list[dict[str, Any]] = [{"content": "one "}, {"content": "two ", "reasoning_details": [thought]}]
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas] + [
        {"choices": [{"delta": {"content": "three"}}], "model": "served"}
    ]
    body = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"
    assert "".join(event.text for event in reading.feed(body) if isinstance(event, TextDelta)) == "one two three"
    answer = reading.response()
    assert (answer.model, answer.message.reasoning_details) == ("served", [thought])


@every_wire
async def test_a_web_page_is_not_an_answer(case: WireCase, http: HttpClient) -> None:
    async with ScriptedServer([fault("not_sse")]) as server:
        with pytest.raises(ProviderError) as caught:
            await ask(case.model(server, http))
    assert "web page" in str(caught.value) or caught.value.reason in ("connection", "server_error", "format_error")


@every_wire
async def test_cancelling_closes_the_request(case: WireCase, http: HttpClient) -> None:
    async with (
        ScriptedServer([says("word " * 30).failing("stall", after=6), says("next")]) as server,
        asyncio.timeout(10),
    ):
        model, scope = case.model(server, http), TurnScope()
        async with asyncio.TaskGroup() as group:

            async def run() -> None:
                async with scope:
                    async for _ in model.stream(asked(), scope):
                        scope.cancel("enough")

            group.create_task(run())
        assert scope.cancelled
        *_, last = await ask(model)
    assert isinstance(last, ModelResponse)
    assert last.message.content == "next"


async def test_a_provider_without_streams_is_asked_for_whole_answers(http: HttpClient) -> None:
    def reply(got: Any) -> Reply:
        return says("whole") if not got.json["stream"] else fault("no_streams")

    from hermes.testing.server import FAULTS, Failing

    async def no_streams(failing: Failing) -> None:
        await failing.error(400, "unsupported", "Streaming is not supported for this model")

    if "no_streams" not in FAULTS.names():
        FAULTS.add("no_streams", no_streams)
    async with ScriptedServer(reply) as server:
        model = CHAT.model(server, http)
        with pytest.raises(ProviderError) as caught:
            await ask(model)
        assert (caught.value.retryable, caught.value.retry_after_s) == (True, 0.0)
        *_, last = await ask(model)
        await ask(model)
    assert isinstance(last, ModelResponse)
    assert last.message.content == "whole"
    assert [got.json["stream"] for got in server.requests] == [True, False, False]


# -- the prefix --------------------------------------------------------------------------------------------------


def growing() -> list[list[Message]]:
    """A conversation at each of its requests."""
    steps: list[list[Message]] = [[Message(role="user", content="Begin.")]]
    for n in range(12):
        last = steps[-1]
        asked_for = Message(
            role="assistant",
            content=f"Step {n}",
            tool_calls=(ToolCall(f"call.{n}:a", "read", f'{{"path": "{n}"}}'), ToolCall(f"c{n}", "list")),
            reasoning="hm",
            reasoning_details=[{"type": "thinking", "thinking": "hm", "signature": f"s{n}"}],
            codex_reasoning_items=[{"type": "reasoning", "summary": [], "encrypted_content": f"e{n}"}],
        )
        results = [ToolResult(call_id=call.id, name=call.name, content=f"result {n}") for call in asked_for.tool_calls]
        rows = [
            Message(role="tool", content=r.content, tool_call_id=r.call_id, tool_name=r.name, status=r.status)
            for r in results
        ]
        steps.append([*last, asked_for, *rows])
    return steps


@every_wire
def test_each_request_is_a_byte_prefix_of_the_next(case: WireCase) -> None:
    model, other = case.offline(), case.offline()
    bodies = [model.body(request(*messages)) for messages in growing()]
    for before, after in itertools.pairwise(bodies):
        assert after.startswith(before.removesuffix(b"]}"))
    assert [other.body(request(*messages)) for messages in reversed(growing())] == bodies[::-1]


@every_wire
async def test_a_long_past_is_sent_without_copying_it(case: WireCase, http: HttpClient) -> None:
    bodies: list[Body] = []

    class Noting:
        def post_stream(
            self, url: str, headers: Mapping[str, str], body: Body, scope: TurnScope, limits: HttpLimits = QUICK
        ) -> AsyncIterator[bytes]:
            bodies.append(body)
            return http.post_stream(url, headers, body, scope, limits)

        async def close(self) -> None:
            """The client is the test's."""

    spoken = [Message(role="assistant" if n % 2 else "user", content=f"{n} " * 2000) for n in range(41)]
    units, memo = list(request(*spoken).units), dict[str, tuple[int, Any]]()
    async with ScriptedServer([says("one"), says("two")]) as server:
        model = case.model(server, Noting())
        for size in (39, 41):
            what = ModelRequest(system="", tools=(), units=UnitLog(units[:size], memo))
            *_, last = await ask(model, what)
            assert isinstance(last, ModelResponse)
            assert whole(bodies[-1]) == model.body(what)
    server.assert_finished()
    first, second = bodies
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    assert first[1] is second[1]


MARKER = b',"cache_control":{"type":"ephemeral"}'
MARKERS = {"chat": MARKER, "messages": MARKER, "converse": b',{"cachePoint":{"type":"default"}}'}


@pytest.mark.parametrize("case", [CHAT, MESSAGES, CONVERSE], ids=lambda case: case.name)
def test_cache_markers_apart_the_prefix_holds(case: WireCase) -> None:
    model = case.offline(cache_markers=True)
    bodies = [model.body(request(*messages)) for messages in growing()]
    for body in bodies:
        case.check(body)
    assert all(1 <= body.count(MARKERS[case.name]) <= 4 for body in bodies)
    head = bodies[-1].partition(b"You help.")[2]
    assert head.startswith((b'"' + MARKERS[case.name], b'"}' + MARKERS[case.name])), "the prompt itself is not marked"
    plain = [body.replace(MARKERS[case.name], b"") for body in bodies]
    for before, after in itertools.pairwise(plain):
        assert after.startswith(before.removesuffix(b"]}"))


@pytest.mark.parametrize("case", [CHAT, MESSAGES, CONVERSE], ids=lambda case: case.name)
def test_what_sessions_share_of_a_prompt_is_marked_for_itself(case: WireCase) -> None:
    model = case.offline(cache_markers=True)
    asked = request(*growing()[0])
    one, two = (
        model.body(replace(asked, system=f"You help. # Your task: {task}", shared_chars=len("You help.")))
        for task in ("one", "two")
    )
    case.check(one)
    assert 1 <= one.count(MARKERS[case.name]) <= 4
    shared = one[: one.index(b" # Your task")]
    assert MARKERS[case.name] in shared
    assert two.startswith(shared)


@every_wire
def test_a_unit_is_encoded_once(case: WireCase) -> None:
    model = case.offline()
    wire: Any = model._wire
    encoded: list[int] = []
    inner = wire.unit

    def counting(unit: Unit) -> bytes:
        encoded.append(id(unit))
        made: bytes = inner(unit)
        return made

    wire.unit = counting
    units = request(*growing()[-1]).units
    memo: dict[str, tuple[int, Any]] = {}
    whole = asked()
    for size in range(1, len(units) + 1, 2):
        model.body(ModelRequest(system=whole.system, tools=whole.tools, units=UnitLog(list(units[:size]), memo)))
    assert len(encoded) == len(set(encoded)) == len(units)


@every_wire
def test_a_last_word_without_tools_is_a_request_that_is_right(case: WireCase) -> None:
    whole = request(*growing()[-1])
    last = ModelRequest(system=whole.system, tools=(), units=whole.units)
    case.check(case.offline().body(last))


# -- fields of each protocol -------------------------------------------------------------------------------------


def fields(case: WireCase, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(case.offline().body(asked(**options)))
    return found


def test_options_reach_chat_completions() -> None:
    body = fields(CHAT, max_tokens=9, service_tier="flex", reasoning={"effort": "high"}, extra_body={"seed": 4})
    assert (body["max_tokens"], body["service_tier"], body["reasoning_effort"], body["seed"]) == (9, "flex", "high", 4)
    object_style = json.loads(CHAT.offline(reasoning="object").body(asked(reasoning={"enabled": False})))
    assert object_style["reasoning"] == {"enabled": False}
    assert fields(CHAT, tool_choice="read")["tool_choice"] == {"type": "function", "function": {"name": "read"}}


def test_options_reach_anthropic_messages() -> None:
    body = fields(MESSAGES, max_tokens=9, reasoning={"effort": "high"}, tool_choice="required")
    assert (body["max_tokens"], body["thinking"]) == (20096, {"type": "enabled", "budget_tokens": 16000})
    assert (body["temperature"], body["tool_choice"]) == (1, {"type": "any"})


def test_options_reach_responses() -> None:
    body = fields(RESPONSES, max_tokens=9, reasoning={"effort": "minimal"})
    assert (body["max_output_tokens"], body["reasoning"]) == (9, {"effort": "low", "summary": "auto"})
    assert (body["store"], body["prompt_cache_key"], body["instructions"]) == (False, "s1", "You help.")
    assert body["include"] == ["reasoning.encrypted_content"]


def test_options_reach_converse() -> None:
    body = fields(CONVERSE, max_tokens=9, tool_choice="read")
    assert body["inferenceConfig"] == {"maxTokens": 9}
    assert body["toolConfig"]["toolChoice"] == {"tool": {"name": "read"}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_request_at_rest_is_right(case: WireCase) -> None:
    case.check(case.offline().body(asked()))


@every_wire
async def test_a_tool_whose_name_the_provider_refuses_is_called_by_its_own_name(
    case: WireCase, http: HttpClient
) -> None:
    odd = ToolDefinition("files.read:all", "Read.", {"type": "object", "properties": {"p": {"type": "string"}}})
    sent = for_wire([odd], "openai").definitions[0].name
    async with ScriptedServer([calls(sent, p="x")]) as server:
        model = case.model(server, http)
        what = replace(asked(), tools=(odd,))
        body = model.body(what)
        *_, last = await ask(model, what)
    assert b"files.read:all" not in body
    assert sent.encode() in body
    assert isinstance(last, ModelResponse)
    assert [call.name for call in last.message.tool_calls] == ["files.read:all"]
