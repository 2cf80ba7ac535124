"""The figures of a session: model, folder, how full the window is, tokens and price."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SESSION_FIGURES = (  # the columns of a session that its figures are made of
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "estimated_cost_usd",
    "cwd",
    "title",
)


@dataclass(slots=True)
class SessionFigures:
    """Figures of one session. A price that nobody knows is None, never nothing."""

    model: str = ""
    window: int | None = None
    is_window_assumed: bool = False
    cwd: str = ""
    title: str = ""
    read: int = 0
    written: int = 0
    in_context: int = 0
    cost_usd: float | None = 0.0

    def reads(self, model: str, window: int | None, is_assumed: bool = False) -> None:
        """Which model answers, and how much it reads at once."""
        self.model, self.window, self.is_window_assumed = model, window, is_assumed

    def saw(self, result: Mapping[str, Any]) -> None:
        """A turn has ended."""
        self.in_context = int(result.get("last_prompt_tokens") or self.in_context)

    def of_session(self, row: Mapping[str, Any] | None) -> None:
        """The session's own totals, as stored."""
        if row is None:
            return
        names = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
        self.read = sum(int(row.get(name) or 0) for name in names)
        self.written = int(row.get("output_tokens") or 0)
        self.cost_usd = row.get("estimated_cost_usd")
        self.cwd = str(row.get("cwd") or "")
        self.title = str(row.get("title") or "")
