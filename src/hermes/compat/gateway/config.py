"""`gateway.config`: names of platforms and their settings, so that their plugins load; nothing uses it yet."""

from dataclasses import dataclass, field
from typing import Any


class Platform(str):
    """The name of a platform; any is accepted."""

    @property
    def value(self) -> str:
        return str(self)


@dataclass
class PlatformConfig:
    """The settings of one platform."""

    enabled: bool = False
    token: str | None = None
    api_key: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


__all__ = ["Platform", "PlatformConfig"]
