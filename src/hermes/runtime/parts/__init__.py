"""The capabilities that the kernel joins: a file here each, whose class `part` overrides what it needs of `Part`.

What lives elsewhere, such as a plugin's, is added with `PARTS.add(name, class)`. Parts are asked in the order of their
names. One that raises or takes longer than its `limit_s` is left out of what was asked, and that is told once; one that
overrides `refusal` has a say in whether a call runs, and a call that it cannot judge is denied.

The methods that are asked in every turn or call may answer None at once, so that having nothing to say costs nothing;
`async def` does as well.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hermes.tables import Table
from hermes.types import Content, ImagePart, JsonObject, Message

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.models.auxiliary import AuxiliaryClient
    from hermes.models.client import ModelClient
    from hermes.ops import SessionRecord
    from hermes.runtime.context import CallContext, Services
    from hermes.runtime.fork import Fork
    from hermes.runtime.options import AgentOptions
    from hermes.runtime.session.history import History, RecoveredCall
    from hermes.runtime.setup.process import ProcessParts
    from hermes.seams import PromptSource
    from hermes.tools.registry import Registered

PART_LIMIT_S = 5.0  # a caller that closes an agent waits for twice as long


class Joining(Struct, frozen=True, kw_only=True):
    """The agent that a part joins."""

    session_id: str
    options: "AgentOptions"
    settings: "Settings"
    services: "Services"
    process: "ProcessParts"
    auxiliary: "AuxiliaryClient"  # for questions to a model beside the conversation
    client: "ModelClient"  # of the conversation


class TurnFacts(Struct, frozen=True, kw_only=True):
    """What a part may know of a turn."""

    session_id: str
    earlier: tuple[str, ...]  # the ids that the session had before it was compressed
    is_new: bool  # nothing was said in the session before
    title: str | None
    said: str  # the user's words
    history: Sequence[JsonObject]
    model: str
    fork: "Callable[[], Fork] | None" = None  # the conversation as it stands, to go on with apart from the session
    turn_id: str = ""


class Part:
    """A capability of one agent. It does nothing; what it is to do, it overrides."""

    limit_s: float | None = PART_LIMIT_S  # for an answer; None where whatever is asked keeps limits of its own
    generation = 0  # of its tools; `tools` is asked again when it has changed

    @classmethod
    def join(cls, agent: Joining) -> "Part | None":  # noqa: ARG003 - for those that override it
        """The part of this agent; None when it is not asked for. Cheap; a `UserError` is what a person must change."""
        return cls()

    def prompt(self) -> Sequence["PromptSource"]:
        """What it says in the system prompt of a session that begins."""
        return ()

    async def tools(self, session: "SessionRecord | None") -> Sequence["Registered"]:
        """Its tools. A session keeps offering those it began with; one that has gone is told to the model as gone."""
        return ()

    def recovered(self, record: "SessionRecord") -> "Awaitable[Mapping[str, RecoveredCall]] | None":
        """What calls have come to that a crash left open, by their ids, where that is known; else nobody knows."""
        return None

    def history_read(self, history: "History") -> None:
        """A turn begins, with this past."""

    def context(self, turn: TurnFacts) -> Awaitable[str] | None:
        """Words beside the user's message, kept in `request_context`."""
        return None

    def answering(self) -> None:
        """The model has begun to answer: what no request waits for may be begun."""

    def news(self, *session_ids: str) -> Awaitable[str] | None:
        """Words beside the results of a round of tools; the ids are all that the session ever had."""
        return None

    def refusal(self, call: "CallContext") -> Awaitable[str | None] | None:
        """Why the call must not run. Whoever overrides this has a say: no answer is a no."""
        return None

    def around(self, call: "CallContext") -> AbstractAsyncContextManager[None] | None:
        """What to do before and after a call that may run; it can neither stop it nor hide what it raised."""
        return None

    def result(self, call: "CallContext", content: Content, duration_ms: float) -> Awaitable[Content] | None:
        """What the model reads of a call, in place of `content`."""
        return None

    def look(self, call: "CallContext", image: ImagePart, question: str) -> Awaitable[str] | None:
        """The answer to a tool that has a picture and a question; what is raised is that call's error."""
        return None

    def before_compression(self, messages: Sequence[JsonObject]) -> Awaitable[str] | None:
        """A session is about to be summed up; words that the summary should keep."""
        return None

    def keep(self, before: Sequence[Message], kept: list[Message]) -> list[Message]:
        """`kept` of a session that is being compressed, and what of `before` must not be lost."""
        return kept

    def carried(self) -> object:
        """What it needs in the session that a compression begins, as JSON; there `History.carried` has it by name."""
        return None

    def around_move(self, old: str, new: str) -> AbstractAsyncContextManager[None] | None:
        """What to do before and after it is stored that the session goes on as `new`; an error says that it was not."""
        return None

    async def session_moved(self, old: str, new: str) -> None:
        """The session goes on as `new`, by a compression here or in another process."""

    def turn_ended(self, turn: TurnFacts, answer: str | None) -> Awaitable[None] | None:
        """A turn is over and stored; `answer` is None when it came to none. Short: the caller waits for it."""
        return None

    async def close(self, *ended: str) -> None:
        """The agent goes. The sessions `ended` are over, and so is what runs for them."""


PARTS: Final[Table[type[Part]]] = Table("hermes.runtime.parts", "part")
