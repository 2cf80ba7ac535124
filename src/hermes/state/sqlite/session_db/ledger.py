"""The records beside the transcript: attempts, tool runs, approvals."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import uuid
from typing import Any

from hermes.ops import AttemptClosed, AttemptOpened
from hermes.state.codec import read_text
from hermes.state.schema import TABLES
from hermes.state.sqlite.session_db.base import DbBase, Row
from hermes.types import Usage

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
GROUPS = {
    "day": {"day": "date(started_at, 'unixepoch', 'localtime')"},
    "model": {"provider": "provider", "model": "model"},
    "purpose": {"purpose": "purpose"},
    "session": {"session_id": "coalesce(session_id, '')"},
    "all": {"provider": "provider", "model": "model", "purpose": "purpose"},
}


class LedgerCalls(DbBase):
    """Calls on the ledger and the journals."""

    def list_attempts(self, session_id: str | None = None, since: float = 0.0, limit: int = -1) -> list[Row]:
        """Model calls since a time, newest first; tokens and price are None where the provider did not say."""
        return self._records("attempts", session_id, "started_at >= ?", (since,), limit)

    def list_tool_runs(self, session_id: str | None = None, limit: int = -1) -> list[Row]:
        """Journalled calls, newest first; one that never ended has no status."""
        return self._records("tool_runs", session_id, "1", (), limit)

    def list_approvals(self, session_id: str | None = None, limit: int = -1) -> list[Row]:
        """Decisions of the gate, newest first."""
        return self._records("approvals", session_id, "1", (), limit)

    def usage(self, by: str = "all", since: float = 0.0) -> list[Row]:
        """Calls, tokens, seconds and dollars since a time, one row per group of `GROUPS[by]`.

        `failed` counts attempts without an answer, `uncounted` answers whose tokens nobody told, `unpriced` answers
        without a price.
        """
        group = GROUPS[by]
        sums = ", ".join(f"coalesce(sum({name}), 0)" for name in TOKENS)
        order = "1 DESC" if by == "day" else "calls DESC, 1"
        rows = self._all(
            f"SELECT {', '.join(group.values())}, count(*) AS calls, {sums}, sum(cost_usd),"
            " coalesce(sum(latency_ms), 0) / 1000.0,"
            " count(*) FILTER (WHERE outcome IS NULL OR outcome NOT IN ('ok', 'partial')),"
            " count(*) FILTER (WHERE outcome IN ('ok', 'partial') AND output_tokens IS NULL),"
            " count(*) FILTER (WHERE outcome IN ('ok', 'partial') AND cost_usd IS NULL)"
            f" FROM attempts WHERE started_at >= ? GROUP BY {', '.join(group.values())} ORDER BY {order}",
            (since,),
        )
        names = (*group, "calls", *TOKENS, "cost_usd", "seconds", "failed", "uncounted", "unpriced")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def usage_by_model(self, since: float = 0.0) -> list[Row]:
        """`usage` by provider, model and purpose."""
        return self.usage("all", since)

    def record_auxiliary_usage(self, session_id: str, task: str, **used: Any) -> None:
        """One helper call in the ledger: model, billing_provider, billing_base_url, tokens, estimated_cost_usd."""
        attempt = f"aux_{uuid.uuid4().hex}"
        tokens = {name: used.pop(name) for name in Usage.__struct_fields__ if name in used}
        cost = used.pop("estimated_cost_usd", None)
        opened = AttemptOpened(
            attempt_id=attempt,
            session_id=session_id,
            purpose=task,
            provider=used.pop("billing_provider", None) or "",
            model=used.pop("model", None) or "",
            base_url=used.pop("billing_base_url", None) or "",
            started_at=self._clock(),
        )
        if used:
            raise TypeError(f"record_auxiliary_usage() got an unexpected keyword argument {min(used)!r}")
        closed = AttemptClosed(
            attempt_id=attempt, session_id=session_id, outcome="ok", usage=Usage(**tokens), cost_usd=cost
        )
        self.store.commit_sync(opened, closed)

    def _records(
        self, table: str, session_id: str | None, where: str, values: tuple[Any, ...], limit: int
    ) -> list[Row]:
        if session_id is not None:
            where, values = f"{where} AND session_id = ?", (*values, session_id)
        columns = tuple(TABLES[table])
        rows = self._all(
            f"SELECT {', '.join(columns)} FROM {table} WHERE {where} ORDER BY id DESC LIMIT ?", (*values, limit)
        )
        return [
            dict(zip(columns, (read_text(v) if isinstance(v, bytes) else v for v in row), strict=True)) for row in rows
        ]
