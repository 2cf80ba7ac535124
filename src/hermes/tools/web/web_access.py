"""A call's way to the web: the user's rules for addresses, and the session's gate before each hop."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from hermes.config.host_entry import plain_name
from hermes.confinement.policy import TellsNetwork
from hermes.seams import Action, ToolContext
from hermes.tools.network.ask_host import NETWORK_TOOL
from hermes.tools.network.host_rules import read_rules
from hermes.tools.web.addresses import AddressRules, FetchTarget, Refused
from hermes.tools.web.fetch_page import PAGES_FIRST, Fetcher, FetchLimits

_FOUND = "hosts that a search found"


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

    async def ask_host(url: str, host: str, port: int) -> None:
        await _asked_about((url, host, port), ctx, tool)

    rules = AddressRules.of(ctx.settings)
    return Fetcher(rules=rules, limits=limits, in_thread=ctx.in_thread, allow=allow, accept=accept, ask_host=ask_host)


def remember_hosts(ctx: ToolContext, urls: Iterable[str]) -> None:
    """These hosts were named by a search result: who reads them is not asked about them."""
    known = ctx.memo.setdefault(_FOUND, set())
    known.update(host for url in urls if (host := urlsplit(url).hostname))


async def _asked_about(place: tuple[str, str, int], ctx: ToolContext, tool: str) -> None:
    """Where commands ask for hosts, so do we, for one that neither the person nor a search result named."""
    environment = ctx.environment
    if not isinstance(environment, TellsNetwork) or await environment.reach() != "ask":
        return
    url, host, port = place[0], plain_name(place[1]), place[2]
    terminal = ctx.settings.get("terminal") or {}
    if any(rule.covers(host, port) for rule in read_rules(terminal.get("network_hosts") or ())):
        return
    if host in ctx.memo.get(_FOUND, ()) or _is_named(host, ctx.user_task or ""):
        return
    asked = Action(
        kind="network",
        tool=NETWORK_TOOL,
        text=f"{host}:{port}",
        cwd=environment.cwd,
        backend=environment.kind,
        route=ctx.route,
        session_id=ctx.session_id,
        task_id=ctx.task_id,
        details={"reach": "host", "host": host, "why": f"{tool} wants to read {url}"},
    )
    decision = await ctx.gate.decide(asked, ctx.scope)
    if not decision.allowed:
        raise Refused(decision.reason or "reaching this host was not allowed", by_policy=True)


def _is_named(host: str, text: str) -> bool:
    """Whether the person wrote this very host, not as a part of another one."""
    return re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)", text, re.IGNORECASE) is not None


def is_ordinary(action: Action) -> bool:
    """Whether a network action only reads: a GET, or a search through the service that the settings chose.

    Private addresses never get as far as a gate unless the user's settings name them.
    """
    return action.kind == "network" and action.details.get("method") in ("GET", "SEARCH")
