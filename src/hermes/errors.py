"""The error tree, named by who must act.

HermesError
├── UserError                 the person: fix an option, a file, a name
│   ├── ConfigError           a setting cannot be used; says file, line and nearest name
│   ├── SessionNotFound
│   └── MissingPart           an optional package or program; says what to install
├── ToolError                 the model: the text says what to try next
├── ProviderError             nobody, or the person: see `reason` and `retryable`
├── StoreError                the record could not be made durable; the turn fails visibly
│   ├── StoreUnavailable      the store cannot be opened here, with the reason
│   ├── SessionMoved          the session went on meanwhile, here or under another id
│   ├── SessionInUse          another process or agent works on the session just now
│   └── LeaseLost             somebody else took the session over while the turn was silent; the turn stops
├── OutputError               the model's answer is not the data that was asked for; it is kept in `answer`
└── BudgetExceeded            a cap on money, tokens or time was reached before the call
"""

import time
from typing import Any, Literal, TypeAlias

ProviderReason: TypeAlias = Literal[
    "auth",
    "billing",
    "rate_limit",
    "overloaded",
    "server_error",
    "timeout",
    "connection",
    "context_overflow",
    "payload_too_large",
    "image_rejected",
    "model_not_found",
    "policy_blocked",
    "tool_rejected",
    "format_error",
    "unknown",
]


class HermesError(Exception):
    """Base of everything this package raises on purpose."""


class UserError(HermesError):
    """Something a person must change. The text is one clear sentence and a next step."""


class ConfigError(UserError):
    """A setting cannot be used."""


class BadKey(ConfigError):
    """A key of config.yaml that nobody knows, or whose value does not fit; `path` leads to it."""

    def __init__(self, text: str, path: tuple[str, ...]) -> None:
        super().__init__(text)
        self.path = path


class SessionNotFound(UserError):
    """No session by that id, prefix or title."""


class MissingPart(UserError):
    """An optional part is needed and not installed."""


class ToolError(HermesError):
    """A tool could not do what was asked. The model reads the text, so say what to try next."""


class ProviderError(HermesError):
    """A model call failed. `retry_after_s` is what the provider asked for, when it did."""

    def __init__(
        self,
        message: str,
        *,
        reason: ProviderReason,
        status: int | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        subject: str | None = None,
    ) -> None:
        super().__init__(message)
        self.reason: ProviderReason = reason
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.subject = subject  # the tool or image the provider named, where it did


class StoreError(HermesError):
    """The record could not be written or read. Nothing goes on without persistence."""


class StoreUnavailable(StoreError):
    """The store cannot be opened: a file system without locks, a newer schema, no permission."""


class SessionMoved(StoreError):
    """A session cannot be continued from where it was read: it has newer messages, or goes on under another id."""


class SessionInUse(StoreError):
    """Somebody else works on the session. `holder` says who, since the time `since`."""

    def __init__(self, session_id: str, holder: str, since: float) -> None:
        self.holder, self.since = holder, since
        began, now = time.localtime(since), time.localtime()
        shown = time.strftime("%H:%M" if began[:3] == now[:3] else "%Y-%m-%d %H:%M", began)
        super().__init__(
            f"session {session_id!r} is in use by {holder} since {shown}; "
            "wait, go on in a copy (--fork, /branch), or stop it there"
        )


class LeaseLost(StoreError):
    """The session is no longer this turn's to write to. Nothing of the commit that found out was stored."""


class OutputError(HermesError):
    """There is no answer that fits the output schema. `answer` is what the model said, `result` all about the turn."""

    def __init__(self, result: "dict[str, Any]") -> None:
        why = result.get("error") or f"the turn ended without an answer ({result.get('turn_exit_reason')})"
        super().__init__(str(why))
        self.answer: str = result.get("final_response") or ""
        self.result = result


class BudgetExceeded(HermesError):
    """A cap leaves no room for the next model call. `is_crowded`: there may be some when calls under way have ended."""

    def __init__(self, message: str, *, is_crowded: bool = False) -> None:
        super().__init__(message)
        self.is_crowded = is_crowded
