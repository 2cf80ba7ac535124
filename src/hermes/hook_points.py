"""Every hook and middleware there is: what kind it is, what it is handed, and what its answer does.

`docs/hooks.md` is made from this (`python scripts/hooks_page.py`). The contract has a version, which every call carries
as `telemetry_schema_version`; names and keywords are added, and none is taken away within it.
"""

import copy
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, overload

from msgspec import Struct

HOOK_API: Final = 1
VERSION_KEYWORD: Final = "telemetry_schema_version"
log = logging.getLogger(__name__)
HookKind: TypeAlias = Literal["policy", "observer", "transform"]


class HookPoint(Struct, frozen=True, kw_only=True):
    """One hook. `keywords` is what a callback is handed beside the version and the ids that exist."""

    name: str
    kind: HookKind
    when: str
    keywords: tuple[str, ...]
    answer: str = "ignored"
    is_fired: bool = True  # False: the capability that would fire it is not part of this version


class MiddlewarePoint(Struct, frozen=True, kw_only=True):
    """One kind of middleware."""

    name: str
    when: str
    keywords: tuple[str, ...]
    answer: str


_IDS = ("task_id", "session_id", "turn_id")
_CALL = ("tool_name", "args", "tool_call_id", *_IDS, "api_request_id")
_DONE = (*_CALL, "result", "duration_ms", "status", "error_type", "error_message")
_REQUEST = (
    *(*_IDS, "api_request_id", "user_message", "conversation_history", "platform", "model", "provider", "base_url"),
    *("api_mode", "api_call_count", "request_messages", "message_count", "tool_count", "approx_input_tokens"),
    *("request_char_count", "max_tokens", "started_at", "request"),
)
_ANSWER = (
    *("api_duration", "ended_at", "finish_reason", "response_model", "usage", "assistant_message"),
    *("assistant_content_chars", "assistant_tool_call_count", "response"),
)
_FAILURE = (
    *(*_IDS, "api_request_id", "platform", "model", "provider", "base_url", "api_mode", "api_call_count"),
    *("status_code", "retry_count", "max_retries", "retryable", "reason", "error", "request", "started_at", "ended_at"),
)
_APPROVAL = ("command", "description", "pattern_key", "pattern_keys", "session_key", "surface", "tool_call_id")
_KANBAN = ("task_id", "board", "assignee", "run_id", "profile_name")

_POINTS = (
    HookPoint(
        name="pre_tool_call",
        kind="policy",
        when="before a call runs, once for each, on every route; with the arguments that would be used",
        keywords=(*_CALL, "middleware_trace"),
        answer='`{"action": "block", "message": text}` refuses it, the first in order wins; `{"action": "approve", '
        '"message": text, "rule_key": text}` asks a person, and nobody to ask is a no; None, `{"action": "allow"}` '
        "and an answer without `action` let it pass; any other action refuses",
    ),
    HookPoint(
        name="post_tool_call",
        kind="observer",
        when="after a call, also one that was refused (`status` is `blocked`)",
        keywords=_DONE,
    ),
    HookPoint(
        name="transform_tool_result",
        kind="transform",
        when="after `post_tool_call` of a call that was not refused, before the model reads the result",
        keywords=_DONE,
        answer="a string takes the place of `result`; the next callback sees it",
    ),
    HookPoint(
        name="transform_terminal_output",
        kind="transform",
        when="after a foreground command",
        keywords=("command", "output", "returncode", "task_id", "env_type"),
        answer="a string takes the place of `output`; the exit code stays",
    ),
    HookPoint(
        name="pre_llm_call",
        kind="transform",
        when="once a turn, before its first request",
        keywords=(
            *_IDS,
            *("user_message", "conversation_history", "is_first_turn", "model", "platform", "sender_id"),
        ),
        answer='`{"context": text}` or a string that is not blank goes to the model beside the message; several '
        "are joined by blank lines",
    ),
    HookPoint(
        name="post_llm_call",
        kind="observer",
        when="at the end of a turn that has an answer",
        keywords=(*_IDS, "user_message", "assistant_response", "conversation_history", "model", "platform"),
    ),
    HookPoint(
        name="transform_llm_output",
        kind="transform",
        when="at the end of a turn that has an answer",
        keywords=("response_text", *_IDS, "model", "platform"),
        answer="a string that is not empty becomes `final_response`; the transcript keeps what the model said",
    ),
    HookPoint(name="pre_api_request", kind="observer", when="before each request to a model", keywords=_REQUEST),
    HookPoint(
        name="post_api_request", kind="observer", when="after each answer of a model", keywords=(*_REQUEST, *_ANSWER)
    ),
    HookPoint(name="api_request_error", kind="observer", when="after each attempt that failed", keywords=_FAILURE),
    HookPoint(
        name="on_session_start",
        kind="observer",
        when="in the first turn of a session",
        keywords=(*_IDS, "model", "platform"),
    ),
    HookPoint(
        name="on_session_end",
        kind="observer",
        when="at the end of every turn",
        keywords=(*_IDS, "completed", "interrupted", "model", "platform"),
    ),
    HookPoint(
        name="on_session_finalize",
        kind="observer",
        when="when an agent that has worked on the session is closed",
        keywords=("session_id", "platform", "reason"),
    ),
    HookPoint(
        name="on_session_reset",
        kind="observer",
        when="when the conversation goes on in a new session (`/new`)",
        keywords=("session_id", "platform", "reason"),
    ),
    HookPoint(
        name="pre_approval_request", kind="observer", when="before a person is asked", keywords=(*_APPROVAL, *_IDS[1:2])
    ),
    HookPoint(
        name="post_approval_response",
        kind="observer",
        when="when the person has answered, or nobody did",
        keywords=(*_APPROVAL, *_IDS[1:2], "choice", "decided_by"),
    ),
    HookPoint(
        name="pre_verify",
        kind="transform",
        when="before a turn ends with an answer",
        keywords=("coding", "attempt", "final_response", "changed_paths", *_IDS, "model", "platform"),
        answer='`{"action": "continue", "message": text}` or `{"decision": "block", "reason": text}` sends the text, '
        "and the turn goes on",
        is_fired=False,
    ),
    HookPoint(
        name="subagent_start",
        kind="observer",
        when="when a child begins",
        keywords=(
            *("parent_session_id", "parent_turn_id", "parent_subagent_id", "child_session_id", "child_subagent_id"),
            *("child_role", "child_goal"),
        ),
    ),
    HookPoint(
        name="subagent_stop",
        kind="observer",
        when="when a child has ended",
        keywords=(
            *("parent_session_id", "parent_turn_id", "parent_subagent_id", "child_session_id", "child_subagent_id"),
            *("child_role", "child_summary", "child_status", "duration_ms"),
        ),
    ),
    HookPoint(
        name="pre_gateway_dispatch",
        kind="transform",
        when="before a message of a chat platform is taken in",
        keywords=("event", "gateway", "session_store"),
        answer='`{"action": "skip", "reason": text}`, `{"action": "rewrite", "text": text}`, or None',
        is_fired=False,
    ),
    HookPoint(
        name="kanban_task_claimed", kind="observer", when="after a task is taken", keywords=_KANBAN, is_fired=False
    ),
    HookPoint(
        name="kanban_task_completed",
        kind="observer",
        when="after a task is done",
        keywords=(*_KANBAN, "summary"),
        is_fired=False,
    ),
    HookPoint(
        name="kanban_task_blocked",
        kind="observer",
        when="after a task is stuck",
        keywords=(*_KANBAN, "reason"),
        is_fired=False,
    ),
)
HOOKS: Final[Mapping[str, HookPoint]] = {point.name: point for point in _POINTS}

