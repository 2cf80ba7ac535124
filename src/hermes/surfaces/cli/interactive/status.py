"""The status line: model, folder, how full the window is, tokens and price."""

from pathlib import Path

from hermes.host.session_figures import SessionFigures
from hermes.surfaces.cli.output import cut, width_of


def status_line(
    figures: SessionFigures, cwd: str, width: int, *, show_cost: bool, live_context: int = 0, mode: str = ""
) -> str:
    """As much of it as fits; the model and the folder last longest."""
    used = live_context or figures.in_context
    share = f"{used / figures.window:.0%}" if used and figures.window else ""
    parts = [*([mode] if mode else []), figures.model or "no model", short_path(cwd)]
    extras = [f"context {share}"] if share else []
    if not share and used:
        extras.append(f"context {short_count(used)} tokens")
    if show_cost or figures.cost_usd:
        extras.append("cost unknown" if figures.cost_usd is None else f"${figures.cost_usd:.4f}")
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
