"""AWS Bedrock Converse. Requests go over our own HTTP client, so that an interrupt closes them at once; botocore
(extra `bedrock`) finds credentials and signs. With a Bedrock API key nothing of AWS needs to be installed."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from hermes.errors import MissingPart, ProviderError
from hermes.models.daemon_thread import in_daemon_thread
from hermes.models.endpoint import Endpoint
from hermes.models.http.errors import HttpBodyError
from hermes.models.wires import claude_quirks
from hermes.models.wires.answer_reader import AnswerReader, joined
from hermes.models.wires.answer_values import UNREADABLE, arguments_text, count, encode, listing, mapping, words
from hermes.models.wires.anthropic_messages import ThoughtDraft, own_thinking, thought_blocks
from hermes.models.wires.classify import provider_error
from hermes.models.wires.content import (
    BlockWire,
    Picture,
    declared_tools,
    max_image_bytes,
    picture,
    strict_id,
    system_texts,
)
from hermes.models.wires.eventstream import EventMessage, EventStreamParser
from hermes.models.wires.transport import HttpModel
from hermes.schemas import Wire as Dialect
from hermes.seams import Body, HttpStream, ModelRequest, whole
from hermes.typed import json_decoder
from hermes.types import FinishReason, ImagePart, JsonObject, Message, ModelEvent, Usage

DEFAULT_REGION = "us-east-1"
DEFAULT_MAX_TOKENS = 4_096
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_IMAGE_BYTES = max_image_bytes("bedrock_converse")
MARKED_UNITS = 2  # with the system prompt and the tools that is all that Bedrock takes
_CACHE_POINT = b',{"cachePoint":{"type":"default"}}]}'
_STOP: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
}
_STATUS = {
    "throttlingException": 429,
    "modelStreamErrorException": 500,
    "internalServerException": 500,
    "serviceUnavailableException": 503,
    "validationException": 400,
}


def bedrock_converse(endpoint: Endpoint, http: HttpStream) -> HttpModel:
    """The model behind `POST {base_url}/model/{id}/converse-stream`."""
    return HttpModel(endpoint, ConverseWire(endpoint), http)


def bedrock_url(region: str) -> str:
    """The address of Bedrock in `region`."""
    return f"https://bedrock-runtime.{region or DEFAULT_REGION}.amazonaws.com"


class ConverseWire(BlockWire):
    """`Wire` of Converse."""

    apart = MARKED_UNITS
    dialect: Dialect = "anthropic"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._is_claude = "anthropic" in endpoint.model or "claude" in endpoint.model
        self.key = f"converse:{self._is_claude:d}"
        self._signer: _Signer | None = None
        self._url = f"{endpoint.base_url.rstrip('/')}/model/{quote(endpoint.model, safe='')}/converse"
        self._headers = {"content-type": "application/json", "accept": "*/*", **endpoint.headers}

    def url(self, *, is_stream: bool) -> str:
        return f"{self._url}-stream" if is_stream else self._url

    async def headers(self, url: str, body: Body) -> dict[str, str]:
        headers = self._headers
        if self._endpoint.api_key:
            return headers | {"authorization": f"Bearer {self._endpoint.api_key}"}
        if not self._endpoint.is_aws:
            raise ProviderError(
                f"AWS credentials are not used for {self._endpoint.base_url}, which is no address of AWS; give it an "
                "API key, or set AWS_ENDPOINT_URL_BEDROCK_RUNTIME to it",
                reason="auth",
            )
        if self._signer is None:
            self._signer = _Signer(self._endpoint)
        signer = self._signer
        return await in_daemon_thread(lambda: signer.signed(url, headers, whole(body)), "hermes-aws")

    def head(self, request: ModelRequest) -> bytes:
        endpoint, options = self._endpoint, request.options
        most = options.max_tokens or endpoint.max_output or DEFAULT_MAX_TOKENS
        head: JsonObject = {}
        if self._is_claude:
            asked = claude_quirks.thinking_fields(endpoint.model, options.reasoning, most)
            head["inferenceConfig"] = {"maxTokens": asked.pop("max_tokens")}
            asked.pop("temperature", None)
            if asked:
                head["additionalModelRequestFields"] = asked
        else:
            head["inferenceConfig"] = {"maxTokens": most}
        marks = endpoint.quirks.cache_markers
        if request.system:
            first, *rest = [{"text": text} for text in system_texts(request)]
            head["system"] = [first, *([{"cachePoint": {"type": "default"}}] if marks else []), *rest]
        if tools := declared_tools(request):
            specs: list[JsonObject] = [
                {
                    "toolSpec": {
                        "name": tool.name,
                        "description": tool.description or tool.name,
                        "inputSchema": {"json": tool.parameters},
                    }
                }
                for tool in tools
            ]
            head["toolConfig"] = {"tools": specs, **_tool_choice(options.tool_choice)}
        if options.service_tier:
            head["serviceTier"] = {"type": options.service_tier}
        head |= {**endpoint.extra_body, **options.extra_body, "messages": []}
        return encode(head).removesuffix(b"]}")

    def marked(self, pieces: list[bytes]) -> list[bytes]:
        if not self._endpoint.quirks.cache_markers:
            return pieces
        return [*pieces[:-MARKED_UNITS], *(piece[: -len(b"]}")] + _CACHE_POINT for piece in pieces[-MARKED_UNITS:])]

    def reading(self) -> AnswerReader:
        return _ConverseReading(self._endpoint)

    def text(self, text: str) -> JsonObject:
        return {"text": text}

    def image(self, part: ImagePart) -> JsonObject:
        found = picture(part, types=IMAGE_TYPES, max_bytes=MAX_IMAGE_BYTES, urls=False)
        if not isinstance(found, Picture):
            return self.text(found)
        return {"image": {"format": found.media_type.removeprefix("image/"), "source": {"bytes": found.data}}}

    def result(self, message: Message) -> JsonObject:
        status = "error" if message.status == "failed" else "success"
        content = self.blocks(message.content) or [self.text("(empty)")]
        tool_use_id = strict_id(message.tool_call_id or "")
        return {"toolResult": {"toolUseId": tool_use_id, "content": content, "status": status}}

    def thinking(self, message: Message) -> list[JsonObject]:
        if not self._is_claude:
            return []
        return [_replayed(block) for block in own_thinking(message.reasoning_details)]

    def calls(self, message: Message) -> list[JsonObject]:
        return [
            {"toolUse": {"toolUseId": strict_id(call.id), "name": call.name, "input": _raw(call.arguments)}}
            for call in message.tool_calls
        ]


class _Signer:
    """Signs requests with the credentials AWS tools would use. Blocking: finding them may ask the network."""

    def __init__(self, endpoint: Endpoint) -> None:
        try:
            import botocore.session  # type: ignore[import-untyped]  # the extra `bedrock`
        except ImportError as error:
            raise MissingPart(
                "Bedrock without an API key needs boto3: pip install 'hermes-runtime[bedrock]', "
                "or set AWS_BEARER_TOKEN_BEDROCK"
            ) from error
        self._session = botocore.session.Session(profile=endpoint.profile or None)
        self._region = endpoint.region or DEFAULT_REGION

    def signed(self, url: str, headers: dict[str, str], body: bytes) -> dict[str, str]:
        from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
        from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
        from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

        try:
            credentials = self._session.get_credentials()
            if credentials is None:
                raise ProviderError(
                    "no AWS credentials were found. Run: aws configure, or set AWS_PROFILE", reason="auth"
                )
            request = AWSRequest("POST", url, headers=dict(headers), data=body)
            SigV4Auth(credentials.get_frozen_credentials(), "bedrock", self._region).add_auth(request)
        except BotoCoreError as error:
            raise ProviderError(f"AWS credentials cannot be used: {error}", reason="auth") from error
        return {str(name): str(value) for name, value in request.headers.items()}


def _tool_choice(choice: str) -> JsonObject:
    """Bedrock has no "none"; a request that must not call says so in words."""
    if choice in ("auto", "none"):
        return {}
    return {"toolChoice": {"any": {}} if choice == "required" else {"tool": {"name": choice}}}


def _raw(arguments: str) -> msgspec.Raw:
    return msgspec.Raw(arguments.encode())


def _replayed(block: JsonObject) -> JsonObject:
    if block["type"] == "redacted_thinking":
        return {"reasoningContent": {"redactedContent": block["data"]}}
    return {"reasoningContent": {"reasoningText": {"text": block["thinking"], "signature": block["signature"]}}}


# -- answers -----------------------------------------------------------------------------------------------------


class _TextDelta(Struct, frozen=True, gc=False):
    text: str = ""


class _Words(Struct, frozen=True, gc=False):
    """An event that holds text and nothing else; all others are read as they come."""

    delta: _TextDelta = _TextDelta()


_decode_words = json_decoder(list[_Words]).decode


def _words(run: Sequence[EventMessage]) -> str:
    """The text of events that are of one kind, when all of them hold text; empty for any others."""
    headers = run[0].headers
    if headers.get(":event-type") != "contentBlockDelta" or headers.get(":message-type") != "event":
        return ""
    try:
        texts = [event.delta.text for event in _decode_words(b"[%b]" % b",".join([one.payload for one in run]))]
    except UNREADABLE:
        return ""  # told by `_take`
    return "".join(texts) if all(texts) and len(texts) == len(run) else ""


def _kind(message: EventMessage) -> int:
    return id(message.headers)  # which are kept: messages of one kind share them


class _ConverseReading(AnswerReader):
    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._parser = EventStreamParser(self.limits.max_event_bytes)
        self._thinking: dict[int, ThoughtDraft] = {}
        self._stopped = False

    def feed(self, chunk: bytes) -> list[ModelEvent]:
        if self._held or (chunk[:1] == b"{" and not self.text and not self.calls and not self._parser.rest()):
            return self.hold(chunk)  # a body that is JSON, from a server that does not stream
        for _, same in groupby(self._parser.feed(chunk), _kind):
            run = list(same)
            text = "" if self.is_complete else _words(run)
            if text:
                self.say(text)
                continue
            for message in run:
                if not self.is_complete:
                    self._take(message)
        return joined(self.fresh())

    def end(self) -> list[ModelEvent]:
        if self._held:
            return self.end_held()
        if not self.is_complete and self._parser.rest() and not self._stopped:
            raise HttpBodyError("the event stream ended inside a message")
        self.is_complete = self.is_complete or self._stopped
        return []

    def take_whole(self, body: Any) -> None:
        message = mapping(mapping(body.get("output")).get("message"))
        content = message.get("content")
        for index, block in enumerate(map(mapping, listing(content))):
            self._block(index, block)
        self._stop(body.get("stopReason"))
        self._count(body.get("usage"))
        self.is_complete = isinstance(content, list)

    def extras(self) -> JsonObject:
        return {"reasoning_details": thought_blocks(self._thinking)}

    @property
    def has_ended(self) -> bool:
        return super().has_ended or (self._stopped and not self._is_overrun)

    def _take(self, message: EventMessage) -> None:
        kind = message.headers.get(":event-type") or message.headers.get(":exception-type", "")
        payload = mapping(self.decode(message.payload) if message.payload else {})
        if message.headers.get(":message-type") in ("exception", "error"):
            told = {"message": payload.get("message") or kind, "code": _STATUS.get(kind, 500)}
            raise provider_error(told, self.provider, self.asked)
        index = count(payload.get("contentBlockIndex")) or 0
        if kind == "contentBlockDelta":
            self._delta(index, mapping(payload.get("delta")))
        elif kind == "contentBlockStart":
            use = mapping(mapping(payload.get("start")).get("toolUse"))
            if use:
                self.call(index, call_id=words(use.get("toolUseId")), name=words(use.get("name")))
        elif kind == "messageStop":
            self._stop(payload.get("stopReason"))
        elif kind == "metadata":
            self._count(payload.get("usage"))
            self.is_complete = self._stopped

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        if isinstance(delta.get("text"), str):
            self.say(delta["text"])
        elif "toolUse" in delta:
            self.call(index, arguments=arguments_text(mapping(delta["toolUse"]).get("input")))
        elif thought := mapping(delta.get("reasoningContent")):
            self._thought(index, thought)

    def _thought(self, index: int, thought: Mapping[str, Any]) -> None:
        draft = self._thinking.setdefault(index, ThoughtDraft())
        signature, text = words(thought.get("signature")), words(thought.get("text"))
        redacted = words(thought.get("redactedContent"))
        draft.redacted = redacted or draft.redacted
        draft.signature.append(signature)
        draft.thinking.append(text)
        self.keep(len(signature) + len(redacted) + 1)
        self.think(text)

    def _block(self, index: int, block: Mapping[str, Any]) -> None:
        """One block of a whole answer, as if it had been streamed."""
        if use := mapping(block.get("toolUse")):
            self.call(index, words(use.get("toolUseId")), words(use.get("name")), arguments_text(use.get("input")))
            return
        thought = mapping(block.get("reasoningContent"))
        if "reasoningText" in thought:
            self._delta(index, {"reasoningContent": thought["reasoningText"]})
        else:
            self._delta(index, block)

    def _stop(self, reason: object) -> None:
        self._stopped = True
        if isinstance(reason, str):
            self.finish = _STOP.get(reason, "stop")

    def _count(self, raw: object) -> None:
        usage = mapping(raw)
        self.usage = Usage(
            input_tokens=count(usage.get("inputTokens")),
            output_tokens=count(usage.get("outputTokens")),
            cache_read_tokens=count(usage.get("cacheReadInputTokens")),
            cache_write_tokens=count(usage.get("cacheWriteInputTokens")),
        )
