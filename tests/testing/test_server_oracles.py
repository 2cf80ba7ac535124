"""The vendors' own clients understand the scripted server: what it sends is what they would get from the provider."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hermes.testing.replies import calls, fault, says, thinks
from hermes.testing.server import ScriptedServer, ServerThread
from hermes.types import Usage

pytestmark = pytest.mark.real

BOTH = thinks("Let me look.") + says("Two calls: grün 🌲.") + calls("read", path="a") + calls("list")
USAGE = {"input_tokens": 11, "output_tokens": 7, "cache_read_tokens": 5, "cache_write_tokens": 3}
TOKENS = Usage(**USAGE)
CALLS = [("call_1_0", "read", {"path": "a"}), ("call_1_1", "list", {})]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    replies = [BOTH.with_usage(**USAGE), says("Done."), fault("rate_limit", retry_after=3)]
    with ServerThread(replies) as running:
        yield running
    running.assert_finished()
    assert running.reported_usage[0] == TOKENS


def sdk(name: str) -> Any:
    return pytest.importorskip(name, reason=f"the {name} package, the oracle of this test, is not installed")


@pytest.mark.parametrize("stream", [True, False])
def test_openai_reads_chat_completions(server: ScriptedServer, stream: bool) -> None:
    openai = sdk("openai")
    client = openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0)
    ask: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with client:
        if stream:
            with client.chat.completions.stream(**ask, stream_options={"include_usage": True}) as events:
                answer = events.get_final_completion()
        else:
            answer = client.chat.completions.create(**ask)
        message = answer.choices[0].message
        assert message.content == BOTH.text
        assert message.reasoning_content == BOTH.thinking
        assert [(c.id, c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls] == CALLS
        assert answer.choices[0].finish_reason == "tool_calls"
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (19, 7)
        assert answer.usage.prompt_tokens_details.cached_tokens == 5
        assert client.chat.completions.create(**ask).choices[0].message.content == "Done."
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(**ask)
        assert caught.value.response.headers["retry-after"] == "3"


@pytest.mark.parametrize("stream", [True, False])
def test_openai_reads_responses(server: ScriptedServer, stream: bool) -> None:
    openai = sdk("openai")
    with openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client:
        if stream:
            with client.responses.stream(model="m", input="hi") as events:
                answer = events.get_final_response()
        else:
            answer = client.responses.create(model="m", input="hi")
        reasoning, message, *called = answer.output
        assert (reasoning.summary[0].text, reasoning.encrypted_content) == (BOTH.thinking, "enc-1")
        assert message.content[0].text == answer.output_text == BOTH.text
        assert [(c.call_id, c.name, json.loads(c.arguments)) for c in called] == CALLS
        assert (answer.status, answer.usage.input_tokens, answer.usage.output_tokens) == ("completed", 19, 7)
        assert client.responses.create(model="m", input="hi").output_text == "Done."
        with pytest.raises(openai.RateLimitError):
            client.responses.create(model="m", input="hi")


@pytest.mark.parametrize("stream", [True, False])
def test_anthropic_reads_messages(server: ScriptedServer, stream: bool) -> None:
    anthropic = sdk("anthropic")
    ask: dict[str, Any] = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}
    with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        if stream:
            with client.messages.stream(**ask) as events:
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**ask)
        thinking, text, *called = answer.content
        assert (thinking.thinking, thinking.signature, text.text) == (BOTH.thinking, "sig-1", BOTH.text)
        assert [(c.id, c.name, c.input) for c in called] == CALLS
        usage = answer.usage
        assert (answer.stop_reason, usage.input_tokens, usage.output_tokens) == ("tool_use", 11, 7)
        assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (5, 3)
        assert client.messages.create(**ask).content[0].text == "Done."
        with pytest.raises(anthropic.RateLimitError):
            client.messages.create(**ask)


@pytest.mark.parametrize("stream", [True, False])
def test_boto3_reads_converse(server: ScriptedServer, stream: bool) -> None:
    boto3 = sdk("boto3")
    config = sdk("botocore.config").Config(retries={"total_max_attempts": 1})
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=server.url,
        aws_access_key_id="k",
        aws_secret_access_key="s",
        config=config,
    )
    ask: dict[str, Any] = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "hi"}]}]}
    try:
        if stream:
            text, called, stop, usage = _read_converse_stream(client.converse_stream(**ask)["stream"])
        else:
            answer = client.converse(**ask)
            blocks = answer["output"]["message"]["content"]
            text = "".join(block.get("text", "") for block in blocks)
            uses = [block["toolUse"] for block in blocks if "toolUse" in block]
            called = [(use["toolUseId"], use["name"], use["input"]) for use in uses]
            stop, usage = answer["stopReason"], answer["usage"]
        assert (text, called, stop) == (BOTH.text, CALLS, "tool_use")
        assert (usage["inputTokens"], usage["outputTokens"], usage["cacheReadInputTokens"]) == (11, 7, 5)
        assert client.converse(**ask)["output"]["message"]["content"] == [{"text": "Done."}]
        with pytest.raises(client.exceptions.ThrottlingException):
            client.converse(**ask)
    finally:
        client.close()


def _read_converse_stream(events: Any) -> tuple[str, list[tuple[str, str, Any]], str, dict[str, int]]:
    text, stop = "", ""
    usage: dict[str, int] = {}
    uses: dict[int, list[str]] = {}
    for event in events:
        if start := event.get("contentBlockStart"):
            use = start["start"]["toolUse"]
            uses[start["contentBlockIndex"]] = [use["toolUseId"], use["name"], ""]
        if delta := event.get("contentBlockDelta"):
            text += delta["delta"].get("text", "")
            if "toolUse" in delta["delta"]:
                uses[delta["contentBlockIndex"]][2] += delta["delta"]["toolUse"]["input"]
        stop = event.get("messageStop", {}).get("stopReason", stop)
        usage = event.get("metadata", {}).get("usage", usage)
    return text, [(call, name, json.loads(arguments)) for call, name, arguments in uses.values()], stop, usage
