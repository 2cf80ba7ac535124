"""The joined encoding of a growing history equals encoding all of it anew."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.seams import ModelRequest, Unit
from hermes.types import Message, text_of


def encode(unit: Unit) -> bytes:
    return b"|".join(text_of(message.content).encode() + unit.context.encode() for message in unit.messages)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.integers(1, 4))
def test_pieces_joined_are_all_units_encoded(growth: list[int], apart: int) -> None:
    memo: dict[str, object] = {}
    units: list[Unit] = []
    for size in growth:
        units += [Unit([Message(role="user", content=f"m{len(units) + n}")]) for n in range(size)]
        request = ModelRequest(system="", tools=(), units=tuple(units), memo=memo)
        pieces = request.pieces("k", encode, apart)
        assert b",".join(pieces) == b",".join(encode(unit) for unit in units)
        assert pieces[-apart:] == [encode(unit) for unit in units[-apart:]]
        units[-1] = Unit(units[-1].messages, units[-1].context + " late context")


def test_a_long_history_is_a_few_pieces() -> None:
    memo: dict[str, object] = {}
    units: list[Unit] = []
    for number in range(500):
        units.append(Unit([Message(role="user", content=f"m{number}")]))
        pieces = ModelRequest(system="", tools=(), units=tuple(units), memo=memo).pieces("k", encode)
        assert b",".join(pieces) == b",".join(encode(unit) for unit in units)
        assert len(pieces) <= 65


def test_another_history_in_the_same_memo_starts_anew() -> None:
    memo: dict[str, object] = {}
    one = tuple(Unit([Message(role="user", content=f"a{n}")]) for n in range(4))
    two = tuple(Unit([Message(role="user", content=f"b{n}")]) for n in range(4))
    ModelRequest(system="", tools=(), units=one, memo=memo).pieces("k", encode)
    assert b",".join(ModelRequest(system="", tools=(), units=two, memo=memo).pieces("k", encode)) == b"b0,b1,b2,b3"
