"""What a provider refused is taken out of the request, once, and stays out: a tool, a picture, foreign reasoning."""

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from hermes.errors import ProviderError
from hermes.ops import SessionChanged
from hermes.runtime.session.history import QUARANTINED_IMAGES
from hermes.seams import ModelRequest, Unit
from hermes.types import ImagePart, Message, PrefixBroken, StatusChanged, TextPart, ToolDefinition

if TYPE_CHECKING:
    from hermes.runtime.turn import Turn

REFUSED_PICTURE = "(a picture was here; the model's provider could not use it)"
_NO_FORMAT = r"(?i)response.?format|json.?schema|output_config|output_format|text\.format|structured output|grammar"
_FOREIGN_REASONING = r"(?i)thinking.{0,80}(signature|block)|signature.{0,80}thinking|encrypted_content"


def without_tool(tools: Sequence[ToolDefinition], subject: str | None) -> tuple[str, tuple[ToolDefinition, ...]] | None:
    """The name of the refused tool and the tools without it; `subject` is its name or its place in the list."""
    if subject is None:
        return None
    name = subject
    if subject.isdigit() and int(subject) < len(tools):
        name = tools[int(subject)].name
    kept = tuple(tool for tool in tools if tool.name != name)
    return (name, kept) if len(kept) < len(tools) else None


def definitions_json(tools: Sequence[ToolDefinition]) -> str:
    """Tools as they are stored with a session."""
    return msgspec.json.encode([msgspec.to_builtins(tool) for tool in tools]).decode()


def picture_id(part: ImagePart) -> str:
    """The same for the same picture, in every process."""
    return hashlib.sha256(part.url.encode("utf-8", "replace")).hexdigest()[:16]


def suspects(units: Sequence[Unit]) -> list[str]:
    """The pictures of the newest unit that has any: what a provider refuses was most likely just added."""
    for unit in reversed(units):
        found = [picture_id(part) for message in unit.messages for part in _pictures(message)]
        if found:
            return found
    return []


def without_pictures(refused: Collection[str]) -> Callable[[Unit], Unit]:
    """Puts a sentence in place of each refused picture."""

    def change(unit: Unit) -> Unit:
        if not any(picture_id(part) in refused for message in unit.messages for part in _pictures(message)):
            return unit
        return Unit([_without(message, refused) for message in unit.messages], unit.context)

    return change


def is_foreign_reasoning(error: ProviderError) -> bool:
    """Whether the provider refused reasoning that another model or key had signed."""
    return error.reason == "format_error" and bool(re.search(_FOREIGN_REASONING, str(error)))


def is_refused_format(request: ModelRequest, error: ProviderError) -> bool:
    """Whether the provider does not hold answers to a schema; the model is told of it in words all the same."""
    has_asked = request.options.output_schema is not None and error.reason in ("format_error", "tool_rejected")
    return has_asked and bool(re.search(_NO_FORMAT, str(error)))


def without_reasoning(unit: Unit) -> Unit:
    """The unit without signed or encrypted reasoning."""
    if not any(message.reasoning_details or message.codex_reasoning_items for message in unit.messages):
        return unit
    plain = [replace(message, reasoning_details=None, codex_reasoning_items=None) for message in unit.messages]
    return Unit(plain, unit.context)


def _pictures(message: Message) -> list[ImagePart]:
    content = message.content
    return [part for part in content if isinstance(part, ImagePart)] if isinstance(content, tuple) else []


def _without(message: Message, refused: Collection[str]) -> Message:
    assert isinstance(message.content, tuple)
    parts = tuple(
        TextPart(REFUSED_PICTURE) if isinstance(part, ImagePart) and picture_id(part) in refused else part
        for part in message.content
    )
    return replace(message, content=parts)


def mended(turn: "Turn", request: ModelRequest, error: ProviderError) -> ModelRequest | None:
    """The request without what the provider refused; it stays out of the session, too."""
    if is_refused_format(request, error):
        turn.options = replace(turn.options, output_schema=None)
        return turn.request(request.tools)
    if error.reason == "tool_rejected" and (found := without_tool(request.tools, error.subject)) is not None:
        name, turn.tools = found
        turn.pending.append(SessionChanged(turn.session_id, {"tool_definitions": definitions_json(turn.tools)}))
        return _quarantined(turn, f"the tool {name!r} is left out, because the provider refuses it", turn.tools)
    if error.reason == "image_rejected" and (refused := suspects(request.units)):
        known = turn.model_config.get(QUARANTINED_IMAGES, ())
        turn.model_config = {**turn.model_config, QUARANTINED_IMAGES: [*known, *refused]}
        turn.pending.append(SessionChanged(turn.session_id, {"model_config": turn.model_config}))
        turn.history.builder.mend(without_pictures(frozenset(refused)))
        return _quarantined(turn, "a picture is left out, because the provider refuses it", request.tools)
    if is_foreign_reasoning(error):
        turn.history.builder.mend(without_reasoning)
        return _quarantined(turn, "stored reasoning is left out, because another model wrote it", request.tools)
    return None


def _quarantined(turn: "Turn", what: str, tools: tuple[ToolDefinition, ...]) -> ModelRequest:
    turn.ctx.sink.emit(StatusChanged("quarantine", what))
    turn.ctx.sink.emit(PrefixBroken("quarantine", turn.outcome.last_prompt_tokens or None))
    return turn.request(tools)
