"""The joined encoding of a growing history equals encoding all of it anew."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.seams import ModelRequest, Unit, UnitLog
from hermes.types import Message, text_of


def encode(unit: Unit) -> bytes:
    return b"|".join(text_of(message.content).encode() + unit.context.encode() for message in unit.messages)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.integers(1, 4))
def test_pieces_joined_are_all_units_encoded(growth: list[int], apart: int) -> None:
    memo: dict[str, tuple[int, object]] = {}
    units: list[Unit] = []
    for size in growth:
        units += [Unit([Message(role="user", content=f"m{len(units) + n}")]) for n in range(size)]
        request = ModelRequest(system="", tools=(), units=UnitLog(units, memo))
        pieces = request.pieces("k", encode, apart)
        assert b",".join(pieces) == b",".join(encode(unit) for unit in units)
        assert pieces[-apart:] == [encode(unit) for unit in units[-apart:]]
        units[-1] = Unit(units[-1].messages, units[-1].context + " late context")


def test_a_long_history_is_a_few_pieces() -> None:
    memo: dict[str, tuple[int, object]] = {}
    units: list[Unit] = []
    for number in range(500):
        units.append(Unit([Message(role="user", content=f"m{number}")]))
        pieces = ModelRequest(system="", tools=(), units=UnitLog(units, memo)).pieces("k", encode)
        assert b",".join(pieces) == b",".join(encode(unit) for unit in units)
        assert len(pieces) <= 65


def test_a_log_stays_as_long_as_it_was() -> None:
    units = [Unit([Message(role="user", content=f"a{n}")]) for n in range(4)]
    log = UnitLog(units, {})
    units.append(Unit([Message(role="user", content="later")]))
    assert len(log) == 4
    assert list(log) == units[:4]
    assert (log[-1], log[1:3], log[5:]) == (units[3], (units[1], units[2]), ())


def test_an_older_log_of_the_same_history_can_be_sent_again() -> None:
    memo: dict[str, tuple[int, object]] = {}
    units = [Unit([Message(role="user", content=f"a{n}")]) for n in range(4)]
    older = ModelRequest(system="", tools=(), units=UnitLog(units, memo))
    units += [Unit([Message(role="user", content=f"b{n}")]) for n in range(4)]
    ModelRequest(system="", tools=(), units=UnitLog(units, memo)).pieces("k", encode)
    assert b",".join(older.pieces("k", encode)) == b"a0,a1,a2,a3"
