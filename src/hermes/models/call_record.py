"""What a model call was made of, noted where its bytes leave: enough to render the request again and compare."""

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from hermes.models.endpoint import Endpoint, Quirks
from hermes.ops import CallRecord
from hermes.scope import TurnScope
from hermes.seams import DEFAULT_LIMITS, Body, HttpLimits, HttpStream, ModelRequest, RequestOptions
from hermes.typed import convert
from hermes.types import JsonObject, ModelResponse

_WIRE = ("api_mode", "model", "provider", "extra_body")  # of an endpoint: what its bytes depend on, beside the quirks


class SentBytes:
    """`HttpStream` that remembers the digest of the newest body; one for each agent, whose calls are one by one."""

    def __init__(self, inner: HttpStream) -> None:
        self._inner = inner
        self._newest: tuple[str, int] = ("", 0)
        self._facts: tuple[RequestOptions, Endpoint | None, JsonObject] | None = None  # with what they are made of

    def post_stream(
        self, url: str, headers: Mapping[str, str], body: Body, scope: TurnScope, limits: HttpLimits = DEFAULT_LIMITS
    ) -> AsyncIterator[bytes]:
        digest, size = hashlib.sha256(), 0
        for piece in (body,) if isinstance(body, bytes) else body:
            digest.update(piece)
            size += len(piece)
        self._newest = (digest.hexdigest(), size)
        return self._inner.post_stream(url, headers, body, scope, limits)

    async def get_json(self, url: str, headers: Mapping[str, str], timeout_s: float) -> Any:
        """As the inner one does."""
        return await self._inner.get_json(url, headers, timeout_s)  # type: ignore[attr-defined]  # of `LoopHttp`

    async def close(self) -> None:
        await self._inner.close()

    def forget(self) -> None:
        """A call begins."""
        self._newest = ("", 0)

    def record(self, request: ModelRequest, endpoint: Endpoint | None, response: ModelResponse) -> CallRecord:
        """The call that has just been answered."""
        sha256, size = self._newest
        return CallRecord(
            sha256=sha256,
            size_bytes=size,
            units=len(request.units),
            context_chars=len(request.units[-1].context) if request.units else 0,
            tools=len(request.tools),
            facts=self._facts_of(request.options, endpoint),
            tokens=response.tokens,
            partial=response.partial,
        )

    def _facts_of(self, options: RequestOptions, endpoint: Endpoint | None) -> JsonObject:
        kept = self._facts
        if kept is None or kept[0] is not options or kept[1] is not endpoint:
            facts = {"options": _changed(options)} | (wire_facts(endpoint) if endpoint is not None else {})
            self._facts = kept = (options, endpoint, facts)
        return kept[2]


def clean_record(record: CallRecord, redact: Callable[[str], str]) -> CallRecord:
    """The record without the tokens of an answer that holds a secret: no single one of them is it, all of them are."""
    words = "".join(str(one["token"]) for one in (record.tokens or {}).get("logprobs", ()))
    return record if redact(words) == words else msgspec.structs.replace(record, tokens={"redacted": True})


def wire_facts(endpoint: Endpoint) -> JsonObject:
    """What the bytes of a request depend on beside its words; no address, header or key."""
    return {
        **{name: getattr(endpoint, name) for name in _WIRE},
        "quirks": _changed(endpoint.quirks),
    }


def endpoint_of(facts: Mapping[str, Any]) -> Endpoint:
    """An endpoint that renders as the recorded one did; `msgspec.ValidationError` for facts that describe none."""
    return Endpoint(
        base_url="http://localhost",
        model=str(facts.get("model", "")),
        provider=str(facts.get("provider", "")),
        api_mode=convert(facts.get("api_mode", "chat_completions"), Endpoint.__annotations__["api_mode"]),
        extra_body=convert(facts.get("extra_body", {}), dict[str, Any]),
        quirks=convert(facts.get("quirks", {}), Quirks),
    )


def _changed(struct: msgspec.Struct) -> JsonObject:
    """The fields that are not as they are by default."""
    plain = type(struct)()
    named = ((name, getattr(struct, name)) for name in struct.__struct_fields__)
    return {name: value for name, value in named if value != getattr(plain, name)}
