"""From what went wrong on the wire to who must act: one `ProviderError`, with a sentence that says what to do."""

import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.errors import ProviderError, ProviderReason
from hermes.models.endpoint import Endpoint
from hermes.models.http import errors
from hermes.models.request_size import Size
from hermes.models.wires.answer_values import any_json, is_deep

_CONTEXT = (
    r"(?i)context.{0,20}(length|window|size)|maximum context|too many tokens|prompt is too long"
    r"|exceeds? the (available )?context|input is too long|reduce the length"
)
_BILLING = r"(?i)insufficient.{0,12}(credit|quota|funds|balance)|billing|payment required|out of credits"
_FOR_A_WHILE = r"(?i)usage limit|try again (in|at|later)|resets? (in|at)"
_NO_MODEL = (
    r"(?i)model.{0,80}(not found|does not exist|not exist|unknown|not supported|no such)|no such model|unknown model"
)
_IMAGE = (
    r"(?i)image.{0,60}(too large|exceed|invalid|could not|unsupported|process)|invalid image"
    r"|(could not|cannot|unable to|failed to) (process|read|decode|download).{0,20}image"
)
_TOOL = r"""(?i)(?:tools?|function)[^a-z]{0,3}.{0,80}?['"`]([A-Za-z0-9_.:-]{1,64})['"`]|tools\.(\d+)\b|tools\[(\d+)\]"""
_POLICY = r"(?i)content.?(policy|filter)|safety|usage polic"
# Codes and types of errors that come inside a stream, where there is no status.
_MEANT_STATUS = {
    **dict.fromkeys(("authentication_error", "invalid_api_key"), 401),
    **dict.fromkeys(("billing_error", "insufficient_quota"), 402),
    "permission_error": 403,
    **dict.fromkeys(("not_found_error", "model_not_found"), 404),
    "request_too_large": 413,
    **dict.fromkeys(("rate_limit_error", "rate_limit_exceeded"), 429),
    **dict.fromkeys(("api_error", "server_error"), 500),
    "overloaded_error": 529,
}
_FOREVER_S = 1e9  # 30 years; what a server says may be any number
_CHECK_KEY = ". Check the API key: hermes model"
_REFUSED_ANYWAY = ". Sending it again does not help: ask in other words, or choose another model"
_SHORT_CHARS = 30  # a refusal in fewer letters gives no reason
_SMALL_WINDOW = 256_000
_TRANSIENT_STATUS: dict[int, ProviderReason] = {408: "timeout", 409: "server_error", 425: "server_error"}


def provider_error(error: object, provider: str, model: str) -> ProviderError:
    """Classify a failure of the HTTP layer, or an error object that came inside a stream."""
    if isinstance(error, errors.HttpStatusError):
        return _judge(_words(error), error.status, model, retry_after_s=retry_after(error.headers))
    if isinstance(error, errors.HttpTimeoutError):
        return ProviderError(f"{model!r} did not answer in time: {error}", reason="timeout", retryable=True)
    if isinstance(error, errors.HttpConnectError):
        whose = f" of {provider!r}" if provider else ""
        return ProviderError(
            f"cannot reach the server{whose}: {error}. Check base_url and that the server is running",
            reason="connection",
            retryable=True,
        )
    if isinstance(error, errors.HttpBodyError):
        return ProviderError(f"the answer of {model!r} is not valid: {error}", reason="server_error", retryable=True)
    if isinstance(error, errors.HttpError):
        return ProviderError(f"the connection to {model!r} broke: {error}", reason="connection", retryable=True)
    message, code = _message_of(error)
    judged = _judge(message.strip(), _status(code), model, retry_after_s=None)
    if judged.reason == "unknown" and isinstance(code, str) and code in _MEANT_STATUS:
        judged.reason, judged.retryable, _ = _reason(message, _MEANT_STATUS[code])
    return judged


def refusal(error: errors.HttpError, endpoint: Endpoint) -> ProviderError:
    """`error` of a request to `endpoint`; where a key was kept from it, with the way to give it one."""
    found = provider_error(error, endpoint.provider, endpoint.model or endpoint.provider)
    if isinstance(error, errors.HttpConnectError) and error.nobody_listens:
        from hermes.models.providers.catalogue import is_loopback

        found.retryable = not is_loopback(endpoint.base_url)  # a person has to start it: waiting does not help
    if found.reason != "auth" or not endpoint.withheld:
        return found
    return ProviderError(f"{found}. {endpoint.withheld}", reason="auth", status=found.status)


