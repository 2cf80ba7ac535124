"""What can be written to the store, one struct per durable event. A commit takes several and writes all or none.

Which rows share a transaction: the user message with its context; results of a batch with the next attempt's opening,
or with the marks of the calls that start next; an assistant message with its attempt's closing and the rows of its
calls. A turn's first commit takes the session's lease, its last gives it back, and each between sees that it holds.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from hermes.spend import NOTHING, SpendLimit, Spent
from hermes.types import JsonObject, Message, ResultStatus, ToolCall, Usage

Outcome: TypeAlias = Literal["ok", "partial", "failed", "cancelled", "unknown"]

LEASE_S = 30.0  # how long a lease lasts that is not renewed


class SessionCreated(Struct, frozen=True, gc=False, kw_only=True):
    """Insert the session unless it is there already."""

    session_id: str
    source: str = "unknown"
    model: str | None = None
    model_config: JsonObject | None = None
    system_prompt: str | None = None
    tool_definitions: str | None = None  # the session's frozen tool list, as canonical JSON
    user_id: str | None = None
    parent_session_id: str | None = None
    cwd: str | None = None
    title: str | None = None
    started_at: float | None = None


class SessionContinued(Struct, frozen=True, gc=False, kw_only=True):
    """End a session as compressed and begin `child` in its place, under the next title of its line.

    `SessionMoved`, and nothing of it is stored, when the session has been continued already or has messages above
    `last_row`: whoever compresses must have read everything.
    """

    session_id: str
    child: SessionCreated
    last_row: int
    at: float


class LeaseTaken(Struct, frozen=True, gc=False, kw_only=True):
    """Become the one owner of a session, as whoever knows `fence`, a number that nobody else has.

    `SessionInUse` while another owner is there; one whose process is gone, or that has not renewed its lease for
    `LEASE_S`, is not. `SessionMoved` when the session is not as it was read: it has more or fewer than `message_count`
    messages, or goes on under another id. `replaces` is a lease of the same owner that could not be given back.
    """

    session_id: str
    fence: int
    message_count: int = 0
    replaces: int = 0


class LeaseHeld(Struct, frozen=True, gc=False):
    """`LeaseLost`, and nothing of the commit is stored, unless the lease is still held. `renews` keeps it longer."""

    session_id: str
    fence: int
    renews: bool = False


class LeaseReleased(Struct, frozen=True, gc=False):
    """Give the session back, with the last commit that needs it; `LeaseLost` as above."""

    session_id: str
    fence: int


class SessionChanged(Struct, frozen=True, gc=False):
    """Set columns of a session row. Names that are not columns are an error."""

    session_id: str
    changes: dict[str, Any]


class MessageAppended(Struct, frozen=True, gc=False):
    """Append to the transcript; the commit answers with the row id."""

    session_id: str
    message: Message
    is_clean: bool = False  # whether secrets were taken out of it


class ContextAttached(Struct, frozen=True, gc=False):
    """Volatile context of a request, kept beside the newest message of the session and replayed there.

    Never part of the transcript, of search or of an export.
    """

    session_id: str
    text: str


class CallJournalled(Struct, frozen=True, gc=False):
    """A call was asked for. Once it is started, and without a closing row, its outcome is unknown."""

    session_id: str
    call: ToolCall
    is_started: bool = True  # else it waits for other calls; `CallBegun` tells when it no longer does


class CallBegun(Struct, frozen=True, gc=False):
    """A journalled call that was waiting is about to have effects."""

    session_id: str
    call_id: str


class CallClosed(Struct, frozen=True, gc=False):
    """A journalled call has ended, with this status."""

    session_id: str
    call_id: str
    status: ResultStatus
    duration_ms: float = 0.0


class AttemptOpened(Struct, frozen=True, gc=False, kw_only=True):
    """One request to a model is about to be sent.

    With `limits`, `BudgetExceeded` unless each of them has room; the sums are taken in the same transaction, so
    nobody else can take that room meanwhile. `held` is what the attempt may come to: it counts until the closing.
    """

    attempt_id: str
    session_id: str | None
    purpose: str  # "turn", "summary", "title", "compression", ...
    provider: str
    model: str
    base_url: str = ""
    started_at: float = 0.0
    held: Spent = NOTHING
    limits: tuple[SpendLimit, ...] = ()


class CallRecord(Struct, frozen=True, gc=False, kw_only=True):
    """What a request was made of: see `hermes.models.call_record`."""

    sha256: str  # of the body; empty when none was sent
    size_bytes: int
    units: int
    context_chars: int  # of the last unit
    tools: int
    facts: JsonObject
    tokens: JsonObject | None = None
    partial: bool = False  # the answer broke off


class AttemptClosed(Struct, frozen=True, gc=False, kw_only=True):
    """The request ended; tokens and price are None where they are unknown. Caps then count `held` in their place."""

    attempt_id: str
    session_id: str | None
    outcome: Outcome
    usage: Usage = Usage()
    cost_usd: float | None = None
    cost_source: str = "none"
    pricing_version: str = ""  # of the prices that `cost_usd` was counted by
    latency_ms: float = 0.0
    first_byte_ms: float | None = None
    error: str | None = None
    held: Spent = NOTHING
    record: CallRecord | None = None

    @property
    def spent(self) -> Spent:
        """What caps count."""
        usage = self.usage
        is_counted = usage.output_tokens is not None
        tokens = (usage.prompt_tokens or 0) + (usage.output_tokens or 0) if is_counted else self.held.tokens
        return Spent(self.held.usd if self.cost_usd is None else self.cost_usd, tokens, self.latency_ms / 1000)


class EventStored(Struct, frozen=True, gc=False):
    """Something that listeners of the session are told. The commit answers with its number, which grows.

    `about` tells events of one kind apart: a call, a turn, a question. The session need not be there yet.
    """

    session_id: str
    kind: str
    about: str
    body: JsonObject


class ApprovalRecorded(Struct, frozen=True, gc=False, kw_only=True):
    """One decision of the gate, with what it was about and why."""

    session_id: str | None
    route: str
    tool: str
    action: str  # what was asked, redacted
    verdict: Literal["allow", "deny"]
    scope: str = "once"
    rule: str = ""
    reason: str = ""
    decided_by: str = "policy"  # policy, person, model, nobody
    at: float = 0.0


StoreOp: TypeAlias = (
    SessionCreated
    | SessionChanged
    | SessionContinued
    | LeaseTaken
    | LeaseHeld
    | LeaseReleased
    | MessageAppended
    | ContextAttached
    | CallJournalled
    | CallBegun
    | CallClosed
    | AttemptOpened
    | AttemptClosed
    | ApprovalRecorded
    | EventStored
)


class OpenCall(Struct, frozen=True, gc=False):
    """A journalled call without a closing row."""

    call: ToolCall
    started_at: float  # 0 when it never was

    @property
    def is_started(self) -> bool:
        return self.started_at > 0


class Lease(Struct, frozen=True, gc=False):
    """Who works on a session, and since when."""

    fence: int
    holder: str  # in words
    since: float
    owner: str = ""  # the process, as `state.owner` names it; empty where it cannot be told


class SessionRecord(Struct, frozen=True, gc=False, kw_only=True):
    """Everything the kernel needs to go on with a session."""

    session_id: str
    source: str
    model: str | None
    system_prompt: str | None
    tool_definitions: str | None
    cwd: str | None
    ended: bool
    messages: tuple[Message, ...]  # with row ids, oldest first
    contexts: dict[int, str]  # row id of a message -> context to replay with it
    open_calls: tuple[OpenCall, ...]
    totals: Usage = Usage()
    cost_usd: float | None = None
    title: str | None = None
    model_config: JsonObject | None = None
    message_count: int = 0  # of the whole session, whatever part of it was asked for
    continued_by: str | None = None  # the newest session that compressions made of it
    earlier: tuple[str, ...] = ()  # the sessions that compressions made it of, oldest first
    compress_after: float = 0.0  # no compression before this time, because the last one failed
    idle_compressions: int = 0  # in a row, that hardly made it shorter
    lease: Lease | None = None  # of whoever works on it, if somebody does
