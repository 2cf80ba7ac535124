"""A stored conversation as the updates that an editor would have seen live."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import MsgspecError

from hermes.host.session_text import said
from hermes.surfaces.acp.call_ids import CallIds
from hermes.surfaces.acp.call_view import begun, ended, plan_of
from hermes.surfaces.acp.child_view import DELEGATE, children_of
from hermes.surfaces.acp.edit_view import edits_of
from hermes.surfaces.acp.protocol import AnswerChunk, PlanTold, TextBlock, ThoughtChunk, Update, UserChunk
from hermes.typed import from_json
from hermes.types import CallFinished, CallStarted, JsonObject, ResultStatus, ToolCall, ToolResult

Row = Mapping[str, Any]
NO_RESULT = "This call has no result: the runtime stopped while it ran."


def updates_of(rows: Iterable[Row], cwd: str, ids: CallIds) -> Iterator[Update]:
    """Each message as it would have been told, in order; `ids` learns the calls that there were."""
    opened: dict[str, tuple[ToolCall, JsonObject]] = {}
    for row in rows:
        text = said(row)
        match row.get("role"):
            case "user":
                if text.strip():
                    yield UserChunk(TextBlock(text))
            case "assistant":
                if thought := str(row.get("reasoning") or row.get("reasoning_content") or ""):
                    yield ThoughtChunk(TextBlock(thought))
                if text.strip():
                    yield AnswerChunk(TextBlock(text))
                for call, args in _calls(row, ids):
                    opened[str(call.id)] = (call, args)
                    yield begun(CallStarted(call, args), cwd)
            case "tool":
                yield from _result(row, text, opened, ids, cwd)
            case _:
                continue
    for call, args in opened.values():  # every call that is shown as started is shown as ended
        result = ToolResult(call_id=call.id, name=call.name, content=NO_RESULT, status="unknown")
        yield ended(CallFinished(call, args, result))


def _calls(row: Row, ids: CallIds) -> Iterator[tuple[ToolCall, JsonObject]]:
    for each in row.get("tool_calls") or ():
        function = each.get("function") or {}
        text = str(function.get("arguments") or "{}")
        try:
            args = from_json(text.encode(), dict[str, Any])
        except MsgspecError:
            args = {}
        yield ToolCall(ids.begin(str(each.get("id") or "")), str(function.get("name") or ""), text), args


def _result(
    row: Row, text: str, opened: dict[str, tuple[ToolCall, JsonObject]], ids: CallIds, cwd: str
) -> Iterator[Update]:
    shown = ids.known(str(row.get("tool_call_id") or ""))
    found = opened.pop(shown, None)
    if found is None:
        return
    call, args = found
    if call.name == DELEGATE:
        yield from children_of(args, text)
    status: ResultStatus = row.get("status") or "ok"
    result = ToolResult(call_id=call.id, name=call.name, content=text, status=status)
    done = CallFinished(call, args, result)
    yield ended(done, edits_of(done, cwd))
    if call.name == "todo" and (plan := _plan(text)) is not None:
        yield plan


def _plan(text: str) -> PlanTold | None:
    try:
        todos = from_json(text.encode(), dict[str, Any]).get("todos")
    except MsgspecError:
        return None
    return plan_of(tuple(todos)) if isinstance(todos, list) else None