def sized(error: ProviderError, size: Size, window: int) -> ProviderError:
    """`error`, or the overflow that it most likely is: a refusal without a reason, or a hang-up, of much text."""
    cause = error.__cause__
    is_long = False
    if isinstance(cause, errors.HttpDisconnected):
        is_long = _is_long(size, window, share=0.6, tokens=120_000, messages=200)
    elif isinstance(cause, errors.HttpStatusError) and cause.status == 400 and len(_words(cause)) < _SHORT_CHARS:
        is_long = _is_long(size, window, share=0.4, tokens=80_000, messages=80)
    if not is_long:
        return error
    told = f"{error}. It gave no reason; the request is long (about {size.tokens} tokens, window {window})"
    return ProviderError(told, reason="context_overflow", status=error.status)


def _is_long(size: Size, window: int, *, share: float, tokens: int, messages: int) -> bool:
    is_many = window <= _SMALL_WINDOW and (size.tokens > tokens or size.messages > messages)
    return size.tokens > share * window or is_many


def _words(error: errors.HttpStatusError) -> str:
    try:
        body: Any = any_json(error.body)
    except msgspec.DecodeError:
        body = error.body.decode("utf-8", "replace")
    return _message_of(body)[0].strip()


def _status(code: object) -> int | None:
    """A code that is the status of HTTP which the error would have had outside of a stream."""
    return code if type(code) is int and 100 <= code <= 599 else None


def _judge(message: str, status: int | None, model: str, *, retry_after_s: float | None) -> ProviderError:
    reason, retryable, advice = _reason(message, status)
    named = re.search(_TOOL, message) if reason == "format_error" else None
    if named:
        reason, advice = "tool_rejected", ""
    text = message or "no reason given"
    where = f" (HTTP {status})" if status else ""
    return ProviderError(
        f"{model!r} answered{where}: {text[:600]}{advice}",
        reason=reason,
        status=status,
        retryable=retryable,
        retry_after_s=retry_after_s,
        subject=next((group for group in named.groups() if group), None) if named else None,
    )


def _reason(message: str, status: int | None) -> tuple[ProviderReason, bool, str]:
    """Why, whether asking again can help, and what the person can do."""
    if status in (401, 403):
        return "auth", False, _CHECK_KEY
    is_unpaid = status == 402 or (status != 429 and re.search(_BILLING, message))
    if status == 429 or (is_unpaid and re.search(_FOR_A_WHILE, message)):
        return "rate_limit", True, ""
    if is_unpaid:
        return "billing", False, ". Check the account's balance"
    if status in (503, 529):
        return "overloaded", True, ""
    if re.search(_CONTEXT, message):
        return "context_overflow", False, ""
    if status == 413:
        return "payload_too_large", False, ""
    if status == 404 or re.search(_NO_MODEL, message):
        return "model_not_found", False, ". Choose another with: hermes model"
    if status in _TRANSIENT_STATUS:
        return _TRANSIENT_STATUS[status], True, ""
    if status is not None and status >= 500:
        return "server_error", True, ""
    return _reason_of_refusal(message, status)


def _reason_of_refusal(message: str, status: int | None) -> tuple[ProviderReason, bool, str]:
    if re.search(_IMAGE, message):
        return "image_rejected", False, ""
    if re.search(_POLICY, message):
        return "policy_blocked", False, ""
    if status is not None and 400 <= status < 500:
        is_key = "api key" in message.lower()  # some providers say so with 400
        return "format_error", False, _CHECK_KEY if is_key else _REFUSED_ANYWAY
    return "unknown", True, ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the provider asks us to wait, from `retry-after-ms`, or `retry-after` as seconds or as a date."""
    found = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        told = found.get(name, "")
        if told.isascii() and told.replace(".", "", 1).isdigit():
            return min(float(told) / unit, _FOREVER_S)
    if "retry-after" not in found:
        return None
    from email.utils import parsedate_to_datetime  # slow to import, and hardly ever needed

    try:
        when = parsedate_to_datetime(found["retry-after"])
        return max(0.0, when.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError, IndexError):
        return None  # a text that is no date


def _message_of(body: Any) -> tuple[str, Any]:
    """The sentence and code inside the shapes that providers use."""
    if is_deep(body):
        return "an error that is nested too deep to be read", None
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            text = inner.get("message") or inner.get("detail") or inner.get("type") or ""
            return str(text or body.get("message") or body), inner.get("code") or inner.get("status") or inner.get(
                "type"
            )
        return str(inner), body.get("code")
    if isinstance(body, list) and body:
        return _message_of(body[0])
    return str(body), None
