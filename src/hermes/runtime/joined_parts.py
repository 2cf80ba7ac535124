"""The parts of one agent, and the border around them: what they raise or never answer costs them, not the turn."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hermes.errors import ToolError, UserError
from hermes.runtime.parts import PARTS, Joining, Part, TurnFacts
from hermes.runtime.prompt import TIERS, Tier
from hermes.seams import PromptSource
from hermes.tools.registry import Registered, registry
from hermes.types import Content, Event, ImagePart, JsonObject, Message, StatusChanged

if TYPE_CHECKING:
    from hermes.ops import SessionRecord
    from hermes.runtime.context import CallContext
    from hermes.runtime.session.history import History

NO_EYES = "looking at a picture takes a model, and there is none to ask here"
_METHODS = tuple(name for name, value in vars(Part).items() if callable(value) and not name.startswith("_"))
_OVERRIDDEN: dict[type[Part], tuple[str, ...]] = {}  # a cache: every agent asks for the same ones
log = logging.getLogger("hermes")


class PartFault(Struct, frozen=True):
    """In place of a part's answer: what went wrong, in a sentence."""

    text: str


class JoinedParts:
    """Asks, in the order of their names, the parts that override a method; a part that does not costs nothing.

    A fault is told once for each part and method, to `tell` or, while there is nobody, in `untold`. A part that gave no
    answer in time is not waited for again before the next turn.
    """

    def __init__(self, parts: Mapping[str, Part] | None = None) -> None:
        self.by_name: dict[str, Part] = dict(parts or {})
        self.tell: Callable[[Event], None] | None = None
        self.untold: list[Event] = []
        self._told: set[tuple[str, str]] = set()
        self._late: dict[tuple[str, str], PartFault] = {}
        self._generations: tuple[Any, ...] = ()
        self._tools: dict[str, Sequence[Any]] = {}  # by part, as of these generations
        self._brought: dict[str, Registered] = {}
        self._find_overriding()

    def join_all(self, agent: Joining) -> None:
        """Have every part of the table join that is asked for. One with a say that cannot be made denies every call."""
        for name in PARTS.names():
            kind = PARTS.load(name)
            try:
                part = kind.join(agent)
            except UserError:
                raise  # a setting that is wrong is told by itself
            except Exception as error:  # noqa: BLE001 - the border to a part's code; it is logged below
                fault = self._failed(name, "join", f"{type(error).__name__}: {error}", error)
                part = _Absent(fault) if kind.refusal is not Part.refusal else None
            if part is not None:
                self.by_name[name] = part
        self._find_overriding()

    def _find_overriding(self) -> None:
        found: dict[str, tuple[tuple[str, Part], ...]] = dict.fromkeys(_METHODS, ())
        for one in sorted(self.by_name.items()):
            for method in _overridden(type(one[1])):
                found[method] += (one,)
        self._overriding = found

    def begin(self) -> None:
        """A turn begins: who came too late in the last one may try again."""
        self.tell = None
        self._late.clear()

    # -- what a session is made of -----------------------------------------------------------------------------------

    def prompt(self) -> list[PromptSource]:
        """What the parts say in the system prompt."""
        found: list[PromptSource] = []
        for name, part in self._overriding["prompt"]:
            sources = self._at_once(name, "prompt", self._sources, name, part)
            found += () if isinstance(sources, PartFault) else sources
        return found

    def _sources(self, name: str, part: Part) -> list[PromptSource]:
        """Where in the prompt a part wants its words is read here, where it still is its own fault."""
        return [
            _PartSource(str(one.name), TIERS[TIERS.index(one.tier)], one, self, name, part) for one in part.prompt()
        ]

    async def tools(self, session: "SessionRecord | None") -> Mapping[str, Registered]:
        """The tools of the parts, by name: the same object until one of them says that its own have changed.

        The name of a tool belongs to whoever had it first: the registry, then the parts in their order.
        """
        parts = self._overriding["tools"]
        generations = tuple([self._at_once(name, "tools", lambda part=part: part.generation) for name, part in parts])
        if generations == self._generations:
            return self._brought
        self._generations = generations
        for name, part in parts:
            tools = await self._asked(name, part, "tools", part.tools, session)
            if isinstance(tools, list | tuple):
                self._tools[name] = tools
            elif not isinstance(tools, PartFault):  # either way, those it had stay
                self._failed(name, "tools", f"it answered with {type(tools).__name__} in place of a list")
        self._brought = {}
        for name, tools in self._tools.items():
            for tool in tools:
                named = tool.entry.name if isinstance(tool, Registered) else repr(tool)
                if not isinstance(tool, Registered) or registry.get(named) or named in self._brought:
                    self._failed(name, "tools", f"{named} is left out, since it is no tool or the name is taken")
                else:
                    self._brought[named] = tool
        return self._brought

    def history_read(self, history: "History") -> None:
        for name, part in self._overriding["history_read"]:
            self._at_once(name, "history_read", part.history_read, history)

    # -- a turn ------------------------------------------------------------------------------------------------------

    async def context(self, turn: TurnFacts) -> list[str]:
        """Words of the parts beside the user's message."""
        parts = self._overriding["context"]
        return [text for name, part in parts if (text := await self._words(name, part, "context", part.context, turn))]

    async def news(self, *session_ids: str) -> list[str]:
        """Words of the parts beside the results of a round."""
        parts = self._overriding["news"]
        return [
            text for name, part in parts if (text := await self._words(name, part, "news", part.news, *session_ids))
        ]

    async def turn_ended(self, turn: TurnFacts, answer: str | None) -> None:
        for name, part in self._overriding["turn_ended"]:
            await self._asked(name, part, "turn_ended", part.turn_ended, turn, answer)

    async def _words(self, name: str, part: Part, method: str, *asked: Any) -> str:
        text = await self._asked(name, part, method, *asked)
        if text is None or isinstance(text, str):
            return text or ""
        if not isinstance(text, PartFault):
            self._failed(name, method, f"it answered with {type(text).__name__} in place of text")
        return ""

    # -- a call ------------------------------------------------------------------------------------------------------

    async def refusal(self, call: "CallContext") -> str | None:
        """Why the call must not run, or None. A part that has a say and does not answer says no."""
        for name, part in self._overriding["refusal"]:
            reason = await self._asked(name, part, "refusal", part.refusal, call)
            if reason is None:
                continue
            if not isinstance(reason, str | PartFault):
                reason = self._failed(name, "refusal", f"it answered with {type(reason).__name__} in place of a reason")
            return reason if isinstance(reason, str) else f"{reason.text}, and nothing may run that it cannot judge"
        return None

    def around(self, call: "CallContext") -> AbstractAsyncContextManager[None] | None:
        """What the parts do before and after the call; None when that is nothing."""
        parts = self._overriding["around"]
        return self._within([(name, part, part.around, (call,)) for name, part in parts], "around") if parts else None

    async def result(self, call: "CallContext", content: Content, duration_ms: float) -> Content:
        """What the model reads of a call."""
        for name, part in self._overriding["result"]:
            changed = await self._asked(name, part, "result", part.result, call, content, duration_ms)
            if isinstance(changed, str | tuple):
                content = changed
            elif changed is not None and not isinstance(changed, PartFault):
                self._failed(name, "result", f"it answered with {type(changed).__name__} in place of content")
        return content

    async def look(self, call: "CallContext", image: ImagePart, question: str) -> str:
        """The answer of the first part that can look at pictures; what it raises is the call's error."""
        for _, part in self._overriding["look"]:
            return await part.look(call, image, question)
        raise ToolError(NO_EYES)

    # -- a session that moves, and the end ---------------------------------------------------------------------------

    def keep(self, before: Sequence[Message], kept: list[Message]) -> list[Message]:
        """`kept`, and what the parts add to it."""
        for name, part in self._overriding["keep"]:
            more = self._at_once(name, "keep", part.keep, before, kept)
            if isinstance(more, list) and all(isinstance(one, Message) for one in more):
                kept = more
            elif not isinstance(more, PartFault):
                self._failed(name, "keep", "it answered with something else than messages")
        return kept

    def around_move(self, old: str, new: str) -> AbstractAsyncContextManager[None]:
        """What the parts do before and after it is stored that the session goes on as `new`."""
        parts = self._overriding["around_move"]
        return self._within([(name, part, part.around_move, (old, new)) for name, part in parts], "around_move")

    async def session_moved(self, old: str, new: str) -> None:
        for name, part in self._overriding["session_moved"]:
            await self._asked(name, part, "session_moved", part.session_moved, old, new)

    async def close(self, *ended: str) -> None:
        self.begin()
        for name, part in self._overriding["close"]:
            await self._asked(name, part, "close", part.close, *ended)

    # -- the border --------------------------------------------------------------------------------------------------

    async def _asked(
        self, name: str, part: Part, method: str, ask: Callable[..., Awaitable[Any] | None], *args: Any
    ) -> Any:
        """The part's answer, or a `PartFault`. A cancellation of who asks passes through."""
        if (late := self._late.get((name, method))) is not None:
            return late
        task, limit = asyncio.current_task(), None
        assert task is not None
        cancels = task.cancelling()
        try:
            asked = ask(*args)
            if asked is None:
                return None
            async with asyncio.timeout(part.limit_s) as limit:
                answer = await asked
        except asyncio.CancelledError as error:
            if task.cancelling() > cancels:
                raise
            return self._failed(name, method, "it was cancelled, and nobody had asked for that", error)
        except Exception as error:  # the border to a part's code
            if task.cancelling() > cancels:
                raise asyncio.CancelledError from error
            if limit is None or not limit.expired():
                return self._failed(name, method, f"{type(error).__name__}: {error}", error)
            self._late[name, method] = self._failed(name, method, f"no answer within {part.limit_s:g} s", error)
            return self._late[name, method]
        if task.cancelling() > cancels:
            raise asyncio.CancelledError  # the turn was stopped meanwhile, and the part kept that to itself
        return answer

    def _at_once(self, name: str, method: str, ask: Callable[..., Any], *args: Any) -> Any:
        try:
            return ask(*args)
        except Exception as error:  # noqa: BLE001 - the border to a part's code; it is logged below
            return self._failed(name, method, f"{type(error).__name__}: {error}", error)

    def _failed(self, name: str, method: str, why: str, error: BaseException | None = None) -> PartFault:
        fault = PartFault(f"the part {name!r} failed in {method} ({why})")
        if (name, method) not in self._told:
            self._told.add((name, method))
            log.warning("%s", fault.text, exc_info=error)
            outcome = "the call is denied" if method == "refusal" else "the turn goes on without it"
            (self.tell or self.untold.append)(StatusChanged("warning", f"{fault.text}; {outcome}"))
        return fault

    @asynccontextmanager
    async def _within(
        self, parts: Sequence[tuple[str, Part, Callable[..., Any], tuple[Any, ...]]], method: str
    ) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for name, part, make, args in parts:
                manager = self._at_once(name, method, make, *args)
                if manager is not None and not isinstance(manager, PartFault):
                    await stack.enter_async_context(_Surrounding(self, name, part, method, manager))
            yield


