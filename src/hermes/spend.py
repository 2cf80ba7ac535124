"""What was spent on models, and the caps on it: in money, tokens and time."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from hermes.errors import BudgetExceeded

Span: TypeAlias = Literal["turn", "session", "day"]


class Spent(Struct, frozen=True):
    """A sum of attempts, or what one of them may come to."""

    usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.usd + other.usd, self.tokens + other.tokens, self.seconds + other.seconds)


NOTHING = Spent()


class Cap(Struct, frozen=True, kw_only=True):
    """The most that may be spent; None is no cap."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __bool__(self) -> bool:
        return self.usd is not None or self.tokens is not None or self.seconds is not None

    def reached(self, spent: Spent) -> str | None:
        """Which cap is reached, in words; None when there is room."""
        if self.usd is not None and spent.usd >= self.usd:
            return f"${spent.usd:.4f} of ${self.usd:g}"
        if self.tokens is not None and spent.tokens >= self.tokens:
            return f"{spent.tokens} of {self.tokens} tokens"
        if self.seconds is not None and spent.seconds >= self.seconds:
            return f"{spent.seconds:.0f} of {self.seconds:g} seconds"
        return None


UNITS = ("usd", "tokens", "seconds")


class Account(Struct, eq=False):
    """What somebody was granted, what of it is spent, and what is set aside for calls and borrowers under way.

    Nothing comes from nowhere and nothing is lost: in every unit that is limited, the grant is what is spent, held and
    free together. A borrower's grant is held by its lender until it is closed; then what it spent is the lender's
    spending, and the rest is free again. A hold that does not fit is refused whole, so no interleaving passes a grant.
    """

    grant: Cap
    name: str = ""
    lender: "Account | None" = None
    spent: Spent = NOTHING
    is_closed: bool = False
    _held: dict[str, Spent] = field(default_factory=dict)

    @property
    def held(self) -> Spent:
        return sum(self._held.values(), NOTHING)

    @property
    def free(self) -> Cap:
        """What is left, by unit; None where nothing limits it."""
        used = self.spent + self.held
        left = {unit: getattr(self.grant, unit) for unit in UNITS}
        return Cap(**{unit: None if of is None else of - getattr(used, unit) for unit, of in left.items()})

    @property
    def within_reach(self) -> Cap:
        """What a hold may come to: what is free here, and what the lenders could add."""
        free = self.free
        if self.lender is None:
            return free
        above = self.lender.within_reach
        added: dict[str, Any] = {unit: _added(getattr(free, unit), getattr(above, unit)) for unit in UNITS}
        return Cap(**added)

    def hold(self, key: str, amount: Spent) -> bool:
        """Set `amount` aside; what is missing is drawn from the lender. False, and nothing is, when it has none."""
        if self.is_closed or not self._drawn(amount):
            return False
        self._held[key] = self._held.get(key, NOTHING) + amount
        return True

    def hold_anyway(self, key: str, amount: Spent) -> None:
        """Set `amount` aside whether or not it fits: for who was let in before by another rule."""
        self._held[key] = amount

    def settle(self, key: str, came_to: Spent) -> None:
        """What was held is over and came to this; the rest is free. Once: a second time changes nothing."""
        if self._held.pop(key, None) is not None:
            self.spent = self.spent + came_to

    def lend(self, name: str, amount: Cap) -> "Account | None":
        """An account for `name`, with `amount` of what is free here; None when that is not there.

        In a unit without a number it may spend whatever its lender may.
        """
        wanted = Spent(*[getattr(amount, unit) or 0 for unit in UNITS])
        limited = {unit: getattr(amount, unit) for unit in UNITS if getattr(self.grant, unit) is not None}
        if name in self._held or not self.hold(name, wanted):
            return None
        grant = {unit: limited[unit] or 0 if unit in limited else getattr(amount, unit) for unit in UNITS}
        return Account(Cap(**grant), name, self)

    def close(self) -> Spent:
        """Give back what is unused, once; what it spent. Calls that are still held count with all they may come to."""
        if not self.is_closed:
            self.is_closed = True
            self.spent, self._held = self.spent + self.held, {}
            if self.lender is not None:
                self.lender.settle(self.name, self.spent)
        return self.spent

    def _drawn(self, amount: Spent) -> bool:
        """Whether `amount` is free here, after drawing what is missing."""
        free = self.free
        missing = {}
        for unit in UNITS:
            left = getattr(free, unit)
            missing[unit] = 0 if left is None else max(0, getattr(amount, unit) - left)
        if not any(missing.values()):
            return True
        if self.lender is None or not self.lender.hold(self.name, Spent(**missing)):
            return False
        more = {unit: getattr(self.grant, unit) for unit in UNITS}
        self.grant = Cap(**{unit: None if of is None else of + missing[unit] for unit, of in more.items()})
        return True


def _added(here: float | None, above: float | None) -> float | None:
    return None if here is None or above is None else here + max(0, above)


class SpendLimit(Struct, frozen=True, kw_only=True):
    """A cap, and over what it is summed: attempts since a time, of one session's family or of everybody."""

    span: Span
    cap: Cap
    since: float = 0.0
    session_id: str | None = None

    def require_room(self, spent: Spent, under_way: Spent) -> None:
        """Raise `BudgetExceeded` unless one more call may begin.

        Calls under way count with the most they can come to. So whatever runs side by side, all of it together
        passes the cap by no more than the one call that was let in last.
        """
        if (full := self.cap.reached(spent)) is not None:
            raise BudgetExceeded(
                f"the cap of this {self.span} is reached: {full} are spent. "
                f"Raise spending.{self.span}_* in config.yaml to go on (hermes usage shows what was spent)"
            )
        if (full := self.cap.reached(spent + under_way)) is not None:
            raise BudgetExceeded(
                f"other calls are under way that may reach the cap of this {self.span}: {full}", is_crowded=True
            )
