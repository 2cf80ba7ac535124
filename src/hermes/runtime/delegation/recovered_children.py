"""After a crash: what the children of an open call came to, read from the store; those that were running are ended."""

from typing import Any

from hermes.ops import EventStored, OpenCall, SessionChanged, SessionRecord, StoreOp
from hermes.runtime.delegation.child_record import ENDED, STARTED
from hermes.runtime.parts import Joining
from hermes.runtime.session.history import RecoveredCall
from hermes.state.queries import SessionQueries
from hermes.tools.registry import tool_result
from hermes.types import JsonObject, text_of

CUT_OFF = "the process that ran it was killed; what it had begun may have taken effect, so check before you ask again"
NOTE = "Hermes was stopped while these children worked. Those that had ended are told as they ended."
MAX_DEPTH = 16
_MANY = 1_000


async def recovered_calls(agent: Joining, record: SessionRecord) -> dict[str, RecoveredCall]:
    """What is known of the open calls of delegate_task in `record`, by their ids."""
    queries = getattr(agent.services.store, "queries", None)
    asked = [one for one in record.open_calls if one.call.name == "delegate_task" and one.is_started]
    if queries is None or not asked:
        return {}
    found = await agent.services.pool.run(_CrashReader(queries, agent.services.clock.now()).read, record, asked)
    return dict(found)


class _CrashReader:
    """Reads the rows of children; `ops` ends those that nobody has ended."""

    def __init__(self, queries: SessionQueries, now: float) -> None:
        self._queries = queries
        self._now = now
        self._ops: list[StoreOp] = []

    def read(self, record: SessionRecord, calls: list[OpenCall]) -> list[tuple[str, RecoveredCall]]:
        rows = self._rows(record.session_id)
        answers = []
        for one in calls:
            self._ops = []
            results = self._results(
                record.session_id, [row for row in rows if row["body"].get("call_id") == one.call.id]
            )
            if not results:
                continue  # nothing had begun, or nobody knows
            is_whole = all(result["status"] != "interrupted" for result in results)
            content = tool_result(results=results, recovered=True, note=NOTE)
            known = RecoveredCall(content, "ok" if is_whole else "unknown", tuple(self._ops))
            answers.append((one.call.id, known))
        return answers

    def _rows(self, session_id: str) -> list[JsonObject]:
        """The events about children of this session, oldest first."""
        found: list[JsonObject] = []
        after = 0
        while page := self._queries.events(session_id, after, _MANY):
            found += [row for row in page if row["kind"] in (STARTED, ENDED) and row["session_id"] == session_id]
            after = int(page[-1]["number"])
        return found

    def _results(self, session_id: str, rows: list[JsonObject], depth: int = 0) -> list[JsonObject]:
        ended = {str(row["about"]): row["body"]["result"] for row in rows if row["kind"] == ENDED}
        begun = {str(row["about"]): row["body"] for row in rows if row["kind"] == STARTED}
        results = [ended.get(child) or self._cut(session_id, child, body, depth) for child, body in begun.items()]
        return sorted(results, key=lambda result: int(result["task_index"]))

    def _cut(self, session_id: str, child: str, body: JsonObject, depth: int) -> JsonObject:
        """A child that was running: what it has said so far, and what its own children came to."""
        record = self._queries.load(child)
        said = [text_of(one.content).strip() for one in record.messages if one.role == "assistant"] if record else []
        result: dict[str, Any] = {
            "task_index": body.get("task_index", 0),
            "status": "interrupted",
            "summary": next((text for text in reversed(said) if text), ""),
            "api_calls": len(said),
            "duration_seconds": None,
            "model": (record.model if record else None) or "",
            "exit_reason": "interrupted",
            "tokens": {"input": 0, "output": 0},
            "tool_trace": [],
            "files_written": [],
            "cost_usd": record.cost_usd if record else None,
            "error": CUT_OFF,
            "subagent_id": (body.get("path") or [""])[-1],
            "child_session_id": child,
        }
        if record is not None:
            usage = record.totals
            result["tokens"] = {"input": usage.prompt_tokens or 0, "output": usage.output_tokens or 0}
        if depth < MAX_DEPTH and (below := self._results(child, self._rows(child), depth + 1)):
            result["children"] = below
        told = {**{name: value for name, value in body.items() if name != "granted"}, "result": result}
        self._ops.append(EventStored(session_id, ENDED, child, told))
        if record is not None:
            self._ops.append(SessionChanged(child, {"ended_at": self._now, "end_reason": "interrupted"}))
        return result
