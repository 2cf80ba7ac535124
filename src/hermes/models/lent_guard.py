"""The guard of an agent that works on borrowed budget: no call begins that could pass what it was lent."""

from collections.abc import Callable

from msgspec.structs import replace

from hermes.errors import BudgetExceeded
from hermes.models.account import Account
from hermes.models.attempts import Caps, Price, SpendGuard
from hermes.models.request_size import size_of
from hermes.seams import Model, ModelRequest
from hermes.spend import Spent
from hermes.types import Usage

LEAST_S = 1.0  # that a call is given under a limit in seconds
LEAST_OUTPUT = 256  # tokens; a call that could not write as many is not begun
SHARE_USED = "the share of the budget that this task was lent is used up"
_MILLION = 1_000_000


class LentGuard(SpendGuard):
    """Holds an agent to an account, strictly; its lender's caps of session and day hold as well, in the store."""

    def __init__(self, caps: Caps, account: Account) -> None:
        super().__init__(Caps(session=caps.session, day=caps.day))
        self.account = account
        self.has_money_cap = self.has_money_cap or account.grant.usd is not None
        self.has_caps = self.has_caps or bool(account.grant)

    def new_turn(self) -> None:
        """What it was lent is for all its turns."""

    def enter(self, attempt_id: str, most: Spent) -> None:
        seconds = self.account.free.seconds
        most = replace(most, seconds=0.0 if seconds is None else max(LEAST_S, seconds))
        if not self.account.hold(attempt_id, most):
            raise BudgetExceeded(f"{SHARE_USED} ({self._words()}). What is done so far stays")

    def leave(self, attempt_id: str, spent: Spent) -> None:
        self.account.settle(attempt_id, spent)
        self.turn = self.account.spent

    def seconds_for(self, limit_s: float | None) -> float | None:
        granted = self.account.grant.seconds
        if granted is None:
            return limit_s
        left = max(LEAST_S, granted - self.account.spent.seconds)
        return left if limit_s is None else min(limit_s, left)

    def most_output(self, model: Model, request: ModelRequest, price: Price) -> int | None:
        """So much that the call fits into what was lent, and what the lenders could add."""
        reach, read = self.account.within_reach, size_of(request).most_tokens
        fits = [] if reach.tokens is None else [int(reach.tokens) - read]

        def costs(usage: Usage) -> float:
            return price(model.provider, model.name, usage)[0] or 0.0

        each = (costs(Usage(0, _MILLION)) - costs(Usage(0, 0))) / _MILLION
        if reach.usd is not None and each > 0:
            most_read = max(costs(Usage(read, 0)), costs(Usage(0, 0, cache_write_tokens=read)))
            fits.append(int((reach.usd - most_read) / each))
        return max(LEAST_OUTPUT, min(fits)) if fits else None

    def _words(self) -> str:
        grant, spent = self.account.grant, self.account.spent
        told = [f"{spent.tokens} of {grant.tokens} tokens"] if grant.tokens is not None else []
        told += [f"${spent.usd:.4f} of ${grant.usd:.4f}"] if grant.usd is not None else []
        told += [f"{spent.seconds:.0f} of {grant.seconds:.0f} s"] if grant.seconds is not None else []
        return ", ".join(told)


class TurnAccount(Account):
    """What an agent's turn may spend, as an account that lends: its guard and it know the same calls and spending."""

    guard: SpendGuard | None = None

    def hold(self, key: str, amount: Spent) -> bool:
        self.take_in()
        return super().hold(key, amount)

    def settle(self, key: str, came_to: Spent) -> None:
        self.take_in()
        super().settle(key, came_to)
        assert self.guard is not None
        self.guard.turn = self.spent

    def take_in(self) -> None:
        """Learn what the turn itself has spent meanwhile."""
        assert self.guard is not None
        self.spent = self.guard.turn


def account_of(guard: SpendGuard) -> Account:
    """The account that loans of this agent are taken from."""
    if isinstance(guard, LentGuard):
        return guard.account
    made = TurnAccount(guard.caps.turn, _held=guard.under_way, guard=guard)
    made.take_in()
    return made


def has_cheap_prefixes(model: Model, price: Callable[[str, str, Usage], tuple[float | None, str]]) -> bool:
    """Whether a token that was read before costs less than one that was not: the provider keeps a cache."""
    again, _ = price(model.provider, model.name, Usage(cache_read_tokens=_MILLION))
    first, _ = price(model.provider, model.name, Usage(input_tokens=_MILLION))
    return again is not None and first is not None and again < first
