"""What a background child prints reaches the disk without secrets, wherever the reads cut it."""

import random

import pytest

from hermes.redact import MARKER, Redactor
from hermes.tools.supervisor.keeper.clean_text import CleanText

SECRETS = ["hunter2-Correct/Horse+9", "zebra zebra stripes 77", "short1x"]
SHAPED = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vX7z"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"


def stream(pieces: list[bytes], *, quiet_between: bool = False) -> bytes:
    clean = CleanText(SECRETS)
    out = []
    for piece in pieces:
        out.append(clean.add(piece))
        if quiet_between:
            out.append(clean.quiet())
    return b"".join([*out, clean.rest()])


@pytest.mark.parametrize("quiet_between", [False, True])
def test_a_secret_cut_at_any_place_is_hidden(quiet_between: bool) -> None:
    for secret in (*SECRETS, SHAPED):
        text = f"before {secret} after\n".encode()
        # A value that nobody has registered is known by its first characters: a pause within those is too early.
        first = text.index(b"-") + 1 if secret == SHAPED else 1
        for at in range(first, len(text)):
            stored = stream([text[:at], text[at:]], quiet_between=quiet_between).decode()
            assert secret not in stored, at
            assert stored.startswith("before ⟦secret#")
            assert stored.endswith("⟧ after\n")


def test_a_secret_wrapped_over_lines_and_a_private_key_are_hidden() -> None:
    wrapped = b"hunter2-Correct\n/Horse+9 end\n"
    for at in range(1, len(wrapped)):
        assert b"Horse" not in stream([wrapped[:at], wrapped[at:]])
    for at in range(1, len(KEY)):
        stored = stream([b"key:\n", KEY[:at].encode(), KEY[at:].encode(), b"\ndone\n"])
        assert b"MIIE" not in stored
        assert stored.endswith(b"\ndone\n")


def test_random_cuts_give_what_one_read_would_have_given() -> None:
    rng = random.Random(7)
    for _ in range(60):
        words = [*SECRETS, SHAPED, "grüße", "\x1b[1mbold\x1b[0m", "plain words", "50%\r", "\n", "\n", "\xff"]
        text = " ".join(rng.choices(words, k=40)).encode() + b"\n\x80\xfe tail"
        places = sorted(rng.sample(range(len(text)), 12))
        pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
        stored = stream(pieces).decode("utf-8", "surrogateescape")
        at_once = Redactor(SECRETS).redact_bytes(text).decode("utf-8", "surrogateescape")
        # Which line ends a marker took in with the secret may differ.
        assert MARKER.sub("", stored).split() == MARKER.sub("", at_once).split()
        assert not any(secret in stored for secret in (*SECRETS, SHAPED))


def test_a_prompt_is_stored_as_soon_as_nothing_follows() -> None:
    clean = CleanText(SECRETS)
    assert clean.add(b"line\nName?") == b"line\n"
    assert clean.is_waiting
    assert clean.quiet() == b"Name?"
    assert not clean.is_waiting


def test_a_line_without_an_end_is_stored_in_bounded_memory() -> None:
    clean = CleanText(SECRETS)
    given = b"".join(clean.add(b"x" * 50_000) for _ in range(20))
    assert len(given) >= 900_000
    assert given + clean.rest() == b"x" * 1_000_000