_MIDDLEWARE = (
    MiddlewarePoint(
        name="tool_request",
        when="after a call's arguments fit the schema, before `pre_tool_call` and approval see them",
        keywords=("tool_name", "args", "original_args", "tool_call_id", *_IDS),
        answer='`{"args": object}` replaces them, must fit the schema again; each sees what the one before made',
    ),
    MiddlewarePoint(
        name="tool_execution",
        when="around a call that may run",
        keywords=("tool_name", "args", "original_args", "tool_call_id", *_IDS, "next_call"),
        answer="its answer is the result. `next_call(args=None)` runs the tool, once at most; without it, the "
        "middleware answers in the tool's place",
    ),
    MiddlewarePoint(
        name="llm_request",
        when="before each request to a model",
        keywords=("request", "original_request", *_IDS, "api_request_id"),
        answer='`{"request": object}` replaces it: keys such as `temperature` are sent along; other `messages` or '
        "`tools` give up the cache of the provider",
    ),
    MiddlewarePoint(
        name="llm_execution",
        when="around each request to a model",
        keywords=("request", "original_request", *_IDS, "api_request_id", "next_call"),
        answer="`next_call(request=None)` sends the request, at most once, and gives the answer as an object with "
        "`content` and `tool_calls`; an answer of this shape takes its place",
    ),
)
MIDDLEWARE: Final[Mapping[str, MiddlewarePoint]] = {point.name: point for point in _MIDDLEWARE}


def plain_copy(value: Any) -> Any:
    """A copy of JSON values that shares nothing which could be changed; other values as `copy.deepcopy` has them.

    What cannot be copied is handed on as it is.
    """
    kind = type(value)
    if kind is dict:
        return {key: plain_copy(one) for key, one in value.items()}
    if kind is list:
        return [plain_copy(one) for one in value]
    if kind in (str, int, float, bool, type(None), bytes) or isinstance(value, LazyView):
        return value
    if callable(value):
        return value
    try:
        return copy.deepcopy(value)
    except Exception as error:  # noqa: BLE001 - a value that refuses to be copied is shared; nothing is lost
        log.debug("a value of %s cannot be copied for hooks: %s", type(value).__name__, error)
        return value


class LazyView(Sequence[Any]):
    """A read-only list that is made when somebody looks at it: a history is long, and few hooks read it.

    Items are copies. Slices are lists; `list(view)` is one of its own.
    """

    __slots__ = ("_length", "_made", "_make")

    def __init__(self, length: int, make: Callable[[], Sequence[Any]]) -> None:
        self._length = length
        self._make = make
        self._made: list[Any] | None = None

    @classmethod
    def of(cls, items: Sequence[Any]) -> "LazyView":
        """A view of `items` as they are now; the list may grow afterwards."""
        length = len(items)
        return cls(length, lambda: [plain_copy(one) for one in items[:length]])

    def _all(self) -> list[Any]:
        if self._made is None:
            self._made = list(self._make())
        return self._made

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return plain_copy(self._all()[index])

    def __iter__(self) -> Iterator[Any]:
        return iter(plain_copy(self._all()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and self._all() == list(other)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<{self._length} messages, read-only>"
