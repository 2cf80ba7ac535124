"""What of a turn a screen was shown, to make up for what it was not: deltas may be missing, calls may stay open."""

from collections.abc import Iterator

from hermes.host.events import LiveEvent, TurnEnded
from hermes.types import (
    BlockClosed,
    CallFinished,
    CallStarted,
    Commentary,
    StepStarted,
    TextDelta,
    ToolResult,
    TurnFinished,
)


class ShownTurn:
    """Follows one turn after the other."""

    def __init__(self) -> None:
        self._text = ""
        self._is_partial = False  # the beginning of what is being written was missed
        self._calls: dict[str, CallStarted] = {}
        self.is_ended = False

    def begin(self, *, is_under_way: bool = False) -> None:
        """A turn begins; or is under way, and what was written of its answer so far is not known."""
        self._text, self._is_partial, self._calls, self.is_ended = "", is_under_way, {}, False

    def shown(self, event: LiveEvent) -> Iterator[LiveEvent]:
        """What to show for an event: mostly itself."""
        match event:
            case TextDelta():
                if self._is_partial:
                    return
                self._text += event.text
            case BlockClosed() | StepStarted():
                self._text, self._is_partial = "", False
            case CallStarted():
                self._text, self._is_partial = "", False
                self._calls[event.call.id] = event
            case CallFinished():
                self._calls.pop(event.call.id, None)
            case TurnEnded():
                yield from self._ended(event)
                return
        yield event

    def cut_off(self) -> Iterator[LiveEvent]:
        """Every call that was shown as started is shown as ended: what came of these nobody knows."""
        for started in self._calls.values():
            gone = ToolResult(call_id=started.call.id, name=started.call.name, content="", status="unknown")
            yield CallFinished(started.call, started.args, gone)
        self._calls = {}

    def _ended(self, event: TurnEnded) -> Iterator[LiveEvent]:
        self.is_ended = True
        record = event.record
        if self._text and event.answer and self._text.strip() != event.answer.strip():
            yield BlockClosed()  # some of it was missed: show it whole
            yield Commentary(event.answer, already_streamed=False)
        yield TurnFinished(
            session_id=str(record.get("session_id", "")),
            turn_id=event.turn_id,
            exit_reason=str(record.get("exit_reason", "")),
            completed=bool(record.get("completed", False)),
            api_calls=int(record.get("api_calls") or 0),
            files_changed=tuple(record.get("files_changed") or ()),
            commands=tuple(record.get("commands") or ()),
            failed_calls=tuple(record.get("failed_calls") or ()),
        )
        yield event
