"""What the status line tells: model, folder, how full the window is, tokens and price."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes.surfaces.cli.output import cut, width_of


@dataclass(slots=True)
class ShownSpend:
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

    def line(self, cwd: str, width: int, *, show_cost: bool, live_context: int = 0) -> str:
        """As much of it as fits; the model and the folder last longest."""
        used = live_context or self.in_context
        share = f"{used / self.window:.0%}" if used and self.window else ""
        parts = [self.model or "no model", short_path(cwd)]
        extras = [f"context {share}"] if share else []
        if self.read or self.written:
            extras.append(f"{short_count(self.read)} in, {short_count(self.written)} out")
        if show_cost:
            extras.append("cost unknown" if self.cost_usd is None else f"${self.cost_usd:.4f}")
        for extra in extras:
            if width_of(" · ".join([*parts, extra])) < width:
                parts.append(extra)
        return cut(" · ".join(parts), max(8, width - 1))


def short_path(path: str) -> str:
    """`path` with the home as `~`."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path


def short_count(count: int) -> str:
    """`12.3k`, `1.2M`."""
    if count >= 1_000_000:
        return f"{count / 1_000_000:.1f}M"
    return f"{count / 1_000:.1f}k" if count >= 1_000 else str(count)
