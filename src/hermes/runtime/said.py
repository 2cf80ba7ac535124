"""What a caller asks of one turn."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from hermes.dicts import content_from_json
from hermes.types import Content


class Said(Struct, frozen=True, kw_only=True):
    """The user's words and what goes with them. `stored_message` takes their place in the transcript."""

    message: Content
    stored_message: Content | None = None
    system_message: str | None = None
    history: Iterable[Mapping[str, Any]] | None = None
    task_id: str | None = None

    @classmethod
    def of(
        cls,
        message: Any,
        stored: Any,
        system_message: str | None,
        history: Iterable[Mapping[str, Any]] | None,
        task_id: str | None,
    ) -> "Said":
        """The caller's words as content; lone surrogates cannot be stored or sent, so they go here."""
        return cls(
            message=_clean(content_from_json(message)),
            stored_message=None if stored is None else _clean(content_from_json(stored)),
            system_message=system_message,
            history=None if history is None else list(history),
            task_id=task_id,
        )


def _clean(content: Content | None) -> Content:
    if isinstance(content, str):
        return content.encode("utf-8", "replace").decode() if not content.isascii() else content
    return content or ""
