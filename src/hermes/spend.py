"""What was spent on models, and the caps on it: in money, tokens and time."""

from typing import Literal, TypeAlias

from msgspec import Struct

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
