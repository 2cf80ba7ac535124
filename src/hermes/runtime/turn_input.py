"""What a caller asks of one turn."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hermes.dicts import content_from_json, storable
from hermes.errors import UserError
from hermes.types import Content

if TYPE_CHECKING:
    from hermes.runtime.output_schema import OutputSchema

EXAMPLE = {"role": "user", "content": "Hello"}


class TurnInput(Struct, frozen=True, kw_only=True):
    """The user's words and what goes with them. `stored_message` takes their place in the transcript."""

    message: Content
    stored_message: Content | None = None
    system_message: str | None = None
    history: Iterable[Mapping[str, Any]] | None = None
    task_id: str | None = None
    goes_on: bool = False  # with the last turn
    output: "OutputSchema | None" = None  # what the answer has to be

    @classmethod
    def of(
        cls,
        message: Any,
        stored: Any,
        system_message: str | None,
        history: Iterable[Mapping[str, Any]] | None,
        task_id: str | None,
    ) -> "TurnInput":
        """The caller's words as content; lone surrogates cannot be stored or sent, so they go here."""
        return cls(
            message=_clean(content_from_json(message)),
            stored_message=None if stored is None else _clean(content_from_json(stored)),
            system_message=None if system_message is None else storable(system_message),
            history=None if history is None else _messages(history),
            task_id=task_id,
        )


def _clean(content: Content | None) -> Content:
    return storable(content) if isinstance(content, str) else content or ""


def _messages(history: Any) -> list[Mapping[str, Any]]:
    given = list(history) if isinstance(history, Iterable) else [history]
    wrong = [one for one in given if not isinstance(one, Mapping)]
    if wrong:
        raise UserError(f"conversation_history is a list of messages such as {EXAMPLE}; {wrong[0]!r} is none")
    return given
