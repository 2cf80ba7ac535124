"""How large a request is, about: no tokenizer is asked, and what was measured before is not measured again."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.json import encode

from hermes.seams import ModelRequest, Unit, UnitLog
from hermes.types import ImagePart, Message, OpaquePart, TextPart

BYTES_PER_TOKEN = 4  # of most text; of hardly any is it less than half of that
PICTURE_BYTES = 12_000  # what a large picture costs, in bytes of text
_KEY = "size"


class Size(Struct, frozen=True):
    """Messages, and their words in bytes."""

    bytes: int = 0
    messages: int = 0

    @property
    def tokens(self) -> int:
        """About as many as there are."""
        return self.bytes // BYTES_PER_TOKEN

    @property
    def most_tokens(self) -> int:
        """Hardly ever more than these."""
        return 2 * self.bytes // BYTES_PER_TOKEN


def size_of(request: ModelRequest) -> Size:
    """All that the model is going to read."""
    units = request.units
    count, size = units.recall(_KEY, Size()) if isinstance(units, UnitLog) else (0, Size())
    size = _with(size, units[count:-1])  # the newest unit may still be given context
    if isinstance(units, UnitLog):
        units.remember(_KEY, max(count, len(units) - 1), size)
    whole = _with(size, units[-1:])
    tools = sum(len(encode(tool.parameters)) + _bytes(tool.description) for tool in request.tools)
    return Size(whole.bytes + _bytes(request.system) + tools, whole.messages)


def _with(size: Size, units: Sequence[Unit]) -> Size:
    messages = [message for unit in units for message in unit.messages]
    words = sum(_bytes(unit.context) for unit in units) + sum(_of_message(message) for message in messages)
    return Size(size.bytes + words, size.messages + len(messages))


def _of_message(message: Message) -> int:
    calls = sum(_bytes(call.name) + _bytes(call.arguments) for call in message.tool_calls)
    thought = _bytes(message.reasoning_content or message.reasoning or "")
    if not isinstance(message.content, tuple):
        return _bytes(message.content or "") + calls + thought
    return sum(_of_part(part) for part in message.content) + calls + thought


def _of_part(part: TextPart | ImagePart | OpaquePart) -> int:
    if isinstance(part, TextPart):
        return _bytes(part.text)
    return PICTURE_BYTES if isinstance(part, ImagePart) else len(encode(part.raw))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
