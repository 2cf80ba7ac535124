"""The scripted server, driven over real sockets by the runtime's own HTTP client."""

import asyncio
import itertools
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.models.http.client import HttpClient
from hermes.models.http.errors import HttpDisconnected, HttpError, HttpStatusError, HttpTimeoutError
from hermes.models.wires.sse import SseParser
from hermes.scope import TurnScope
from hermes.seams import HttpLimits
from hermes.testing.replies import Reply, calls, calls_with, fault, load_script, says, thinks
from hermes.testing.server import FAULTS, Failing, RecordedRequest, ScriptedServer, ServerThread
from hermes.types import JsonObject, Usage

BOUND_S = 20.0
USER = {"role": "user", "content": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "a b"}


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()


async def post(http: HttpClient, url: str, body: JsonObject, limits: HttpLimits | None = None) -> bytes:
    stream = http.post_stream(url, {}, msgspec.json.encode(body), TurnScope(), limits or HttpLimits())
    async with asyncio.timeout(BOUND_S):
        return b"".join([chunk async for chunk in stream])


async def chat(
    http: HttpClient, server: ScriptedServer, *messages: JsonObject, limits: HttpLimits | None = None, **fields: Any
) -> list[JsonObject]:
    """The decoded events of a streamed chat completion."""
    body = {"model": "m", "messages": messages or [USER], "stream": True, **fields}
    answer = await post(http, f"{server.base_url}/chat/completions", body, limits)
    return [msgspec.json.decode(event.data) for event in SseParser().feed(answer) if not event.is_done]


def text_of(events: list[JsonObject]) -> str:
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])


async def test_replies_come_in_order_and_requests_are_kept(http: HttpClient) -> None:
    async with ScriptedServer([says("one"), says("two")]) as server:
        assert text_of(await chat(http, server)) == "one"
        assert text_of(await chat(http, server, {"role": "user", "content": "more"})) == "two"
    server.assert_finished()
    assert [request.json["messages"][0]["content"] for request in server.requests] == ["hi", "more"]
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].raw == b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'


async def test_a_script_that_has_run_out_says_so_loudly(http: HttpClient) -> None:
    async with ScriptedServer([]) as server:
        with pytest.raises(HttpStatusError) as caught:
            await chat(http, server)
    assert caught.value.status == 500
    assert b"the script has no reply left: this is request 1" in caught.value.body
    with pytest.raises(AssertionError, match="no reply left"):
        server.assert_finished()


async def test_a_script_that_was_not_played_to_its_end_is_no_success() -> None:
    async with ScriptedServer([says("never asked for")]) as server:
        pass
    with pytest.raises(AssertionError, match="never asked for"):
        server.assert_finished()


async def test_a_function_may_choose_the_reply(http: HttpClient) -> None:
    def choose(request: RecordedRequest) -> Reply:
        return says(request.json["messages"][-1]["content"].upper())

    async with ScriptedServer(choose) as server:
        assert text_of(await chat(http, server)) == "HI"


async def test_usage_is_counted_for_answers_that_told_it_and_only_for_those(http: HttpClient) -> None:
    told = says("a").with_usage(input_tokens=10, output_tokens=2, cache_read_tokens=90)
    script = [told, says("b").without_usage(), fault("wrong_usage"), fault("server_error"), told.failing("duplicate")]
    async with ScriptedServer(script) as server:
        reports = []
        for reply in script:
            if reply.fault is not None and reply.fault.name == "server_error":
                with pytest.raises(HttpStatusError):
                    await chat(http, server)
                continue
            reports.append([event["usage"] for event in await chat(http, server) if "usage" in event])
    assert server.reported_usage == [Usage(10, 2, 90)] * 2
    counted = {
        "prompt_tokens": 100,
        "completion_tokens": 2,
        "total_tokens": 102,
        "prompt_tokens_details": {"cached_tokens": 90},
    }
    wrong = {"prompt_tokens": -7, "completion_tokens": "many", "input_tokens": None}
    assert reports == [[counted], [], [wrong], [counted, counted]]


