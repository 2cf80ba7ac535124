"""A session and what came of it: the children that it delegated to, and where it went on."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hermes.state.queries import SessionFilter
from hermes.types import JsonObject

if TYPE_CHECKING:
    from hermes.state import SessionDB

MOST = 10_000  # sessions of one tree; a damaged file may lead in circles
_COLUMNS = (
    "id",
    "source",
    "model",
    "title",
    "started_at",
    "ended_at",
    "end_reason",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "estimated_cost_usd",
    "api_call_count",
    "tool_call_count",
)


def session_tree(db: "SessionDB", session_id: str) -> JsonObject:
    """The session with its `children`, oldest first, and so on below."""
    queries, seen = db.queries, {session_id}
    (root,) = queries.sessions(SessionFilter(ids=[session_id]), _COLUMNS)
    tree = _node(root)
    level = [tree]
    while level and len(seen) < MOST:
        below: list[JsonObject] = []
        for node in level:
            where = SessionFilter(equal={"parent_session_id": node["id"]}, order="oldest")
            rows = [row for row in queries.sessions(where, _COLUMNS) if row["id"] not in seen]
            seen |= {str(row["id"]) for row in rows}
            node["children"] = [_node(row) for row in rows]
            below += node["children"]
        level = below
    nodes = list(_all(tree))
    goals = queries.glances([str(node["id"]) for node in nodes])
    for node in nodes:
        glance = goals.get(str(node["id"]))
        node["goal"] = glance.first_words if glance is not None else ""
        node["state"] = node["state"] or ("running" if queries.lease(str(node["id"])) is not None else "open")
    return tree


def tree_lines(tree: JsonObject, depth: int = 0) -> Iterator[str]:
    """The tree for a person, a session a line."""
    name = tree["title"] or " ".join(str(tree["goal"]).split())[:60] or "(nothing was said)"
    took = f", {tree['seconds']:.0f} s" if tree["seconds"] is not None else ""
    cost = f", ${tree['cost_usd']:.4f}" if tree["cost_usd"] else ""
    calls = "1 call" if tree["tool_calls"] == 1 else f"{tree['tool_calls']} calls"
    facts = f"{tree['source']}, {tree['state']}, {calls}, {tree['tokens']} tokens{cost}{took}"
    yield f"{'  ' * depth}{tree['id']}  {name}  ({facts})"
    for child in tree["children"]:
        yield from tree_lines(child, depth + 1)


def _node(row: dict[str, Any]) -> JsonObject:
    tokens = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    ended = row["ended_at"]
    return {
        "id": row["id"],
        "source": row["source"],
        "title": row["title"],
        "state": row["end_reason"] or ("ended" if ended else ""),
        "model": row["model"],
        "tokens": sum(int(row[name] or 0) for name in tokens),
        "cost_usd": row["estimated_cost_usd"],
        "model_calls": row["api_call_count"],
        "tool_calls": row["tool_call_count"],
        "seconds": round(ended - row["started_at"], 1) if ended else None,
        "children": [],
    }


def _all(tree: JsonObject) -> Iterator[JsonObject]:
    yield tree
    for child in tree["children"]:
        yield from _all(child)
