"""The ledger of grants: whatever borrowers, calls, cancels and crashes do, its parts are the grant."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from hermes.models.account import UNITS, Account
from hermes.spend import Cap, Spent

GRANT = Cap(usd=64.0, tokens=1000, seconds=512.0)
# Whole numbers of a power of two: sums of them are exact, so that "equals" can be asked.
AMOUNTS = st.builds(Spent, st.integers(0, 20).map(float), st.integers(0, 300), st.integers(0, 128).map(float))


class Ledger(RuleBasedStateMachine):
    """A tree of accounts. A call holds the most it may come to, then comes to as much or less, is cancelled or lost."""

    accounts = Bundle("accounts")
    calls = Bundle("calls")

    @initialize(target=accounts)
    def root(self) -> Account:
        self.top = Account(GRANT)
        self.all = [self.top]
        self.real = Spent()  # what providers really charged
        self.count = 0
        return self.top

    @rule(target=accounts, lender=accounts, amount=AMOUNTS)
    def lend(self, lender: Account, amount: Spent) -> object:
        self.count += 1
        made = lender.lend(f"child {self.count}", Cap(usd=amount.usd, tokens=amount.tokens, seconds=amount.seconds))
        if made is None:
            return multiple()
        self.all.append(made)
        return made

    @rule(target=calls, account=accounts, most=AMOUNTS)
    def call(self, account: Account, most: Spent) -> object:
        self.count += 1
        if not account.hold(f"call {self.count}", most):
            return multiple()
        return account, f"call {self.count}", most

    @rule(call=calls, share=st.sampled_from([0, 1, 2, 4]))
    def answer(self, call: tuple[Account, str, Spent], share: int) -> None:
        """An answer, an error that costs nothing, or a cancel; a retry or a late answer settles once more, in vain."""
        account, key, most = call
        came_to = Spent(most.usd * share / 4, most.tokens * share // 4, most.seconds * share / 4)
        if key in account._held:
            self.real = self.real + came_to
        account.settle(key, came_to)
        account.settle(key, most)

    @rule(account=accounts)
    def end(self, account: Account) -> None:
        """A child ends, or is cut off by a crash with calls under way: those count with all they may come to."""
        if account is self.top:
            return
        self.real = self.real + sum((held for one in _below(account, self.all) for held in _calls(one)), Spent())
        for one in reversed(_below(account, self.all)):
            one.close()

    @invariant()
    def parts_are_the_grant(self) -> None:
        for account in getattr(self, "all", []):
            for unit in UNITS:
                free, grant = getattr(account.free, unit), getattr(account.grant, unit)
                assert free >= 0 or account.is_closed
                assert getattr(account.spent, unit) + getattr(account.held, unit) + free == grant

    @invariant()
    def nothing_was_spent_that_was_not_granted(self) -> None:
        if hasattr(self, "top"):
            for unit in UNITS:
                assert getattr(self.real, unit) <= getattr(GRANT, unit)
                total = sum(getattr(one.spent, unit) for one in self.all if not one.is_closed)
                assert total == getattr(self.real, unit)


def _below(account: Account, accounts: list[Account]) -> list[Account]:
    found = [account]
    for one in accounts:
        if one.lender in found and one not in found and not one.is_closed:
            found.append(one)
    return found


def _calls(account: Account) -> list[Spent]:
    return [] if account.is_closed else [held for key, held in account._held.items() if key.startswith("call")]


TestLedger = Ledger.TestCase
TestLedger.settings = settings(
    max_examples=2000 if os.environ.get("HERMES_TEST_FULL") == "1" else 150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_a_borrower_draws_on_what_its_lender_has_left_and_gives_back_the_rest() -> None:
    lender = Account(Cap(tokens=100))
    one, two = lender.lend("one", Cap(tokens=40)), lender.lend("two", Cap(tokens=40))
    assert one is not None
    assert two is not None
    assert one.hold("call", Spent(tokens=60))  # 20 of them nobody had taken
    assert not two.hold("call", Spent(tokens=41))
    one.settle("call", Spent(tokens=10))
    assert one.close() == Spent(tokens=10)
    assert lender.free.tokens == 50
    assert two.hold("call", Spent(tokens=90))
    assert lender.free.tokens == 0


def test_where_nothing_limits_a_unit_it_is_only_counted() -> None:
    lender = Account(Cap(tokens=10))
    child = lender.lend("child", Cap(tokens=5))
    assert child is not None
    assert child.hold("call", Spent(1000.0, 5, 1000.0))
    child.settle("call", Spent(1000.0, 5, 1000.0))
    child.close()
    assert lender.spent == Spent(1000.0, 5, 1000.0)


@pytest.mark.parametrize("amount", [Cap(tokens=101), Cap(tokens=50, usd=2.0)])
def test_what_is_not_there_is_not_lent(amount: Cap) -> None:
    assert Account(Cap(tokens=100, usd=1.0)).lend("child", amount) is None


def test_a_loan_that_only_itself_limits_is_not_drawn_upon_for_ever() -> None:
    batch = Account(Cap()).lend("batch", Cap(tokens=10))
    assert batch is not None
    child = batch.lend("child", Cap(tokens=5))
    assert child is not None
    assert child.within_reach.tokens == 10
    assert not child.hold("call", Spent(tokens=11))
    assert child.hold("call", Spent(tokens=10))