def _overridden(kind: type[Part]) -> tuple[str, ...]:
    if kind not in _OVERRIDDEN:
        _OVERRIDDEN[kind] = tuple([one for one in _METHODS if getattr(kind, one) is not getattr(Part, one)])
    return _OVERRIDDEN[kind]


class _Surrounding:
    """A context manager of a part, that can only fail for itself."""

    def __init__(
        self, parts: JoinedParts, name: str, part: Part, method: str, manager: AbstractAsyncContextManager[None]
    ) -> None:
        self._asked = partial(parts._asked, name, part, method)
        self._manager = manager
        self._is_entered = False

    async def __aenter__(self) -> None:
        self._is_entered = not isinstance(await self._asked(self._manager.__aenter__), PartFault)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_entered:
            await self._asked(self._left, kind, error, trace)

    async def _left(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            await self._manager.__aexit__(kind, error, trace)
        except BaseException as raised:
            if raised is not error:
                raise


class _PartSource(Struct, frozen=True):
    """A part's words in the prompt; none where it cannot say them."""

    name: str
    tier: Tier
    source: PromptSource
    parts: JoinedParts
    part_name: str
    part: Part

    async def text(self, session: JsonObject) -> str:
        return await self.parts._words(self.part_name, self.part, "prompt", self.source.text, session)


class _Absent(Part):
    """In place of a part with a say that could not be made."""

    def __init__(self, fault: PartFault) -> None:
        self._fault = fault

    async def refusal(self, call: "CallContext") -> str:
        return f"{self._fault.text}, and nothing may run that it cannot judge"
