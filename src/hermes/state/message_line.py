"""The seam for messages that wait for their turn: one line for each session, first in, first out, in the store."""

from collections.abc import Collection
from typing import Literal, Protocol, TypeAlias, get_args

from msgspec import Struct

from hermes.types import Content

BusyMode: TypeAlias = Literal["queue", "steer", "interrupt"]  # what a message does that comes during a turn
QueueState: TypeAlias = Literal["waiting", "taken", "done", "dropped"]

MODES: tuple[BusyMode, ...] = get_args(BusyMode)
STATES: tuple[QueueState, ...] = get_args(QueueState)
KEPT_S = 7 * 86_400.0  # so long the key of one that has ended is known: whoever sends it again is not heard twice


class QueuedMessage(Struct, frozen=True, kw_only=True):
    """One message of a line. Its store gives `number` and, unless it is told, `at`; what has ended has no content."""

    key: str  # by whoever sends it, once in a session
    content: Content
    mode: BusyMode = "queue"
    who: str = ""  # that said it: a surface, or `platform:user`
    state: QueueState = "waiting"
    number: int = 0  # the order in the line; may be below 0
    at: float = 0.0
    taken_after: int | None = None  # the newest user message of the session when it was taken

    def __post_init__(self) -> None:
        if self.mode not in MODES or self.state not in STATES:
            raise ValueError(f"a message cannot have mode {self.mode!r} and state {self.state!r}")


class MessageLine(Protocol):
    """The lines of a store, as plain calls that are durable when they return.

    Each is all or nothing, also between processes: two that take one message do not both get it. The line of a session
    that is compressed goes along in that very commit, and whoever still names the old id is heard at the new one. The
    session need not be there yet.
    """

    def add(self, session_id: str, message: QueuedMessage, *, first: bool = False) -> QueuedMessage:
        """Put it at the end, or before all that wait. The message as it stands; an earlier one with its key as that."""

    def read(self, session_id: str) -> list[QueuedMessage]:
        """Those that wait and those that were taken, in their order."""

    def take(self, session_id: str, key: str) -> bool:
        """Hand it to an agent; False when it does not wait. It stays until `end`, for the case of a kill.

        What a process had taken that is certainly gone is settled first: see `settle`.
        """

    def put_back(self, session_id: str, key: str) -> bool:
        """It did not reach the agent after all; False unless this process had taken it."""

    def edit(self, session_id: str, key: str, content: Content) -> bool:
        """Say something else at the same place; False when it does not wait."""

    def end(self, session_id: str, keys: Collection[str], state: Literal["done", "dropped"]) -> int:
        """These wait no longer; how many there were. What another process has taken is left alone."""

    def move(self, old: str, new: str) -> None:
        """Put the line of one session in front of that of another."""

    def settle(self, session_id: str) -> list[QueuedMessage]:
        """`read`, for whoever begins to work on the session.

        One that was taken by a process that is gone is done if a user message has reached the session since, and waits
        again if none has. What this process took itself counts as left.
        """