@pytest.mark.parametrize(
    ("messages", "wrong"),
    [
        ([], "non-empty"),
        ([USER, RESULT], "must follow a message with tool_calls"),
        ([USER, CALLING, USER], "call 'c1' has 0 results"),
        ([USER, CALLING, RESULT, RESULT], "call 'c1' has 2 results"),
        ([USER, CALLING, {**RESULT, "tool_call_id": "c2"}], "result 'c2' has no call"),
        ([{"role": "robot", "content": ""}], "invalid role"),
        ([USER, {"role": "assistant", "content": None}], "needs content or tool_calls"),
        ([USER, {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "a b"}}]}, RESULT], "valid name"),
    ],
)
async def test_a_chat_request_the_provider_would_refuse_is_refused(
    http: HttpClient, messages: list[JsonObject], wrong: str
) -> None:
    async with ScriptedServer([says("unused")]) as server:
        with pytest.raises(HttpStatusError) as caught:
            await chat(http, server, messages=messages)
    assert caught.value.status == 400
    assert wrong in caught.value.body.decode()
    assert len(server.mistakes) == 1
    assert server.answered == 0


async def test_a_chat_request_with_calls_and_results_is_right(http: HttpClient) -> None:
    async with ScriptedServer([says("ok")]) as server:
        assert text_of(await chat(http, server, USER, CALLING, RESULT, USER)) == "ok"
    server.assert_finished()


ANTHROPIC_USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {}}]}
BEDROCK_USER = {"role": "user", "content": [{"text": "hi"}]}
BEDROCK_USE = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "ls", "input": {}}}]}
BEDROCK_RESULT = {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}]}}]}


@pytest.mark.parametrize(
    ("path", "body", "wrong"),
    [
        ("/v1/messages", {"model": "m", "messages": [USER]}, "max_tokens"),
        ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [ANTHROPIC_USE]}, "user role"),
        ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [USER, ANTHROPIC_USE, USER]}, "has 0 results"),
        ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [USER, ANTHROPIC_USE]}, "without a tool_result"),
        ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [{**USER, "content": ""}]}, "non-empty"),
        ("/v1/responses", {"model": "m", "input": []}, "input"),
        ("/v1/responses", {"model": "m", "input": [{"type": "function_call_output", "call_id": "c"}]}, "no tool call"),
        ("/v1/responses", {"model": "m", "input": [{"type": "function_call", "call_id": "c"}]}, "has 0 results"),
        ("/model/m/converse", {"messages": [BEDROCK_USER, BEDROCK_USER]}, "alternate"),
        ("/model/m/converse", {"messages": [BEDROCK_USER, BEDROCK_USE, BEDROCK_USER]}, "has 0 results"),
        ("/model/m/converse", {"messages": [BEDROCK_USER, BEDROCK_USE, BEDROCK_RESULT]}, "toolConfig"),
        ("/v1/completions", {}, "no such endpoint"),
    ],
)
async def test_the_other_protocols_refuse_too(http: HttpClient, path: str, body: JsonObject, wrong: str) -> None:
    async with ScriptedServer([says("unused")]) as server:
        with pytest.raises(HttpStatusError) as caught:
            await post(http, server.url + path, body)
    assert wrong in caught.value.body.decode()
    assert len(server.mistakes) == 1


