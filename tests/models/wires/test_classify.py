"""What a failure means, from the words and numbers that providers send."""

import time
from email.utils import formatdate
from typing import Any

import msgspec
import pytest

from hermes.errors import ProviderError
from hermes.models.http.errors import HttpDisconnected, HttpStatusError
from hermes.models.request_size import Size
from hermes.models.wires.classify import provider_error, retry_after, sized

CASES: list[tuple[int, Any, str, bool]] = [
    (400, {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}, "context_overflow", False),
    (400, {"error": {"message": "Input is too long for requested model."}}, "context_overflow", False),
    (413, "Request Entity Too Large", "payload_too_large", False),
    (429, {"error": {"message": "You exceeded your current quota, check billing"}}, "rate_limit", True),
    (402, {"error": {"message": "Insufficient credits"}}, "billing", False),
    (402, {"error": {"message": "Usage limit reached, resets at 15:00"}}, "rate_limit", True),
    (403, {"error": {"message": "insufficient_quota: no credit"}}, "auth", False),
    (
        400,
        {"error": {"message": "messages.2.content.1.image.source: image exceeds 5 MB maximum"}},
        "image_rejected",
        False,
    ),
    (400, {"error": {"message": "tools.3.custom.input_schema: JSON schema is invalid"}}, "tool_rejected", False),
    (400, {"error": {"message": "Invalid schema for function 'x-y': bad type"}}, "tool_rejected", False),
    (400, {"error": {"message": "Unrecognized request argument: foo"}}, "format_error", False),
    (404, {"error": "model 'llama9' not found, try pulling it first"}, "model_not_found", False),
    (529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded", True),
    (502, "<html>Bad gateway</html>", "server_error", True),
    (408, {}, "timeout", True),
    (400, {"error": {"message": "Your request was rejected by our safety system"}}, "policy_blocked", False),
    (400, [{"error": {"message": "API key not valid", "status": "INVALID_ARGUMENT"}}], "format_error", False),
]


@pytest.mark.parametrize(("status", "body", "reason", "retryable"), CASES)
def test_a_refusal_is_named_by_its_cause(status: int, body: Any, reason: str, retryable: bool) -> None:
    raw = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    found = provider_error(HttpStatusError("http://127.0.0.1", status, {}, raw), "p", "m")
    assert (found.reason, found.retryable, found.status) == (reason, retryable, status)
    assert "\n" not in str(found)[:50]


@pytest.mark.parametrize(
    ("text", "advice"), [("field required", "choose another model"), ("API key not valid", "Check the API key")]
)
def test_a_request_that_is_refused_as_it_is_says_what_can_be_done(text: str, advice: str) -> None:
    body = msgspec.json.encode({"error": {"message": text}})
    assert advice in str(provider_error(HttpStatusError("http://127.0.0.1", 400, {}, body), "p", "m"))


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Invalid schema for function 'read_it': bad", "read_it"),
        ("tools.7.custom.input_schema: wrong", "7"),
        ("tools[2].function.parameters is wrong", "2"),
    ],
)
def test_the_refused_tool_is_found(text: str, subject: str) -> None:
    body = msgspec.json.encode({"error": {"message": text}})
    assert provider_error(HttpStatusError("http://127.0.0.1", 400, {}, body), "p", "m").subject == subject


def test_retry_after_in_its_three_forms() -> None:
    assert retry_after({"Retry-After": "17"}) == 17.0
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    in_a_minute = retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert in_a_minute is not None
    assert 50 < in_a_minute <= 60
    assert retry_after({}) is None
    assert retry_after({"retry-after": "soon"}) is None


@pytest.mark.parametrize(
    ("error", "reason", "retryable"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded", True),
        ({"error": {"code": "rate_limit_exceeded", "message": "Slow down"}}, "rate_limit", True),
        ({"error": {"code": 429, "message": "upstream"}}, "rate_limit", True),
        ({"error": {"code": "invalid_api_key", "message": "no"}}, "auth", False),
        (
            {"error": {"code": "context_length_exceeded", "message": "maximum context length is 5"}},
            "context_overflow",
            False,
        ),
        ({"error": {"message": "something odd"}}, "unknown", True),
    ],
)
def test_an_error_inside_a_stream_is_named_by_its_code(error: Any, reason: str, retryable: bool) -> None:
    found = provider_error(error, "p", "m")
    assert (found.reason, found.retryable) == (reason, retryable)


def refused(words: str, status: int = 400) -> Exception:
    return HttpStatusError("http://x", status, {}, msgspec.json.encode({"error": {"message": words}}))


SHORT, HUNG_UP = refused("Error"), HttpDisconnected("http://x", 0)
LONG = refused("Unrecognized request argument: reasoning_effort")
SIZES: list[tuple[Exception, int, int, int, bool]] = [
    # cause, tokens, messages, window, and whether the length is taken for the cause
    (SHORT, 41_000, 3, 100_000, True),
    (SHORT, 39_000, 3, 100_000, False),
    (SHORT, 80_001, 3, 256_000, True),
    (SHORT, 80_001, 3, 256_001, False),
    (SHORT, 10, 81, 256_000, True),
    (SHORT, 10, 81, 256_001, False),
    (LONG, 99_000, 900, 100_000, False),
    (refused("Error", 422), 99_000, 900, 100_000, False),
    (HUNG_UP, 61_000, 3, 100_000, True),
    (HUNG_UP, 59_000, 3, 100_000, False),
    (HUNG_UP, 120_001, 3, 256_000, True),
    (HUNG_UP, 10, 201, 200_000, True),
    (HUNG_UP, 10, 201, 1_000_000, False),
]


@pytest.mark.parametrize(("cause", "tokens", "messages", "window", "is_overflow"), SIZES)
def test_a_silent_refusal_of_much_text_is_an_overflow(
    cause: Exception, tokens: int, messages: int, window: int, is_overflow: bool
) -> None:
    error = provider_error(cause, "p", "m")
    error.__cause__ = cause
    found = sized(error, Size(tokens * 4, messages), window)
    assert isinstance(found, ProviderError)
    assert (found.reason == "context_overflow") == is_overflow
    assert is_overflow or found is error


DEEP = "[" * 900 + "]" * 900


@pytest.mark.parametrize(
    "error",
    [
        {"code": ["a"], "message": {"b": 1}},
        {"error": {"code": {}, "type": [], "message": 5}},
        {"code": 10**30, "message": "big"},
        {"code": True},
        [[[]]],
        msgspec.json.decode(DEEP),
        {"error": msgspec.json.decode(DEEP)},
        "\x00",
        None,
        7,
    ],
    ids=lambda error: str(type(error)),
)
def test_an_error_of_any_shape_is_one_sentence(error: object) -> None:
    found = provider_error(error, "p", "m")
    assert str(found).startswith("'m' answered")
    assert found.status is None or 100 <= found.status <= 599


@pytest.mark.parametrize(
    "body", [b"\xff\xfe", DEEP.encode(), b'{"error": "\xff"}', b'{"error": {"code": 1e999}}', b"[" * 90_000]
)
def test_the_body_of_an_error_may_be_anything(body: bytes) -> None:
    found = provider_error(HttpStatusError("http://127.0.0.1:9", 500, {"retry-after": "\u00b2"}, body), "p", "m")
    assert (found.reason, found.status, found.retry_after_s) == ("server_error", 500, None)
