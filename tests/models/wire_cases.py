"""The four transports side by side, and each provider's own word on whether a request is right."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from hermes.models.endpoint import Endpoint, Quirks
from hermes.models.wires.anthropic_messages import anthropic_messages
from hermes.models.wires.bedrock_converse import bedrock_converse
from hermes.models.wires.chat_completions import chat_completions
from hermes.models.wires.codex_responses import codex_responses
from hermes.models.wires.transport import HttpModel
from hermes.runtime.requests import build_units, sendable
from hermes.seams import HttpLimits, HttpStream, ModelRequest, RequestOptions
from hermes.testing.server import ScriptedServer
from hermes.testing.server.bedrock import BedrockWire
from hermes.testing.server.chat import ChatServerWire
from hermes.testing.server.messages import MessagesServerWire
from hermes.testing.server.responses import ResponsesServerWire
from hermes.testing.server.wire import ServerWire
from hermes.types import JsonObject, Message, ToolDefinition

READ = ToolDefinition("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
LIST = ToolDefinition("list", "List a folder.", {"type": "object", "properties": {}})


@dataclass(frozen=True)
class WireCase:
    """One transport: how it is made, which of the server's addresses it wants, who judges its requests."""

    name: str
    make: Callable[[Endpoint, HttpStream], HttpModel]
    server_wire: ServerWire
    oracle: Callable[[JsonObject], None]
    is_openai_style: bool = False
    model_name: str = "scripted"

    def model(
        self, server: ScriptedServer, http: HttpStream, *, limits: HttpLimits | None = None, **quirks: Any
    ) -> HttpModel:
        return self.make(self.endpoint(server, limits=limits, **quirks), http)

    def endpoint(self, server: ScriptedServer, *, limits: HttpLimits | None = None, **quirks: Any) -> Endpoint:
        return Endpoint(
            base_url=server.base_url if self.is_openai_style else server.url,
            model=self.model_name,
            provider=self.name,
            api_key="k",
            limits=limits or HttpLimits(),
            quirks=Quirks(**quirks),
        )

    def offline(self, **quirks: Any) -> HttpModel:
        """A model that is only asked for the bytes it would send."""
        endpoint = Endpoint(base_url="http://127.0.0.1:9", model="anthropic.claude-x", quirks=Quirks(**quirks))
        return self.make(endpoint, _NoHttp())

    def check(self, body: bytes) -> JsonObject:
        """Decode `body`; fail unless the provider would take it."""
        decoded: JsonObject = json.loads(body)
        assert self.server_wire.mistake(decoded) is None
        self.oracle(decoded)
        return decoded


class _NoHttp:
    def post_stream(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is sent in this test")

    async def close(self) -> None:
        """Nothing is open."""


def request(*messages: Message, **options: Any) -> ModelRequest:
    """A request whose history is `messages`."""
    units = tuple(sendable(build_units(messages)))
    return ModelRequest(
        system="You help.", tools=(LIST, READ), units=units, options=RequestOptions(**options), session_id="s1"
    )


def asked(text: str = "hi", **options: Any) -> ModelRequest:
    return request(Message(role="user", content=text), **options)


# -- the vendors' own types --------------------------------------------------------------------------------------


@cache
def _adapter(path: str) -> Any:
    module, _, name = path.rpartition(".")
    pydantic = pytest.importorskip("pydantic", reason="pydantic, which the vendors' types are made with, is missing")
    types = pytest.importorskip(module, reason=f"{module}, the oracle of this test, is not installed")
    return pydantic.TypeAdapter(getattr(types, name))


def _each(path: str, values: Any) -> None:
    for value in values:
        _adapter(path).validate_python(value, strict=False)


def chat_oracle(body: JsonObject) -> None:
    """pydantic checks an `Iterable` only when it is walked, so the lists are walked here."""
    _each("openai.types.chat.chat_completion_message_param.ChatCompletionMessageParam", body["messages"])
    for message in body["messages"]:
        if message["role"] == "user" and isinstance(message["content"], list):
            _each(
                "openai.types.chat.chat_completion_content_part_param.ChatCompletionContentPartParam",
                message["content"],
            )
        for call in message.get("tool_calls", ()):
            _each(
                "openai.types.chat.chat_completion_message_tool_call_union_param"
                ".ChatCompletionMessageToolCallUnionParam",
                [call],
            )
    _each("openai.types.chat.chat_completion_tool_union_param.ChatCompletionToolUnionParam", body.get("tools", ()))


def messages_oracle(body: JsonObject) -> None:
    for message in body["messages"]:
        _adapter("anthropic.types.MessageParam").validate_python(message)
        _each("anthropic.types.ContentBlockParam", message["content"])
        for block in message["content"]:
            if block["type"] == "tool_result" and isinstance(block["content"], list):
                _each("anthropic.types.tool_result_block_param.Content", block["content"])
                assert block["content"]
            if block["type"] == "tool_use":
                assert isinstance(block["input"], dict)
    _each("anthropic.types.ToolUnionParam", body.get("tools", ()))


def responses_oracle(body: JsonObject) -> None:
    """The SDK's type wants an id on reasoning; the API does without, and an id it never stored would be looked up."""
    items = [{"id": "rs_x", **item} if item["type"] == "reasoning" else item for item in body["input"]]
    _each("openai.types.responses.ResponseInputItemParam", items)
    for item in body["input"]:
        if isinstance(item.get("content"), list) and item["role"] == "user":
            _each("openai.types.responses.ResponseInputContentParam", item["content"])
    _each("openai.types.responses.ToolParam", body.get("tools", ()))


@cache
def _converse_shape() -> Any:
    session = pytest.importorskip("botocore.session", reason="botocore, the oracle of this test, is not installed")
    model = session.get_session().get_service_model("bedrock-runtime")
    return model.operation_model("ConverseStream").input_shape


def converse_oracle(body: JsonObject) -> None:
    from botocore.validate import ParamValidator  # type: ignore[import-untyped]  # botocore has no types

    report = ParamValidator().validate({"modelId": "m", **body}, _converse_shape())
    assert not report.has_errors(), report.generate_report()


CHAT = WireCase("chat", chat_completions, ChatServerWire(), chat_oracle, is_openai_style=True)
MESSAGES = WireCase("messages", anthropic_messages, MessagesServerWire(), messages_oracle)
RESPONSES = WireCase("responses", codex_responses, ResponsesServerWire(), responses_oracle, is_openai_style=True)
CONVERSE = WireCase(
    "converse", bedrock_converse, BedrockWire(), converse_oracle, model_name="anthropic.claude-scripted-v1:0"
)
CASES = (CHAT, MESSAGES, RESPONSES, CONVERSE)
every_wire = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
