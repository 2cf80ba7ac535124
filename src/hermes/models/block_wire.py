"""What protocols share whose turns are lists of blocks, and whose results belong to the user's side."""

from abc import ABC, abstractmethod

from hermes.models.answer_values import encode
from hermes.models.content import parts
from hermes.seams import Unit
from hermes.types import Content, ImagePart, JsonObject, Message


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