@pytest.mark.parametrize(
    ("reply", "status", "words"),
    [
        (fault("rate_limit"), 429, "Rate limit"),
        (fault("rate_limit", retry_after=7), 429, "Rate limit"),
        (fault("server_error"), 500, "had an error"),
        (fault("server_error", status=503), 503, "had an error"),
        (fault("overloaded"), 529, "Overloaded"),
        (fault("unauthorized"), 401, "API key"),
        (fault("no_credit"), 402, "credits"),
        (fault("model_not_found"), 404, "`m` does not exist"),
        (fault("bad_tool", tool="terminal"), 400, "function 'terminal'"),
        (fault("bad_image"), 400, "image"),
        (fault("context_overflow"), 400, "maximum context length"),
        (fault("too_large"), 413, "maximum size"),
        (fault("policy_blocked"), 400, "safety"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/model/m/converse-stream"])
async def test_faults_with_a_status(http: HttpClient, reply: Reply, status: int, words: str, path: str) -> None:
    body: JsonObject = {"model": "m", "max_tokens": 9, "messages": [USER], "input": "hi", "stream": True}
    if "converse" in path:
        body["messages"] = [BEDROCK_USER]
    async with ScriptedServer([reply]) as server:
        with pytest.raises(HttpStatusError) as caught:
            await post(http, server.url + path, body)
    server.assert_finished()
    assert caught.value.status == status
    assert words in caught.value.body.decode()
    after = (reply.fault.options if reply.fault else {}).get("retry_after")
    assert caught.value.headers.get("retry-after") == (None if after is None else str(after))


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (fault("reset"), HttpDisconnected),
        (fault("reset", after=2), HttpDisconnected),
        (fault("disconnect"), HttpDisconnected),
        (fault("disconnect", after=2), HttpDisconnected),
        (fault("stall"), HttpTimeoutError),
        (fault("stall", after=2), HttpTimeoutError),
    ],
)
async def test_faults_that_break_the_connection(http: HttpClient, reply: Reply, error: type[HttpError]) -> None:
    limits = HttpLimits(first_byte_s=0.3, idle_s=0.3) if error is HttpTimeoutError else None
    async with ScriptedServer([reply, says("next")]) as server:
        with pytest.raises(error):
            await chat(http, server, limits=limits)
        assert text_of(await chat(http, server)) == "next"
    server.assert_finished()


@pytest.mark.parametrize("name", ["split_utf8", "slow_drip", "good"])
async def test_answers_cut_anywhere_are_whole_again(http: HttpClient, name: str) -> None:
    async with ScriptedServer([says("grün 🌲").failing(name)]) as server:
        assert text_of(await chat(http, server)) == "grün 🌲"


async def test_an_answer_may_end_inside_its_json_or_before_its_finish(http: HttpClient) -> None:
    async with ScriptedServer([says("abc").failing("truncated_json"), says("abc").failing("cut_before_end")]) as server:
        body = {"model": "m", "messages": [USER], "stream": True}
        parser = SseParser()
        assert len(parser.feed(await post(http, f"{server.base_url}/chat/completions", body))) == 1
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(parser.rest())
        events = await chat(http, server)
    assert text_of(events) == "abc"
    assert [event["choices"][0]["finish_reason"] for event in events] == [None, None]


async def test_late_and_foreign_answers_are_sent(http: HttpClient) -> None:
    body = {"model": "m", "messages": [USER], "stream": True}
    async with ScriptedServer([fault("late"), fault("not_sse"), fault("not_streamed")]) as server:
        url = f"{server.base_url}/chat/completions"
        events = SseParser().feed(await post(http, url, body))
        done = [event.is_done for event in events].index(True)
        assert 0 < done < len(events) - 1
        assert await post(http, url, body) == b"<html>It works!</html>"
        whole = msgspec.json.decode(await post(http, url, body))
    assert whole["choices"][0]["message"]["content"] == fault("late").text


async def test_a_fault_of_ones_own_can_be_added(http: HttpClient) -> None:
    async def teapot(failing: Failing, *, size: str) -> None:
        await failing.error(418, "teapot", f"a {size} teapot")

    FAULTS.add("teapot", teapot)
    async with ScriptedServer([fault("teapot", size="small")]) as server:
        with pytest.raises(HttpStatusError) as caught:
            await chat(http, server)
    assert b"a small teapot" in caught.value.body


async def test_a_fault_that_does_not_exist_is_a_mistake_of_the_script(http: HttpClient) -> None:
    async with ScriptedServer([fault("no_such_fault")]) as server:
        with pytest.raises(HttpDisconnected):
            await chat(http, server)
    assert "no_such_fault" in server.mistakes[0]


async def test_models_are_listed_without_taking_a_reply(http: HttpClient) -> None:
    async with ScriptedServer([], models=("a", "b")) as server:
        listed = await http.get_json(f"{server.base_url}/models", {}, 5)
    assert [(model["id"], model["context_length"]) for model in listed["data"]] == [("a", 128_000), ("b", 128_000)]
    assert ([one.path for one in server.looked_up], server.requests) == (["/v1/models"], [])
    server.assert_finished()


async def test_many_clients_share_an_endless_script(http: HttpClient) -> None:
    async with ScriptedServer(itertools.repeat(says("ok").timed(latency_s=0.001)), is_recording=False) as server:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(chat(http, server)) for _ in range(64)]
        assert {text_of(task.result()) for task in tasks} == {"ok"}
        assert (server.answered, server.requests) == (64, [])


