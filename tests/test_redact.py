"""Secrets are hidden in every coat, files survive a read and a write, and source code is left alone."""

import base64
import itertools
import json
import random
import re
import string
import sys
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.redact import _SHAPES, MARKER, Redactor, StreamedText, UnknownMarker

_SECRET = 'pA9"x/y+z=\\k&7Qw3Zt'
_PLAIN = [
    "sk-abcdefghijklmnopqrstuvwxyz0123456789",
    "sk-ant-" + "a1B2c3D4" * 5,
    "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB",
    "AKIAIOSFODNN7ABCDEFG",
    "xoxb-1234567890-abcdefghij",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "glpat-abcdefghijklmnopqrst",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.abcdefghijklmnop",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\ndef\n-----END OPENSSH PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", _PLAIN)
def test_known_shapes_are_hidden_and_come_back(secret: str) -> None:
    redactor = Redactor()
    text = f"before {secret} after"
    hidden = redactor.redact(text)
    assert secret not in hidden
    assert MARKER.search(hidden)
    assert redactor.restore(hidden) == text


@pytest.mark.parametrize(
    "text",
    [
        _SECRET,
        json.dumps({"k": _SECRET}),
        json.dumps(json.dumps({"k": _SECRET})),
        quote(_SECRET),
        quote(_SECRET, safe=""),
        _SECRET[:7] + "\n" + _SECRET[7:],
        _SECRET[:7] + "\\\n    " + _SECRET[7:],
        _SECRET[:4] + "\x00" + _SECRET[4:],
    ],
)
def test_a_registered_value_is_hidden_in_every_form(text: str) -> None:
    redactor = Redactor([_SECRET])
    hidden = redactor.redact(f"a {text} b")
    assert "7Qw3Zt" not in hidden.replace("\n", "")
    assert redactor.restore(hidden) == f"a {text} b"


def test_a_value_printed_one_character_a_line_is_hidden() -> None:
    redactor = Redactor(["Zt7Qw3pA9xK2"])
    hidden = redactor.redact("\n".join("Zt7Qw3pA9xK2"))
    assert MARKER.fullmatch(hidden)


def parted(text: str, before: str, between: str) -> str:
    return between.join(f"{before}{byte:02x}" for byte in text.encode())


@pytest.mark.parametrize("secret", [_SECRET, "Zt7Qw3", 'pä"ss wörd/+1', "aaaaaaaa", "0" * 40, "k" * 200])
@pytest.mark.parametrize("lead", ["", "a", "ab", "abc", "abcd"])
def test_a_registered_value_is_hidden_in_other_alphabets(secret: str, lead: str) -> None:
    redactor = Redactor([secret])
    raw = f"{lead}{secret} tail".encode()
    of_it = [
        base64.b32encode,
        *([base64.b64encode, base64.urlsafe_b64encode, base64.encodebytes] if len(secret) > 6 else []),
    ]
    texts = [encode(raw).decode() for encode in of_it]
    texts += [
        raw.hex(),
        raw.hex().upper(),
        "f" + raw.hex(),
        raw.hex(":"),
        raw.hex(" "),
        raw.hex(" ", 2),
        raw.hex(" ", -8),
    ]
    texts += [parted(secret, "0x", ", "), parted(secret, "%", ""), parted(secret, "\\x", ""), parted(secret, "", "-")]
    texts += ["\n".join(raw.hex()[at : at + 30] for at in range(0, 2 * len(raw), 30))]  # as `xxd -p` folds it
    for text in texts:
        hidden = redactor.redact(f"a {text} b")
        assert MARKER.search(hidden), text
        assert redactor.restore(hidden) == f"a {text} b"
        kept = re.sub(r"[^0-9a-z]|0x", "", MARKER.sub("", hidden).lower())
        assert secret.encode().hex()[:12] not in kept


@pytest.mark.parametrize("secret", [_SECRET, "pA9xK2vB7mQ4"])
def test_nothing_of_a_value_is_left_beside_the_marker(secret: str) -> None:
    """The digits at its ends hold some bits of it."""
    redactor = Redactor([secret])
    for before, after in itertools.product(range(6), repeat=2):
        raw = b"~" * before + secret.encode() + b"~" * after
        for encode, bits in ((base64.b32encode, 5), (base64.b64encode, 6)):
            hidden = redactor.redact(encode(raw).decode().rstrip("="))
            left, _, right = hidden.partition("⟦")
            assert len(left) * bits <= before * 8
            assert len(right.partition("⟧")[2]) * bits < (after * 8) + bits


def test_hashes_and_pictures_without_a_known_value_stay() -> None:
    redactor = Redactor([_SECRET, "Zt7Qw3pA9xK2"])
    rng = random.Random(7)
    for text in (rng.randbytes(3000).hex(), base64.b64encode(rng.randbytes(3000)).decode(), "DEADBEEF" * 40):
        assert redactor.redact(text) is text


