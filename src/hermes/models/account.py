"""The ledger of grants: who was lent what, what of it is spent and held; nothing is made or lost on the way."""

from typing import Any

from msgspec import Struct, field

from hermes.spend import NOTHING, Cap, Spent

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
        # Where the lender itself has no limit, the loan is one: it is not drawn upon for ever.
        is_fixed = self.lender is None or any(missing[u] and getattr(self.lender.grant, u) is None for u in UNITS)
        if self.lender is None or is_fixed or not self.lender.hold(self.name, Spent(**missing)):
            return False
        more = {unit: getattr(self.grant, unit) for unit in UNITS}
        self.grant = Cap(**{unit: None if of is None else of + missing[unit] for unit, of in more.items()})
        return True


def _added(here: float | None, above: float | None) -> float | None:
    return here if here is None or above is None else here + max(0, above)
