"""session_search: what was said in earlier conversations."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from hermes.errors import ToolError
from hermes.seams import ToolContext
from hermes.state.recall import Recall, RecallError, RecallRequest, RemembersSessions
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import Traits, touches_nothing

MAX_LIMIT, MAX_WINDOW = 10, 20
_ROLES = ("user", "assistant", "tool", "system")


class SessionSearch(Struct, frozen=True, forbid_unknown_fields=True):
    """Look into earlier conversations with the user. With `query`: find them by words. Without arguments: the newest.
    With `session_id`: how one began and ended. With `session_id` and `around_message_id`: read there."""

    query: Annotated[str, Meta(description='Words that must all be there; OR, NOT, "a phrase" and prefix* work.')] = ""
    session_id: Annotated[str, Meta(description="From an earlier result.")] = ""
    around_message_id: Annotated[int, Meta(description="Message to read around, from an earlier result.")] = 0
    window: Annotated[int, Meta(description="Messages on each side of it, 1 to 20.")] = 5
    limit: Annotated[int, Meta(description="How many conversations, 1 to 10.")] = 3
    sort: Annotated[Literal["", "newest", "oldest"], Meta(description="By age instead of the best first.")] = ""
    role_filter: Annotated[str, Meta(description="Whose words, by commas: user, assistant (both is usual), tool.")] = ""


async def session_search(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    wanted = parse_args(args, SessionSearch)
    recall = ctx.recall() if isinstance(ctx, RemembersSessions) else None
    if recall is None:
        raise ToolError("there are no earlier conversations to look into here")
    try:
        return tool_result(await ctx.in_thread(_answer, recall, wanted))
    except RecallError as error:
        return tool_result(success=False, error=str(error))


def _answer(recall: Recall, wanted: SessionSearch) -> dict[str, Any]:
    limit, window = _within(wanted.limit, MAX_LIMIT), _within(wanted.window, MAX_WINDOW)
    session_id, query = wanted.session_id.strip(), wanted.query.strip()
    if session_id and wanted.around_message_id:
        return recall.scroll(session_id, wanted.around_message_id, window)
    if session_id:
        return recall.read(session_id)
    if not query:
        return recall.browse(limit)
    roles = [role for one in wanted.role_filter.split(",") if (role := one.strip().lower()) in _ROLES]
    more: dict[str, Any] = {"roles": roles} if roles else {}
    return recall.discover(RecallRequest(query=query, sort=wanted.sort or "best", limit=limit, window=window, **more))


def _within(number: int, most: int) -> int:
    return max(1, min(number, most))


registry.register(
    name="session_search",
    toolset="session_search",
    schema=schema_of("session_search", SessionSearch),
    handler=session_search,
    is_async=True,
    emoji="🔎",
    traits=Traits(
        effects=touches_nothing,
        agent_loop=True,
        guidance="When the user refers to something from an earlier conversation, look for it with session_search "
        "before you ask.",
    ),
)
