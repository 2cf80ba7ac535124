"""The sink of a child: what it does becomes its record, and short news for whoever listens to its parent."""

import asyncio
from collections.abc import Callable
from typing import Any

from hermes import types
from hermes.runtime.delegation.child_record import ChildRecord, brief

PREVIEW_CHARS = 120


class ChildEvents:
    """`Sink` of a child. Its words are not passed on, delta by delta: of a child one reads what it comes to."""

    def __init__(self, record: ChildRecord, toolsets: tuple[str, ...], tell: Callable[[types.Event], None]) -> None:
        self._record = record
        self._toolsets = toolsets
        self._tell = tell
        self.first_byte = asyncio.Event()  # of its first answer

    def emit(self, event: types.Event) -> None:
        record = self._record
        match event:
            case types.TextDelta(text=text):
                self.first_byte.set()
                record.said(text)
            case types.ReasoningDelta() | types.CallAnnounced():
                self.first_byte.set()
            case types.TurnStarted(model=model):
                record.model = model
            case types.StepStarted():
                record.text, record.doing, record.preview = "", "thinking", ""
                self.tell("thinking")
            case types.CallStarted(call=call, args=args):
                record.tool_count += 1
                record.doing, record.preview = call.name, call.arguments[:PREVIEW_CHARS]
                self.tell("tool", tool_name=call.name, preview=record.preview, args=args)
            case types.CallFinished(call=call, result=result):
                record.saw(call, result)
            case types.Commentary(text=text):
                self.tell("text", preview=text[-PREVIEW_CHARS:])
            case types.ModelAnswered(usage=usage):
                self.first_byte.set()
                record.tokens += (usage.prompt_tokens or 0) + (usage.output_tokens or 0)
                self.tell("progress")
            case types.StatusChanged(message=message):
                self.tell("progress", preview=message[:PREVIEW_CHARS])
            case types.ChildProgress():
                self._tell(event)  # of a child of its own, whose path says so
            case _:
                return  # how its turn is kept together concerns nobody above it

    def tell(self, stage: types.ChildStage, **more: Any) -> None:
        """News of the child, at its place in the tree."""
        record = self._record
        self._tell(
            types.ChildProgress(
                stage=stage,
                path=record.path,
                child_session_id=record.session_id,
                task_index=record.task.index,
                task_count=record.task.count,
                goal=record.task.goal,
                model=record.model,
                toolsets=self._toolsets,
                tool_count=record.tool_count,
                tokens=record.tokens,
                seconds=round(record.seconds, 2),
                **more,
            )
        )

    def ended(self, result: types.JsonObject) -> None:
        self.first_byte.set()
        self.tell("complete", outcome=brief(result))
