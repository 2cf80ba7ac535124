"""Sessions themselves: begin, end, reopen, change, count."""

import sqlite3
from typing import Any

from hermes.ops import SessionCreated
from hermes.state.codec import decode_json
from hermes.state.schema import SESSION_COLUMNS
from hermes.state.sqlite.session_db.base import DbBase, Row
from hermes.state.sqlite.store_ops_sql import COUNTERS, Plan, change_session

_TOKENS = COUNTERS[2:]
_COSTS = ("estimated_cost_usd", "actual_cost_usd")
_PRICED = ("cost_status", "cost_source", "pricing_version")
_ROUTE = ("model", "billing_provider", "billing_base_url", "billing_mode")
_CREATED = frozenset(SessionCreated.__struct_fields__) - {"session_id", "source", "model_config"}


class SessionCalls(DbBase):
    """Calls on one session row."""

    def create_session(self, session_id: str, source: str, **fields: Any) -> str:
        """Insert the session unless it is there; return its id. `fields` are columns of a session."""
        unknown = sorted(fields.keys() - SESSION_COLUMNS.keys())
        if unknown:
            raise TypeError(f"create_session() got an unexpected keyword argument {unknown[0]!r}")
        config = fields.get("model_config")
        created = SessionCreated(
            session_id=session_id,
            source=source,
            model_config=decode_json(config) if isinstance(config, str) else config,
            **{name: fields[name] for name in _CREATED & fields.keys()},
        )
        rest = {name: value for name, value in fields.items() if name not in _CREATED and name != "model_config"}
        plan = Plan([created], "")

        def work(conn: sqlite3.Connection) -> None:
            if plan.run(conn)[0] and rest:
                change_session(conn, session_id, rest)

        self._write(work)
        return session_id

    def ensure_session(self, session_id: str, source: str = "unknown", model: str | None = None, **fields: Any) -> str:
        """`create_session` with nothing required."""
        return self.create_session(session_id, source, model=model, **fields)

    def get_session(self, session_id: str) -> Row | None:
        """All columns of the session, or None."""
        rows = self._sessions("WHERE s.id = ?", (session_id,))
        return rows[0] if rows else None

    def end_session(self, session_id: str, end_reason: str) -> None:
        """Mark it ended; the first reason stays."""
        self._execute(
            "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL",
            (self._clock(), end_reason, session_id),
        )

    def reopen_session(self, session_id: str) -> None:
        """Take the end back."""
        self._execute("UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ?", (session_id,))

    def promote_to_session_reset(self, session_id: str, reason: str = "session_reset") -> bool:
        """Give an ended session the stronger reason `reason`; False when it has not ended."""
        return bool(
            self._execute(
                "UPDATE sessions SET end_reason = ? WHERE id = ? AND ended_at IS NOT NULL", (reason, session_id)
            )
        )

    def update_system_prompt(self, session_id: str, system_prompt: str) -> None:
        self._change(session_id, system_prompt=system_prompt)

    def update_session_meta(self, session_id: str, model_config_json: str, model: str | None = None) -> None:
        """Set the model's settings, and the model when one is given."""
        changes: dict[str, Any] = {"model_config": model_config_json}
        self._change(session_id, **changes, **({} if model is None else {"model": model}))

    def update_session_model(self, session_id: str, model: str) -> None:
        self._change(session_id, model=model)

    def update_session_billing_route(
        self, session_id: str, *, provider: str, base_url: str, billing_mode: str | None = None
    ) -> None:
        """Who is paid for this session from now on."""
        self._change(session_id, billing_provider=provider, billing_base_url=base_url, billing_mode=billing_mode)

    def update_session_cwd(
        self, session_id: str, cwd: str, git_branch: str | None = None, git_repo_root: str | None = None
    ) -> None:
        """Where the session works."""
        self._change(session_id, cwd=cwd, git_branch=git_branch, git_repo_root=git_repo_root)

    def set_session_archived(self, session_id: str, archived: bool) -> bool:
        """Hide the session from lists, or show it again; False when there is none."""
        return self._change(session_id, archived=int(archived))

    def set_expiry_finalized(self, session_id: str, finalized: bool = True) -> None:
        self._change(session_id, expiry_finalized=int(finalized))

    def update_token_counts(
        self,
        session_id: str,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        *,
        absolute: bool = False,
        **counts: Any,
    ) -> None:
        """Add to the session's tokens and costs, or set them when `absolute`.

        Keywords: the token columns, `api_call_count`, `estimated_cost_usd`, `actual_cost_usd`, `cost_status`,
        `cost_source`, `pricing_version`; `model`, `billing_provider`, `billing_base_url` and `billing_mode` fill
        columns that are still empty.
        """
        unknown = sorted(counts.keys() - {*_TOKENS, *_COSTS, *_PRICED, *_ROUTE})
        if unknown:
            raise TypeError(f"update_token_counts() got an unexpected keyword argument {unknown[0]!r}")
        counts |= {"input_tokens": input_tokens, "output_tokens": output_tokens}
        parts, values = [], []
        for name, value in counts.items():
            if value is None:
                continue
            if name in _ROUTE:
                parts.append(f"{name} = coalesce({name}, ?)")
            elif absolute or name in _PRICED:
                parts.append(f"{name} = ?")
            else:
                parts.append(f"{name} = coalesce({name}, 0) + ?")
            values.append(value)
        if parts:
            self._execute(f"UPDATE sessions SET {', '.join(parts)} WHERE id = ?", (*values, session_id))  # noqa: S608 - names checked above

    def get_meta(self, key: str) -> str | None:
        """A value of the store as a whole."""
        row = self._one("SELECT value FROM state_meta WHERE key = ?", (key,))
        return row[0] if row else None

    def set_meta(self, key: str, value: str) -> None:
        self._execute(
            "INSERT INTO state_meta(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def _change(self, session_id: str, **changes: Any) -> bool:
        return bool(self._write(lambda conn: change_session(conn, session_id, changes)))
