"""todo: the task list that a model keeps for itself during a session."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from hermes.errors import ToolError
from hermes.seams import Effects, ToolContext
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.registry import registry, tool_result
from hermes.tools.results.tool_result import as_object
from hermes.tools.traits import Traits
from hermes.types import Message

Status = Literal["pending", "in_progress", "completed", "cancelled"]
_STATUSES = get_args(Status)
MEMO = "todo"
TASKS_WRITTEN = "tasks"  # the detail of a call that wrote the list
MAX_ITEMS = 256
MAX_CHARS = 4_000  # of one item
_NO_CONTENT = "(no description)"


class Item(Struct, frozen=True):
    """One task. In merge mode only the id is needed; other fields keep their value when left out."""

    id: Annotated[str, Meta(description="Short and stable, unique in the list.")]
    content: Annotated[str | UnsetType, Meta(description="What is to be done.")] = UNSET
    status: Annotated[str | UnsetType, Meta(description="How far it is.")] = UNSET


class Todo(Struct, frozen=True, forbid_unknown_fields=True):
    """Keep a task list for work of three steps or more. Call it without `todos` to read the list.

    Write the list when you begin, keep exactly one item in_progress, and mark an item completed as soon as it is done.
    """

    todos: Annotated[list[Item] | UnsetType, Meta(description="The items to write. Leave out to read the list.")] = (
        UNSET
    )
    merge: Annotated[bool, Meta(description="True updates items by id and adds new ones; false replaces the list.")] = (
        False
    )


async def todo(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    wanted = parse_args(args, Todo)
    items: list[dict[str, str]] = list(ctx.memo.get(MEMO, ()))
    if not isinstance(wanted.todos, UnsetType):
        items = _merged(items, wanted.todos) if wanted.merge else _replaced(wanted.todos)
        if len(items) > MAX_ITEMS:
            raise ToolError(f"a task list has at most {MAX_ITEMS} items, not {len(items)}; write fewer, larger ones")
        ctx.memo[MEMO] = items
        await ctx.note(TASKS_WRITTEN, items)
    return tool_result(todos=items, summary=_summary(items))


def items_in(message: Message) -> list[dict[str, str]] | None:
    """The list in a result of the tool; None when there is none."""
    body = as_object(message.content) if message.content is not None else None
    items = body.get("todos") if body else None
    return [_clean(item) for item in items if isinstance(item, dict)] if isinstance(items, list) else None


def open_items(items: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """What is still to be done: all that a compression carries over."""
    return [item for item in items if item["status"] in ("pending", "in_progress")]


def _replaced(items: Sequence[Item]) -> list[dict[str, str]]:
    latest: dict[str, dict[str, str]] = {}
    for one in (_clean(_given(item)) for item in items):
        latest.pop(one["id"], None)  # the last one of an id counts, where it stands
        latest[one["id"]] = one
    return list(latest.values())


def _merged(old: Sequence[Mapping[str, str]], items: Sequence[Item]) -> list[dict[str, str]]:
    merged = {item["id"]: dict(item) for item in old}
    for item in items:
        given = _given(item)
        known = merged.get(given["id"].strip())
        merged[given["id"].strip() or "?"] = _clean({**known, **given}) if known else _clean(given)
    return list(merged.values())


def _given(item: Item) -> dict[str, str]:
    fields = {"id": item.id, "content": item.content, "status": item.status}
    return {key: value for key, value in fields.items() if not isinstance(value, UnsetType)}


def _clean(item: Mapping[str, Any]) -> dict[str, str]:
    status = str(item.get("status", "")).strip().lower()
    return {
        "id": str(item.get("id", "")).strip() or "?",
        "content": str(item.get("content", "")).strip()[:MAX_CHARS] or _NO_CONTENT,
        "status": status if status in _STATUSES else "pending",
    }


def _summary(items: Sequence[Mapping[str, str]]) -> dict[str, int]:
    counts = dict.fromkeys(_STATUSES, 0)
    for item in items:
        counts[item["status"]] += 1
    return {"total": len(items), **counts}


def _effects(args: Mapping[str, Any], _ctx: ToolContext) -> Effects:
    mine = frozenset({"todo:"})
    return Effects(writes=mine) if args.get("todos") is not None else Effects(reads=mine)


def _schema() -> dict[str, Any]:
    # A status that is none of these is still taken, as pending, where a caller is not held to the schema.
    schema = schema_of("todo", Todo)
    schema["parameters"]["properties"]["todos"]["items"]["properties"]["status"]["enum"] = list(_STATUSES)
    return schema


registry.register(
    name="todo",
    toolset="todo",
    schema=_schema(),
    handler=todo,
    is_async=True,
    emoji="📋",
    traits=Traits(effects=_effects, agent_loop=True),
)
