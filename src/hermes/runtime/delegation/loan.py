"""What a call lends its children: a part of what its agent may still spend, shared out, and given back unused."""

from typing import Any

from msgspec import Struct

from hermes.errors import ToolError
from hermes.models.account import UNITS, Account
from hermes.models.attempts import midnight
from hermes.models.lent_guard import account_of
from hermes.runtime.parts import Joining
from hermes.spend import Cap, Spent
from hermes.state.queries import TOKENS, SessionFilter, SessionQueries

NOTHING_LEFT = (
    "nothing is left to lend a child: {unit} of the budget are used up (spending.* in config.yaml); "
    "finish with what you have"
)


class Loan(Struct):
    """The account of one call. Each child has a share of it, and may draw on what nobody has taken yet."""

    account: Account | None  # None where nothing is limited
    count: int

    @classmethod
    async def taken(cls, agent: Joining, session_id: str, call_id: str, count: int) -> "Loan":
        """Set aside what `count` children get: all that is free but one share, which stays for the parent.

        `ToolError` when nothing is left.
        """
        guard = agent.client.guard
        if not guard.has_caps:
            return cls(None, count)
        lender = account_of(guard)
        free = lender.within_reach
        left = await agent.services.pool.run(_left_in_store, agent, session_id)
        amounts: dict[str, Any] = {}
        for unit in UNITS:
            limits = [limit for limit in (getattr(free, unit), getattr(left, unit)) if limit is not None]
            if not limits:
                continue
            if min(limits) <= 0:
                raise ToolError(NOTHING_LEFT.format(unit="all " + unit))
            amounts[unit] = min(limits) * count / (count + 1)
        if "tokens" in amounts:
            amounts["tokens"] = int(amounts["tokens"])
        account = lender.lend(call_id, Cap(**amounts))
        if account is None:
            raise ToolError(NOTHING_LEFT.format(unit="parts"))
        return cls(account, count)

    def share(self, index: int) -> Account | None:
        """The account of one child."""
        if self.account is None:
            return None
        grant = self.account.grant
        shares: dict[str, Any] = {
            unit: getattr(grant, unit) / self.count for unit in UNITS if getattr(grant, unit) is not None
        }
        if "tokens" in shares:
            shares["tokens"] = int(shares["tokens"])
        return self.account.lend(f"{self.account.name}/{index}", Cap(**shares))

    def close(self) -> None:
        """Give back what is unused."""
        if self.account is not None:
            self.account.close()


def _left_in_store(agent: Joining, session_id: str) -> Cap:
    """What the caps of session and day leave, by what is stored; the store itself holds each call to them as well."""
    caps, queries = agent.client.guard.caps, getattr(agent.services.store, "queries", None)
    if queries is None:
        return Cap()
    left: list[Cap] = []
    if caps.session:
        family = _family(queries, session_id)
        rows = [row for row in queries.usage("session", 0.0) if row["session_id"] in family]
        left.append(_left(caps.session, rows))
    if caps.day:
        left.append(_left(caps.day, queries.usage("day", midnight(agent.services.clock.now()))))
    least: dict[str, Any] = {}
    for unit in UNITS:
        known = [value for cap in left if (value := getattr(cap, unit)) is not None]
        least[unit] = min(known) if known else None
    return Cap(**least)


def _left(cap: Cap, rows: list[dict[str, Any]]) -> Cap:
    tokens = sum(int(row[name] or 0) for row in rows for name in TOKENS if name != "reasoning_tokens")
    usd = sum(float(row["cost_usd"] or 0.0) for row in rows)
    return Account(cap, spent=Spent(usd, tokens, sum(float(row["seconds"] or 0.0) for row in rows))).free


def _family(queries: SessionQueries, session_id: str) -> set[str]:
    """The session, those it comes from, and everything below them."""
    seen, new = set[str](), set(queries.lineage(session_id).ancestors[:1]) or {session_id}
    while new:
        seen |= new
        rows = [
            row for one in new for row in queries.sessions(SessionFilter(equal={"parent_session_id": one}), ("id",))
        ]
        new = {str(row["id"]) for row in rows} - seen
    return seen
