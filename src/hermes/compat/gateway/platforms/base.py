"""`gateway.platforms.base`: the base of chat platforms, so that their plugins load; nothing uses it yet."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class MessageType(Enum):
    """What a message holds."""

    TEXT = "text"
    PHOTO = "photo"
    VIDEO = "video"
    AUDIO = "audio"
    VOICE = "voice"
    DOCUMENT = "document"
    COMMAND = "command"


@dataclass
class MessageEvent:
    """A message that came in."""

    text: str
    message_type: MessageType = MessageType.TEXT
    source: Any = None
    raw_message: Any = None
    message_id: str | None = None
    media_urls: list[str] = field(default_factory=list)


@dataclass
class SendResult:
    """What became of a message that went out."""

    success: bool
    message_id: str | None = None
    error: str | None = None
    raw_response: Any = None


class BasePlatformAdapter:
    """A chat platform. It overrides `connect`, `disconnect`, `send` and what else it can do."""

    def __init__(self, config: Any, platform: Any) -> None:
        self.config = config
        self.platform = platform

    async def connect(self) -> bool:
        raise NotImplementedError

    async def disconnect(self) -> None:
        raise NotImplementedError

    async def send(self, chat_id: str, content: str, **keywords: Any) -> SendResult:
        raise NotImplementedError


__all__ = ["BasePlatformAdapter", "MessageEvent", "MessageType", "SendResult"]
