"""Answers of children that are too long for their parent: cut at their end, and kept whole in a file."""

from collections.abc import Sequence
from pathlib import Path

from hermes.config import paths
from hermes.config.sections.delegation import Section
from hermes.runtime.context import CallContext
from hermes.runtime.parts import Joining
from hermes.types import JsonObject

CHARS_PER_TOKEN = 3
LEAST_CHARS = 1_000


async def shortened(
    results: Sequence[JsonObject], section: Section, agent: Joining, call: CallContext
) -> list[JsonObject]:
    """`results`, each summary within its limit and its share of what the parent can still read."""
    if not section.max_summary_chars:
        return list(results)
    limit, window = section.max_summary_chars, agent.services.window()
    if window is not None:
        free = max(0, window - call.turn.outcome.last_prompt_tokens) * CHARS_PER_TOKEN
        limit = min(limit, max(LEAST_CHARS, free // (2 * max(1, len(results)))))
    return [await _fitting(one, limit, agent, call) for one in results]


async def _fitting(result: JsonObject, limit: int, agent: Joining, call: CallContext) -> JsonObject:
    summary = str(result["summary"])
    if len(summary) <= limit:
        return result
    file = paths.results_dir(agent.settings.home, call.session_id) / f"{result['subagent_id']}.md"
    await agent.services.pool.run(_write, file, summary)
    marker = f"\n[... {len(summary) - limit} more characters are in {file} ...]"
    return {**result, "summary": summary[:limit] + marker, "summary_truncated": True, "summary_full_path": str(file)}


def _write(file: Path, text: str) -> None:
    paths.made(file.parent)
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
