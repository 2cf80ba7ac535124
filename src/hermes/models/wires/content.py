"""What the wire protocols share in mapping messages: pictures, ids, tools that a history needs, reasoning effort."""

import base64
import binascii
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from msgspec import Struct

from hermes.models.endpoint import ApiMode, Quirks
from hermes.models.wires.answer_values import encode
from hermes.seams import ModelRequest, Unit
from hermes.types import Content, ImagePart, JsonObject, Message, OpaquePart, TextPart, ToolDefinition

MB = 1024 * 1024
NO_PICTURE = "(a picture was here; {why})"
NO_PART = "(an attachment of type {kind!r} was here; this model cannot take it)"
SEE_PICTURE = "(see the picture)"

_DATA_URL = r"(?s)data:([\w.+-]+/[\w.+-]+)?((?:;[\w.+=-]+)*?)(;base64)?,(.*)"
_PLAIN_ID = r"[A-Za-z0-9_-]{1,64}"
_UNFIT_FOR_ID = r"[^A-Za-z0-9_-]"
_OFF = ("none", "off")


class Picture(Struct, frozen=True):
    """Picture bytes as base64 text, or an address; never both."""

    media_type: str = ""
    data: str = ""
    url: str = ""


def max_image_bytes(mode: ApiMode) -> int:
    """The most base64 of one picture that a protocol's providers take."""
    match mode:
        case "anthropic_messages":
            return 5 * MB
        case "bedrock_converse":
            return int(3.75 * MB * 4 / 3)  # 3.75 MB before base64
        case "chat_completions" | "codex_responses":
            return 20 * MB


def picture(part: ImagePart, *, types: Sequence[str], max_bytes: int, urls: bool) -> Picture | str:
    """`part` in a form a provider takes that accepts these types and sizes; else a sentence to send in its place."""
    if part.url.startswith(("http://", "https://")):
        if urls and not any(char.isspace() for char in part.url):
            return Picture(url=part.url)
        return NO_PICTURE.format(why=f"this model cannot open addresses: {part.url[:200]}")
    found = re.fullmatch(_DATA_URL, part.url)
    if found is None:
        return NO_PICTURE.format(why="its data is missing")
    kind = (found[1] or part.media_type).lower().replace("image/jpg", "image/jpeg")
    if kind not in types:
        return NO_PICTURE.format(why=f"this model does not read {kind or 'its format'}")
    data = found[4]
    if len(data) > max_bytes:
        size = len(data) / MB
        return NO_PICTURE.format(why=f"its {size:.1f} MB are more than the {max_bytes / MB:.3g} MB this model takes")
    if not found[3] or not _is_base64(data):
        return NO_PICTURE.format(why="its data is damaged")
    return Picture(media_type=kind, data=data)


def _is_base64(data: str) -> bool:
    try:
        return bool(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return False


def left_out(part: OpaquePart) -> str:
    """The sentence in place of a part this protocol does not know."""
    return NO_PART.format(kind=str(part.raw.get("type", "unknown"))[:40])


def parts(
    content: Content | None, text: Callable[[str], JsonObject], image: Callable[[ImagePart], JsonObject]
) -> list[JsonObject]:
    """`content` as a protocol's own parts; nothing blank, and a sentence in place of what it does not know."""
    if content is None or isinstance(content, str):
        return [text(content)] if content and content.strip() else []
    made: list[JsonObject] = []
    for part in content:
        if isinstance(part, ImagePart):
            made.append(image(part))
        else:
            made.append(text(left_out(part) if isinstance(part, OpaquePart) else part.text))
    return made


def texts(content: Content | None) -> list[str]:
    """The words of `content`, piece by piece; a part without words stands as a sentence."""
    if content is None or isinstance(content, str):
        return [content] if content else []
    found = []
    for part in content:
        if isinstance(part, TextPart):
            found.append(part.text)
        elif isinstance(part, OpaquePart):
            found.append(left_out(part))
    return found


def images(message: Message) -> list[ImagePart]:
    """The pictures of one message."""
    if message.content is None or isinstance(message.content, str):
        return []
    return [part for part in message.content if isinstance(part, ImagePart)]


def strict_id(call_id: str) -> str:
    """A call id for providers that allow letters, digits, `_` and `-` only: the same for the same id, else distinct."""
    if re.fullmatch(_PLAIN_ID, call_id):
        return call_id
    mark = hashlib.sha256(call_id.encode()).hexdigest()[:8]
    return f"{re.sub(_UNFIT_FOR_ID, '_', call_id)[:50]}_{mark}"


def declared_tools(request: ModelRequest) -> tuple[ToolDefinition, ...]:
    """The request's tools. Without any, those its history calls: some providers refuse calls to undeclared tools."""
    if request.tools:
        return request.tools
    names = {call.name for unit in request.units for message in unit.messages for call in message.tool_calls}
    empty: JsonObject = {"type": "object", "properties": {}}
    return tuple(ToolDefinition(name, "No longer offered.", empty) for name in sorted(names))


def effort_of(reasoning: JsonObject | None) -> str | None:
    """The effort asked for: None leaves it to the model, "none" asks for no reasoning."""
    if not reasoning:
        return None
    effort = str(reasoning.get("effort") or "").lower()
    if reasoning.get("enabled") is False or effort in _OFF:
        return "none"
    return effort or ("medium" if reasoning.get("enabled") else None)


def system_texts(request: ModelRequest) -> list[str]:
    """The system prompt in one piece, or in two where the first is what other sessions begin with as well.

    A marker goes behind the first: the second is in front of marked messages, and needs none of its own.
    """
    cut = request.shared_chars
    return [request.system[:cut], request.system[cut:]] if 0 < cut < len(request.system) else [request.system]


def cache_marker(quirks: Quirks) -> JsonObject:
    """What asks Claude's servers to keep everything up to here."""
    return {"type": "ephemeral"} if quirks.cache_ttl == "5m" else {"type": "ephemeral", "ttl": quirks.cache_ttl}


class BlockWire(ABC):
    """Maps units to `{"role", "content": [block, …]}`."""

    @abstractmethod
    def text(self, text: str) -> JsonObject: ...
    @abstractmethod
    def image(self, part: ImagePart) -> JsonObject: ...
    @abstractmethod
    def result(self, message: Message) -> JsonObject: ...
    @abstractmethod
    def thinking(self, message: Message) -> list[JsonObject]:
        """Reasoning to replay; it stands before everything else."""

    @abstractmethod
    def calls(self, message: Message) -> list[JsonObject]: ...
    def blocks(self, content: Content | None) -> list[JsonObject]:
        return parts(content, self.text, self.image)

    def unit(self, unit: Unit) -> bytes:
        """One turn. Never empty, never blank, and never ending in thinking, which cannot carry a cache marker."""
        first = unit.messages[0]
        if first.role == "assistant":
            words = parts(first.content, self.text, lambda _: {})
            blocks = [*(block for block in words if block), *self.calls(first)] or [self.text("(empty)")]
            return encode({"role": "assistant", "content": [*self.thinking(first), *blocks]})
        if first.role == "tool":
            blocks = [self.result(message) for message in unit.messages]
        else:
            blocks = self.blocks(first.content)
        if unit.context.strip():
            blocks.append(self.text(unit.context))
        return encode({"role": "user", "content": blocks})
