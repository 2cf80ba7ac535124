"""What listeners of a live session hear beside the events of its turns."""

from typing import Literal, TypeAlias

from msgspec import Struct, field

from hermes.types import Event, JsonObject, Question
from hermes.work_mode import WorkModeName

NoticeLevel: TypeAlias = Literal["info", "warning", "error"]
TERMINAL = "terminal"  # who has answered, to the terminal that did; to others its pid stands behind


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
    turn_id: str = ""
    record: JsonObject = field(default_factory=dict)  # as stored: exit_reason, files_changed, commands, failed_calls


class QuestionAsked(Struct, frozen=True, gc=False, tag="question_asked"):
    """A turn waits for somebody's answer."""

    question: Question


class QuestionAnswered(Struct, frozen=True, gc=False, kw_only=True, tag="question_answered"):
    """Somebody has answered, or nobody has in time. Secrets are not told."""

    question_id: str
    answer: str
    by: str  # who: a listener's name, "deadline", "interrupt"


class ModeChanged(Struct, frozen=True, gc=False, tag="mode_changed"):
    """The session works in another mode from now on."""

    mode: WorkModeName


HostEvent: TypeAlias = (
    WorkChanged | ModeChanged | MessageTaken | MessageReturned | Notice | TurnEnded | QuestionAsked | QuestionAnswered
)
LiveEvent: TypeAlias = Event | HostEvent


class NumberedEvent(Struct, frozen=True, gc=False):
    """An event as streams tell it. A stored one has its own number, any other that of the stored one it follows."""

    number: int
    event: LiveEvent
    is_stored: bool = False
