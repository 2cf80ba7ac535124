"""`gateway.session`: where a message came from, so that platforms' plugins load; nothing uses it yet."""

from dataclasses import dataclass
from typing import Any


@dataclass
class SessionSource:
    """A chat on a platform."""

    platform: Any
    chat_id: str
    chat_name: str | None = None
    chat_type: str = "dm"
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None


__all__ = ["SessionSource"]
