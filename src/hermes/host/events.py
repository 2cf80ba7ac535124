"""What listeners of a live session hear beside the events of its turns."""

from typing import Literal, TypeAlias

from msgspec import Struct

from hermes.types import Event, Question

NoticeLevel: TypeAlias = Literal["info", "warning", "error"]


class WorkChanged(Struct, frozen=True, gc=False, tag="work"):
    """The session begins or ends to work: a turn, or a compression."""

    is_busy: bool


class MessageTaken(Struct, frozen=True, gc=False, tag="message_taken"):
    """A message has left the line for a turn."""

    key: str
    text: str
    who: str = ""


class MessageReturned(Struct, frozen=True, gc=False, tag="message_returned"):
    """A message did not reach the agent. It waits again, at its place, unless a listener took the words back."""

    key: str
    why: str


class Notice(Struct, frozen=True, gc=False, tag="notice"):
    """A sentence of Hermes itself."""

    text: str
    level: NoticeLevel = "info"


class TurnEnded(Struct, frozen=True, gc=False, kw_only=True, tag="turn_ended"):
    """How a turn ended: a verdict, the answer, and why it is not a full one."""

    verdict: str  # a value of `TurnVerdict`
    answer: str = ""
    why: str = ""
    held: int = 0  # messages that wait for a word of the person


class QuestionAsked(Struct, frozen=True, gc=False, tag="question_asked"):
    """A turn waits for somebody's answer."""

    question: Question


class QuestionAnswered(Struct, frozen=True, gc=False, kw_only=True, tag="question_answered"):
    """Somebody has answered, or nobody has in time. Secrets are not told."""

    question_id: str
    answer: str
    by: str  # who: a listener's name, "deadline", "interrupt"


HostEvent: TypeAlias = (
    WorkChanged | MessageTaken | MessageReturned | Notice | TurnEnded | QuestionAsked | QuestionAnswered
)
LiveEvent: TypeAlias = Event | HostEvent
