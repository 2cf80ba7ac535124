"""The verifiable record of a sample: what each model call was made of, and the digest of the bytes that were sent.

`verify_record` renders every request anew from the stored steps and compares digests, so whoever has the record can
prove that these words, and no others, were asked and answered.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from hermes.dicts import from_dict, to_dict
from hermes.models.call_record import endpoint_of
from hermes.models.wires.transport import HttpModel, make_model
from hermes.ops import CallRecord, SessionRecord
from hermes.runtime.requests import build_units, sendable
from hermes.runtime.trajectory import ModelBriefing, conversations, tools_of
from hermes.seams import DEFAULT_LIMITS, Body, HttpLimits, ModelRequest, RequestOptions, Unit
from hermes.typed import convert
from hermes.types import JsonObject, Message, ToolDefinition

FORMAT = "hermes-trajectory-record/1"
_DIGEST = "sha256"  # of the record itself, its last field
_LINE_DIGEST = "line_sha256"  # of the trajectory beside it
_KEPT = 32  # models and lists of tools that a renderer keeps

Key = TypeVar("Key")
Made = TypeVar("Made")


class RecordSegment(Struct, frozen=True, kw_only=True):
    """One session of the sample; a compression begins another."""

    session: SessionRecord
    system: str
    calls: Sequence[CallRecord]


class Rendering(Struct, frozen=True):
    """What came of rendering a record's requests again."""

    calls: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def is_proven(self) -> bool:
        return not self.problems and self.calls > 0


class Renderer:
    """Renders requests as they were sent; what the samples of a run have in common is made once. For one thread."""

    def __init__(self) -> None:
        self._models: dict[bytes, HttpModel] = {}
        self._tools: dict[str, tuple[ToolDefinition, ...]] = {}

    def model(self, facts: Mapping[str, Any]) -> HttpModel:
        """Of the endpoint that the facts of a call describe."""
        key = msgspec.json.encode(facts, order="deterministic")
        return _kept(self._models, key, lambda: make_model(endpoint_of(facts), _NoHttp()))

    def tools(self, text: str) -> tuple[ToolDefinition, ...]:
        """Of a session's stored definitions; the same object for the same text, since a model encodes it once."""
        return _kept(self._tools, text, lambda: tuple(convert(one, ToolDefinition) for one in tools_of(text)))


def _kept(cache: dict[Key, Made], key: Key, make: Callable[[], Made]) -> Made:
    found = cache.get(key)
    if found is None:
        if len(cache) >= _KEPT:
            cache.clear()
        found = cache[key] = make()
    return found


def make_record(
    about: JsonObject, segments: Sequence[RecordSegment], prefill: Sequence[JsonObject], line: JsonObject
) -> JsonObject:
    """The record. `about` holds the sample's index, seed and environment, `line` is the trajectory that it proves."""
    told = [_segment(one) for one in segments]
    steps = sum(len(one.calls) for one in segments)
    record: JsonObject = {
        "format": FORMAT,
        **about,
        "prefill": list(prefill),
        "segments": told,
        "written_by_model": [one["role"] == "assistant" for one in _messages(told)],
        "rewards": {"total": None, "steps": [None] * steps},
        _LINE_DIGEST: line_digest(line),
    }
    return {**record, _DIGEST: digest_of(record)}


def line_digest(line: Mapping[str, Any]) -> str:
    """Of what a trajectory says: of its values, so that a program which writes the keys in another order, or other
    blanks, has changed nothing; any other value of any field is another digest."""
    return hashlib.sha256(msgspec.json.encode(line, order="deterministic")).hexdigest()


def digest_of(record: Mapping[str, Any]) -> str:
    """Of everything in a record but its rewards, which are filled in later, and its digest."""
    kept = {name: value for name, value in record.items() if name not in (_DIGEST, "rewards")}
    return hashlib.sha256(msgspec.json.encode(kept, order="deterministic")).hexdigest()


def verify_record(record: Mapping[str, Any], renderer: Renderer | None = None) -> Rendering:
    """Render every request of the record again. Nothing in it makes this raise."""
    renderer = renderer or Renderer()
    try:
        if record.get("format") != FORMAT:
            return Rendering(0, [f"no record: its format is {record.get('format')!r}, not {FORMAT!r}"])
        problems = [] if digest_of(record) == record.get(_DIGEST) else ["the record has been changed since it was made"]
        prefill = tuple(build_units([from_dict(one) for one in record["prefill"]]))
        calls = 0
        for number, segment in enumerate(record["segments"]):
            calls += len(segment["calls"])
            problems += [f"session {number + 1}, {one}" for one in _unlike(segment, prefill, renderer)]
        return Rendering(calls, problems)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        return Rendering(0, [f"the record cannot be read: {error!r}"])


