"""What a child has done so far, and the result that its parent reads, however it ended."""

from collections import deque
from typing import Any

from msgspec import Struct, field

from hermes.ops import EventStored, SessionChanged, StoreOp
from hermes.runtime.conversation_loop import NO_SUMMARY
from hermes.runtime.delegation.child_task import ChildTask
from hermes.runtime.outcome import Outcome
from hermes.seams import Clock
from hermes.types import ChildProgress, JsonObject, ToolCall, ToolResult, text_of

STARTED, ENDED = "child_started", "child_ended"  # kinds of stored events, in the parent's session
EMPTY = "(empty)"
KEPT_CHARS = 20_000  # of what it said on the way
KEPT_CALLS = 200
SAID_NOTHING = "the child came to no answer"
CUT_SHORT = "its time was over; this is what it has come to so far"


class ChildRecord(Struct, kw_only=True):
    """Filled in while a child runs."""

    path: tuple[str, ...]  # see `ParentLink`
    session_id: str
    parent_session_id: str
    turn_id: str  # of the parent
    call_id: str
    task: ChildTask
    clock: Clock
    started: float  # of the monotonic clock
    model: str = ""
    tool_count: int = 0
    tokens: int = 0
    doing: str = "starting"
    preview: str = ""  # the beginning of the arguments of the call that runs
    text: str = ""  # what it has said since its last call, or last said
    trace: deque[JsonObject] = field(default_factory=lambda: deque[JsonObject](maxlen=KEPT_CALLS))
    notes: list[str] = field(default_factory=list)  # sentences for the parent: where its worktree is
    result: JsonObject | None = None  # once it has ended

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def seconds(self) -> float:
        return self.clock.monotonic() - self.started

    def saw(self, call: ToolCall, result: ToolResult) -> None:
        """A call of the child is over."""
        size = len(text_of(result.content).encode("utf-8", "surrogatepass"))
        status = "ok" if result.status == "ok" else "error"
        sizes = {"args_bytes": len(call.arguments.encode("utf-8", "surrogatepass")), "result_bytes": size}
        self.trace.append({"tool": call.name, **sizes, "status": status})

    def said(self, text: str) -> None:
        self.text = (self.text + text)[-KEPT_CHARS:]

    def started_row(self, granted: JsonObject) -> StoreOp:
        """What tells a parent that comes back after a crash that there was this child."""
        return EventStored(self.parent_session_id, STARTED, self.session_id, {**self._facts(), "granted": granted})

    def at_end(self, outcome: Outcome) -> list[StoreOp]:
        """The rows of the child's end, part of its last commit."""
        return self.ended_rows(self.as_result(outcome))

    def ended_rows(self, ended: JsonObject) -> list[StoreOp]:
        """The rows of an end with this result."""
        self.result = ended
        told = EventStored(self.parent_session_id, ENDED, self.session_id, {**self._facts(), "result": ended})
        return [SessionChanged(self.session_id, {"ended_at": self.clock.now(), "end_reason": ended["status"]}), told]

    def _facts(self) -> JsonObject:
        task = self.task
        return {
            "call_id": self.call_id,
            "path": list(self.path),
            "goal": task.goal,
            "task_index": task.index,
            "task_count": task.count,
        }

    def as_result(self, outcome: Outcome) -> JsonObject:
        """What the parent reads of the child."""
        status, exit_reason, error = _judged(outcome)
        answer = "" if outcome.final_response in (EMPTY, NO_SUMMARY) else outcome.final_response.strip()
        result: JsonObject = {
            "task_index": self.task.index,
            "status": status,
            "summary": answer if status == "completed" else answer or self.text.strip(),
            "api_calls": outcome.api_calls,
            "duration_seconds": round(self.seconds, 2),
            "model": outcome.model or self.model,
            "exit_reason": exit_reason,
            "tokens": {"input": outcome.totals[0] + outcome.totals[2] + outcome.totals[3], "output": outcome.totals[1]},
            "tool_trace": list(self.trace),
            "files_written": list(outcome.files_changed),
            "cost_usd": outcome.cost_usd,
            "subagent_id": self.name,
            "child_session_id": self.session_id,
        }
        if error:
            result["error"] = error
        return result

    def failed(self, status: str, error: str) -> JsonObject:
        """The result of a child that has no outcome of its own: it could not begin, or its code is at fault."""
        outcome = Outcome(model=self.model, exit_reason=status)
        result = {**self.as_result(outcome), "status": status, "exit_reason": status, "error": error}
        return {**result, "cost_usd": None}


def _judged(outcome: Outcome) -> tuple[str, str, str]:
    """Status, exit reason and, unless it is completed, the error. Completed is an answer of the model, nothing else."""
    text = outcome.final_response.strip()
    is_answer = bool(text) and text not in (EMPTY, NO_SUMMARY)
    if outcome.interrupted:
        return "interrupted", "interrupted", "it was stopped"
    if outcome.exit_reason == "deadline_exceeded":
        return "timeout", "timeout", CUT_SHORT
    if outcome.exit_reason.startswith("max_iterations_reached"):
        if is_answer:
            return "completed", "max_iterations", ""
        return "failed", "max_iterations", f"{SAID_NOTHING} within its model calls"
    if outcome.completed and is_answer:
        return "completed", "completed", ""
    return "failed", "error", outcome.error or _why(outcome, is_answer)


def _why(outcome: Outcome, is_answer: bool) -> str:
    if outcome.exit_reason == "guardrail_halt":
        return "it went in circles and was stopped"
    return f"its answer was cut off ({outcome.exit_reason})" if is_answer else SAID_NOTHING


def brief(result: JsonObject) -> JsonObject:
    """The part of a result that `subagent.complete` tells."""
    tokens: Any = result["tokens"]
    told = {
        "status": result["status"],
        "summary": result["summary"],
        "duration_seconds": result["duration_seconds"],
        "api_calls": result["api_calls"],
        "input_tokens": tokens["input"],
        "output_tokens": tokens["output"],
        "files_written": result["files_written"],
        "files_read": result.get("files_read", []),
        "output_tail": str(result["summary"])[-500:],
        "cost_usd": result["cost_usd"],
    }
    return told | ({"error": result["error"]} if result.get("error") else {})


def as_keywords(event: ChildProgress) -> JsonObject:
    """What `tool_progress_callback` is told of a child, by name."""
    told: JsonObject = {
        "task_index": event.task_index,
        "task_count": event.task_count,
        "goal": event.goal,
        "subagent_id": event.path[-1],
        "child_session_id": event.child_session_id,
        "depth": len(event.path) - 1,
        "model": event.model,
        "toolsets": list(event.toolsets),
        "tool_count": event.tool_count,
        "path": list(event.path),
    }
    if len(event.path) > 1:
        told["parent_id"] = event.path[-2]
    return {**told, **(event.outcome or {})}