@pytest.mark.parametrize(
    "text",
    [
        "OPENAI_API_KEY=a8Fk29dkP0qLm3",
        'password: "hunter2hunter2"',
        "Authorization: Bearer abcdef0123456789ABCDEF",
        "postgres://me:s3cretpw@db/app",
    ],
)
def test_values_beside_telling_names_are_hidden(text: str) -> None:
    redactor = Redactor()
    hidden = redactor.redact(text)
    assert MARKER.search(hidden)
    assert redactor.restore(hidden) == text


@pytest.mark.parametrize(
    "source",
    [
        "api_key=api_key",
        "client = Client(api_key=settings.api_key, token=token)",
        "self.password = password",
        "token = get_token()",
        "password: str = Field(default='')",
        "const secret = process.env.SECRET",
        "API_KEY=${API_KEY}",
        "api_key = 'your-api-key-here'",
        "password: Optional[str] = None",
        "def login(user, password: str) -> Token:",
        "if token == self.expected_token:",
        "primary_key=True, foreign_key=user_id",
        "secret: kubernetes.io/service-account",
    ],
)
def test_source_code_is_never_altered(source: str) -> None:
    assert Redactor().redact(source) == source


def test_redacting_twice_changes_nothing_more() -> None:
    redactor = Redactor([_SECRET])
    once = redactor.redact(f"token = {_SECRET}; password=hunter2hunter2")
    assert redactor.redact(once) == once


def test_a_foreign_marker_is_refused_on_write() -> None:
    with pytest.raises(UnknownMarker):
        Redactor().restore("key = ⟦secret#0123456789ab⟧")


def test_short_and_common_words_are_not_hidden() -> None:
    redactor = Redactor()
    assert not redactor.register("abc")
    assert not redactor.register("password")
    assert redactor.redact("abc password") == "abc password"


_TEXT = st.text(alphabet=string.printable + "é⟦", max_size=200)


@settings(max_examples=200, deadline=None)
@given(_TEXT, st.text(alphabet=string.ascii_letters + string.digits + '/+="\\ &\n', min_size=8, max_size=40), _TEXT)
def test_reading_and_writing_back_keeps_every_byte(before: str, secret: str, after: str) -> None:
    redactor = Redactor([secret])
    text = before + secret + after
    assert redactor.restore(redactor.redact(text)) == text


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(_SHAPES).flatmap(lambda shape: st.from_regex(rf"\A{shape[1]}\Z".replace(r"(?<=\d{8})", ""))))
def test_no_shape_is_overlooked_for_want_of_a_sign(value: str) -> None:
    hidden = Redactor().redact(f"1234567890{value} is it" if value.startswith(":AA") else f"{value} is it")
    assert MARKER.search(hidden)


def test_a_long_text_is_looked_through_once() -> None:
    """It passes several sinks, and is not kept for that."""
    redactor, text = Redactor(["pA9-x-y-z-k-7Qw3Zt"]), "the quick brown fox_jumps-over.it: all\n" * 100_000
    first, second = (_seconds(lambda: redactor.redact(text)) for _ in range(2))
    assert second < first / 2, f"{first:.3f} s and then {second:.3f} s of processor time"
    redactor.register("fox_jumps-over")
    assert "fox_jumps-over" not in redactor.redact(text)


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def test_a_flood_without_blanks_takes_few_steps_a_piece() -> None:
    """Each piece is looked at as a whole, never letter by letter."""
    letters = random.Random(1).choices(string.ascii_letters + string.digits, k=1 << 16)
    stream, piece, steps = StreamedText(Redactor(["pA9-x-y-z-k-7Qw3Zt"])), "".join(letters), Counter[str]()

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        steps[event] += 1

    sys.setprofile(count)
    try:
        given = "".join([stream.add(piece) for _ in range(8)])
    finally:
        sys.setprofile(None)
    assert given + stream.rest() == piece * 8
    assert steps["call"] + steps["c_call"] < 8 * 400, steps


@given(st.text(alphabet="ab\n\\ \x00n", max_size=60), st.integers(min_value=0, max_value=60))
def test_a_secret_that_is_cut_anywhere_is_hidden_in_a_stream(noise: str, cut: int) -> None:
    secret = "abba\\nabab-Zq9"
    text = f"{noise}{secret}{noise}"
    stream = StreamedText(Redactor([secret]))
    shown = stream.add(text[:cut]) + stream.add(text[cut:]) + stream.rest()
    assert "abab-Zq9" not in shown


def test_a_copy_knows_the_same_and_learns_for_itself() -> None:
    first = Redactor(["a-secret-of-this-machine"])
    text = "nothing to hide but later-known-value here"
    assert first.redact(text) == text
    second = first.copy()
    assert second.redact(text) == text
    second.register("later-known-value")
    assert "later-known-value" not in second.redact(text)
    assert first.redact(text) == text
    assert "a-secret" not in second.redact("the a-secret-of-this-machine, again")
    hidden = first.redact("the a-secret-of-this-machine")
    assert first.restore(hidden) == "the a-secret-of-this-machine"
    with pytest.raises(UnknownMarker):
        first.copy().restore(second.redact("later-known-value"))
