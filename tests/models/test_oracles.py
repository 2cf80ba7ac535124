"""The vendors' own clients and types agree with our transports, both ways."""

import asyncio
import json
from typing import Any

import pytest

from hermes.models.endpoint import Endpoint
from hermes.models.http.client import HttpClient
from hermes.models.wires.anthropic_messages import MessagesWire
from hermes.models.wires.bedrock_converse import bedrock_converse
from hermes.models.wires.chat_completions import ChatWire
from hermes.models.wires.codex_responses import ResponsesWire
from hermes.scope import TurnScope
from hermes.testing.replies import says
from hermes.testing.server import ScriptedServer, ServerThread
from hermes.types import ImagePart, Message, ModelResponse, TextPart, ToolCall, Usage
from tests.models.histories import PIXEL
from tests.models.wire_cases import CONVERSE, asked, request

pytestmark = pytest.mark.real
ENDPOINT = Endpoint(base_url="http://127.0.0.1:9", model="m")


def sdk(name: str) -> Any:
    return pytest.importorskip(name, reason=f"the {name} package, the oracle of this test, is not installed")


def history() -> list[Message]:
    return [
        Message(role="user", content=(TextPart("Look."), ImagePart(f"data:image/png;base64,{PIXEL}"))),
        Message(
            role="assistant",
            content="Reading.",
            tool_calls=(ToolCall("a", "read", '{"path": "x", "n": 1.5}'), ToolCall("b", "list")),
            reasoning_details=[{"type": "thinking", "thinking": "hm", "signature": "sig"}],
        ),
        Message(role="tool", content="gone", tool_call_id="a", tool_name="read", status="failed"),
        Message(role="tool", content="empty", tool_call_id="b", tool_name="list"),
    ]


def test_boto3_sends_what_we_send(monkeypatch: pytest.MonkeyPatch) -> None:
    boto3, config = sdk("boto3"), sdk("botocore.config").Config(retries={"total_max_attempts": 1})
    body = json.loads(CONVERSE.offline(cache_markers=True).body(request(*history())))
    ours = json.loads(json.dumps(body))
    for message in body["messages"]:
        for block in message["content"]:
            if "image" in block:
                import base64

                block["image"]["source"]["bytes"] = base64.b64decode(block["image"]["source"]["bytes"])
    with ServerThread([says("ok")]) as server:
        client = boto3.client(
            "bedrock-runtime",
            region_name="us-east-1",
            endpoint_url=server.url,
            aws_access_key_id="k",
            aws_secret_access_key="s",
            config=config,
        )
        try:
            answer = client.converse_stream(modelId="anthropic.claude-x", **body)
            for _ in answer["stream"]:
                continue
        finally:
            client.close()
    server.assert_finished()
    assert server.requests[0].json == ours
    assert server.requests[0].path == "/model/anthropic.claude-x/converse-stream"


async def test_requests_are_signed_as_aws_checks_them(http: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    auth, awsrequest = sdk("botocore.auth"), sdk("botocore.awsrequest")
    credentials = sdk("botocore.credentials").Credentials("AKID", "secret")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    async with ScriptedServer([says("signed")]) as server, asyncio.timeout(20):
        model = bedrock_converse(Endpoint(base_url=server.url, model="a.b:0", region="eu-central-1", is_aws=True), http)
        *_, last = [event async for event in model.stream(asked(), TurnScope())]
    assert isinstance(last, ModelResponse)
    got = server.requests[0]
    signed = dict(part.split("=", 1) for part in got.headers["authorization"].partition(" ")[2].split(", "))
    assert signed["Credential"].endswith("/eu-central-1/bedrock/aws4_request")
    again = awsrequest.AWSRequest("POST", f"http://{got.headers['host']}{got.path}", data=got.raw)
    for name in signed["SignedHeaders"].split(";"):
        again.headers[name] = got.headers[name]
    again.context["timestamp"] = got.headers["x-amz-date"]
    signer = auth.SigV4Auth(credentials, "bedrock", "eu-central-1")
    assert signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again) == signed["Signature"]


def test_a_chunk_made_by_the_sdk_is_read() -> None:
    chat = sdk("openai.types.chat")
    common = {"id": "x", "created": 1, "object": "chat.completion.chunk", "model": "m-1"}
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "He"}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"content": "llo"}, "finish_reason": "stop"}]},
        {
            "choices": [],
            "usage": {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
        },
    ]
    reading = ChatWire(ENDPOINT).reading()
    for chunk in chunks:
        made = chat.ChatCompletionChunk.model_validate({**common, **chunk}).model_dump_json()
        list(reading.feed(f"data: {made}\n\n".encode()))
    list(reading.feed(b"data: [DONE]\n\n"))
    found = reading.response()
    assert (found.message.content, found.model) == ("Hello", "m-1")
    assert found.usage == Usage(5, 2, 4, None, 1)


def test_events_made_by_the_anthropic_sdk_are_read() -> None:
    types = sdk("anthropic.types")
    usage = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1}
    head = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "claude-x", "usage": usage}
    call = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
    made = [
        types.RawMessageStartEvent.model_validate(
            {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None}}
        ),
        types.RawContentBlockStartEvent.model_validate(
            {"type": "content_block_start", "index": 0, "content_block": call}
        ),
        types.RawContentBlockDeltaEvent.model_validate(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": '{"path": "x"}'},
            }
        ),
        types.RawMessageDeltaEvent.model_validate(
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use", "stop_sequence": None},
                "usage": {"output_tokens": 8},
            }
        ),
        types.RawMessageStopEvent.model_validate({"type": "message_stop"}),
    ]
    reading = MessagesWire(ENDPOINT).reading()
    for event in made:
        list(reading.feed(f"event: {event.type}\ndata: {event.model_dump_json()}\n\n".encode()))
    found = reading.response()
    assert found.message.tool_calls == (ToolCall("t1", "read", '{"path": "x"}'),)
    assert (found.finish_reason, found.usage) == ("tool_calls", Usage(3, 8, 2, 1))


def test_a_response_made_by_the_openai_sdk_is_read() -> None:
    responses = sdk("openai.types.responses")
    made = responses.Response.model_validate(
        {
            "id": "r",
            "object": "response",
            "created_at": 1,
            "model": "m-1",
            "status": "completed",
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "output": [
                {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
                {
                    "type": "message",
                    "id": "m",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
                },
            ],
        }
    )
    reading = ResponsesWire(ENDPOINT).reading()
    reading.whole(made.model_dump_json().encode())
    found = reading.response()
    assert (found.message.content, found.message.reasoning, found.finish_reason) == ("Hello", "hm", "stop")
