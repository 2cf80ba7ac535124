"""`ContextEngine`: the base of what decides when a conversation is too long, and what takes its place."""

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from typing import Any, TypeAlias

Messages: TypeAlias = list[dict[str, Any]]


class ContextEngine(ABC):
    """Counts tokens, and shortens a history when there are too many.

    Messages are the OpenAI-style dicts of the contract, without the system prompt. `compress` may be a plain or an
    async function; it never changes what it is given, and returns that when it could not make it shorter. It is asked
    before every call of a turn whether to compress, and told the usage after every answer.
    """

    last_prompt_tokens: int = 0
    last_completion_tokens: int = 0
    last_total_tokens: int = 0
    threshold_tokens: int = 0
    context_length: int = 0
    compression_count: int = 0
    threshold_percent: float = 0.75
    protect_first_n: int = 3
    protect_last_n: int = 6
    last_error: str = ""  # why the last `compress` gave back what it was given, where there is a reason to tell

    @property
    @abstractmethod
    def name(self) -> str:
        """A short id."""

    @abstractmethod
    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        """A model has answered; `usage` holds `prompt_tokens`, `completion_tokens` and `total_tokens`."""

    @abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether a prompt of that size is to be shortened now; without one, the last that was counted."""

    @abstractmethod
    def compress(
        self, messages: Messages, current_tokens: int | None = None, focus_topic: str | None = None
    ) -> Messages | Awaitable[Messages]:
        """A shorter list that ends with the newest message and holds no call without its result."""

    def has_content_to_compress(self, messages: Messages) -> bool:
        """Whether there is anything that `compress` could take out."""
        return True

    def should_compress_preflight(self, messages: Messages) -> bool:
        """Asked as a turn begins, where `should_compress` saw no need: by the messages themselves."""
        return False

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        """Whether to wait for the provider's own count where the size is only an estimate."""
        return False

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Tools that the model is offered in a session with this engine."""
        return []

    def handle_tool_call(self, name: str, args: dict[str, Any], **_: Any) -> str | Awaitable[str]:
        """The result of a call to one of them, as JSON."""
        return json.dumps({"error": f"Unknown tool: {name}"})

    def on_session_start(self, session_id: str, **_: Any) -> None:  # noqa: B027 - nothing has to be done
        """A session begins under this id (`model`, `context_length`), or goes on under it (`previous`)."""

    def on_session_end(self, session_id: str, messages: Messages) -> None:  # noqa: B027 - nothing has to be done
        """A session is over, because another has taken its place or its agent was closed."""

    def on_session_reset(self) -> None:
        """Forget every count: a session begins in which nothing was said yet."""
        self.last_prompt_tokens = self.last_completion_tokens = self.last_total_tokens = self.compression_count = 0

    def get_status(self) -> dict[str, Any]:
        """The numbers, for whoever shows them."""
        return {
            "engine": self.name,
            "last_prompt_tokens": self.last_prompt_tokens,
            "threshold_tokens": self.threshold_tokens,
            "context_length": self.context_length,
            "compression_count": self.compression_count,
        }

    def update_model(
        self, model: str, context_length: int, base_url: str = "", api_key: str = "", provider: str = ""
    ) -> None:
        """Another model is used, with another window."""
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)