def verify_line(line: Mapping[str, Any], record: Mapping[str, Any]) -> list[str]:
    """What of a trajectory is not as its record has it. A record without a digest of it proves the conversation."""
    try:
        told = record_turns(record)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        return [f"the record cannot be read: {error!r}"]
    if told != line.get("conversations"):
        return ["the conversation is not that of the record"]
    if line_digest(line) != record.get(_LINE_DIGEST, line_digest(line)):
        return ["the trajectory has been changed since it was made, though not its conversation"]
    return []


def record_turns(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """The conversation of a record, as trajectories have it. The newest session holds all that the model still knew."""
    last = record["segments"][-1]
    return conversations(last["messages"], briefing(last["system"], record.get("ephemeral", ""), last["tools"]))


def briefing(system: str, ephemeral: str, tools: str) -> ModelBriefing:
    """What a trajectory tells of the prompt: all that was sent but the words that were for this run alone."""
    return ModelBriefing(system.removesuffix(f"\n\n{ephemeral}") if ephemeral else system, tools)


def _segment(one: RecordSegment) -> JsonObject:
    session = one.session
    messages = []
    for message in session.messages:
        told = to_dict(message)
        told.pop("timestamp", None)
        if context := session.contexts.get(message.id or -1, ""):
            told["context"] = context
        messages.append(told)
    calls: list[JsonObject] = msgspec.to_builtins(list(one.calls))
    return {
        "session_id": session.session_id,
        "system": one.system,
        "tools": session.tool_definitions or "[]",
        "messages": messages,
        "calls": calls,
    }


def _messages(segments: Sequence[JsonObject]) -> list[JsonObject]:
    return [message for segment in segments for message in segment["messages"]]


def _unlike(segment: Mapping[str, Any], prefill: tuple[Unit, ...], renderer: Renderer) -> list[str]:
    """What is wrong with each call whose bytes are not those that were sent."""
    messages, contexts = list[Message](), dict[int, str]()
    for place, raw in enumerate(segment["messages"], 1):
        messages.append(msgspec.structs.replace(from_dict(raw), id=place))
        contexts[place] = raw.get("context", "")
    units = (*prefill, *sendable(build_units(messages, contexts)))
    tools = renderer.tools(segment["tools"])
    problems = []
    for number, raw in enumerate(segment["calls"], 1):
        call = convert(raw, CallRecord)
        if not call.sha256:
            problems.append(f"call {number}: its model keeps no bytes, so nothing can be proven")
            continue
        request = ModelRequest(
            system=segment["system"],
            tools=tools if call.tools else (),
            units=_as_sent(units, call),
            options=convert(call.facts.get("options", {}), RequestOptions),
            session_id=segment["session_id"],
        )
        if not _is_as_sent(renderer.model(call.facts), request, call.sha256):
            problems.append(f"call {number}: the stored steps do not give the bytes that were sent")
    return problems


def _as_sent(units: Sequence[Unit], call: CallRecord) -> tuple[Unit, ...]:
    """The units as they stood at the call: the last one may have been given more context since."""
    sent = tuple(units[: call.units])
    if sent and len(sent[-1].context) > call.context_chars:
        sent = (*sent[:-1], Unit(sent[-1].messages, sent[-1].context[: call.context_chars]))
    return sent


def _is_as_sent(model: HttpModel, request: ModelRequest, sha256: str) -> bool:
    if hashlib.sha256(model.body(request)).hexdigest() == sha256:
        return True
    whole = msgspec.structs.replace(request, options=msgspec.structs.replace(request.options, stream=False))
    return hashlib.sha256(model.body(whole)).hexdigest() == sha256  # a server that does not stream was asked so


class _NoHttp:
    """`HttpStream` of a model that only renders."""

    def post_stream(
        self, url: str, headers: Mapping[str, str], body: Body, scope: Any, limits: HttpLimits = DEFAULT_LIMITS
    ) -> Any:
        raise AssertionError("a record is rendered, never sent")

    async def close(self) -> None: ...
