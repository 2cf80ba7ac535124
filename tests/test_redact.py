"""Secrets are hidden in every coat, files survive a read and a write, and source code is left alone."""

import base64
import json
import string
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.redact import MARKER, Redactor, UnknownMarker

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


@pytest.mark.parametrize("lead", ["", "a", "ab"])
def test_base64_of_a_registered_value_is_reported(lead: str) -> None:
    redactor = Redactor()
    redactor.register(_SECRET, name="API_KEY")
    encoded = base64.b64encode((lead + _SECRET + " tail").encode()).decode()
    assert [found.name for found in redactor.find_encoded(f"x {encoded} y")] == ["API_KEY"]
    assert redactor.find_encoded("nothing here") == []


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
