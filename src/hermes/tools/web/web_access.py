"""A call's way to the web: the user's rules for addresses, and the session's gate before each hop."""

from hermes.seams import Action, ToolContext
from hermes.tools.web.addresses import AddressRules, FetchTarget, Refused
from hermes.tools.web.fetch_page import PAGES_FIRST, Fetcher, FetchLimits


def gated_fetcher(ctx: ToolContext, tool: str, limits: FetchLimits, accept: str = PAGES_FIRST) -> Fetcher:
    """What `tool` fetches with in this call; `accept` says what it would like to get."""

    async def allow(target: FetchTarget) -> None:
        action = Action(
            kind="network",
            tool=tool,
            text=target.url,
            cwd=ctx.environment.cwd,
            backend=ctx.environment.kind,
            route=ctx.route,
            session_id=ctx.session_id,
            task_id=ctx.task_id,
            details={"method": "GET", "host": target.host, "private": target.is_private},
        )
        decision = await ctx.gate.decide(action, ctx.scope)
        if not decision.allowed:
            raise Refused(decision.reason or "fetching this was not allowed", by_policy=True)

    rules = AddressRules.of(ctx.settings)
    return Fetcher(rules=rules, limits=limits, in_thread=ctx.in_thread, allow=allow, accept=accept)


def is_ordinary(action: Action) -> bool:
    """Whether a network action only reads: a GET, or a search through the service that the settings chose.

    Private addresses never get as far as a gate unless the user's settings name them.
    """
    return action.kind == "network" and action.details.get("method") in ("GET", "SEARCH")