async def test_one_can_wait_for_a_request_to_arrive(http: HttpClient) -> None:
    async with (
        ScriptedServer([fault("stall")]) as server,
        asyncio.timeout(BOUND_S),
        asyncio.TaskGroup() as group,
    ):
        asking = group.create_task(chat(http, server))
        await server.wait_for_requests(1)
        asking.cancel()


def test_replies_join() -> None:
    joined = thinks("hm") + says("Both: ") + calls("a") + calls("b", x=[1]).with_usage(input_tokens=3)
    assert (joined.text, joined.thinking, joined.finish_reason) == ("Both: ", "hm", "tool_calls")
    assert [(call.name, call.arguments) for call in joined.calls] == [("a", "{}"), ("b", '{"x":[1]}')]
    assert joined.usage == Usage(input_tokens=3)
    assert says("cut").finishing("length").finish_reason == "length"


def test_a_script_file_gives_the_same_replies(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("""[
        {"says": "hi", "latency_s": 0.5, "usage": {"input_tokens": 4}},
        {"calls": [{"name": "ls", "arguments": {"p": 1}}, {"name": "bad", "arguments": "{", "id": "x"}]},
        {"fault": "stall", "options": {"after": 3}}
    ]""")
    assert load_script(script) == [
        says("hi").timed(latency_s=0.5).with_usage(input_tokens=4),
        calls("ls", p=1) + calls_with("bad", "{", call_id="x"),
        fault("stall", after=3),
    ]
    script.write_text('[{"say": "typo"}]')
    with pytest.raises(msgspec.ValidationError, match="say"):
        load_script(script)


def ask(base_url: str) -> JsonObject:
    """One chat completion, not streamed, with nothing but the standard library."""
    request = urllib.request.Request(
        f"{base_url}/chat/completions", msgspec.json.encode({"model": "m", "messages": [USER]})
    )
    with urllib.request.urlopen(request, timeout=BOUND_S) as answer:
        decoded: JsonObject = msgspec.json.decode(answer.read())
    return decoded


def test_a_thread_serves_tests_that_are_not_asynchronous() -> None:
    with ServerThread([says("from a thread") + calls("ls", p=1)]) as server:
        message = ask(server.base_url)["choices"][0]["message"]
        with pytest.raises(OSError, match="in use"), ServerThread(port=int(server.url.rpartition(":")[2])):
            pass
    server.assert_finished()
    assert message["content"] == "from a thread"
    assert message["tool_calls"][0]["function"] == {"name": "ls", "arguments": '{"p":1}'}


@pytest.mark.parametrize(("questions", "code"), [(1, 0), (2, 1)])
def test_a_process_serves_a_script_file(tmp_path: Path, questions: int, code: int) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"says": "from a process"}]')
    command = [sys.executable, "-m", "hermes.testing.server", "--script", str(script)]
    source = Path(__file__).parents[2] / "src"
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"PYTHONPATH": str(source)}
    ) as process:
        try:
            assert process.stdout is not None
            base_url = process.stdout.readline().strip()
            assert ask(base_url)["choices"][0]["message"]["content"] == "from a process"
            if questions == 2:
                with pytest.raises(urllib.error.HTTPError):
                    ask(base_url)
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=BOUND_S)
        finally:
            process.kill()
    assert process.returncode == code
    assert ("no reply left" in errors) == (questions == 2)
