"""The parts of one agent, and the border around them: what they raise or never answer costs them, not the turn."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, to_builtins

from hermes.errors import ToolError, UserError
from hermes.runtime.parts import PARTS, Joining, Part, TurnFacts
from hermes.runtime.prompt import TIERS, Tier
from hermes.seams import PromptSource, PromptText
from hermes.tools.registry import Registered, ToolEntry, registry
from hermes.tools.traits import Traits
from hermes.types import Content, Event, ImagePart, JsonObject, Message, OpaquePart, StatusChanged, TextPart

if TYPE_CHECKING:
    from hermes.ops import SessionRecord
    from hermes.runtime.context import CallContext
    from hermes.runtime.session.history import History, RecoveredCall

NO_EYES = "looking at a picture takes a model, and there is none to ask here"
NO_JUDGE = "and nothing may run that it cannot judge"
_METHODS = tuple(name for name, value in vars(Part).items() if callable(value) and not name.startswith("_"))
_OVERRIDDEN: dict[type[Part], tuple[str, ...]] = {}  # a cache: every agent asks for the same ones
log = logging.getLogger("hermes")


class PartFault(Struct, frozen=True):
    """In place of a part's answer: what went wrong, in a sentence."""

    text: str


class _Joined(NamedTuple):
    name: str
    part: Part


class JoinedParts:
    """Asks, in the order of their names, the parts that override a method; a part that does not costs nothing.

    A fault is told once for each part and method, to `tell` or, while there is nobody, in `untold`. A part that gave no
    answer in time is not asked the same again before the next turn.
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
                if part is not None and not isinstance(part, Part):
                    raise TypeError(f"what joins is no part, but {type(part).__name__}")
            except UserError:
                raise  # a setting that is wrong is told by itself
            except Exception as error:  # noqa: BLE001 - the border to a part's code; it is logged below
                fault = self._failed(name, "join", _words(error), error)
                part = _Absent(fault) if kind.refusal is not Part.refusal else None
            if part is not None:
                self.by_name[name] = part
        self._find_overriding()

    def _find_overriding(self) -> None:
        self._overriding: dict[str, tuple[_Joined, ...]] = dict.fromkeys(_METHODS, ())
        for name, part in sorted(self.by_name.items()):
            for method in _overridden(type(part)):
                self._overriding[method] += (_Joined(name, part),)

    def begin(self) -> None:
        """A piece of work begins: who came too late in the last one may try again."""
        self.tell = None
        self._late.clear()

    # -- what a session is made of -----------------------------------------------------------------------------------

    def prompt(self) -> list[PromptSource]:
        """What the parts say in the system prompt."""
        lists = [self._at_once(one, "prompt", self._sources, one) for one in self._overriding["prompt"]]
        return [source for found in lists if not isinstance(found, PartFault) for source in found]

    def _sources(self, one: _Joined) -> list[PromptSource]:
        """Where in the prompt a part wants its words is read here, where it still is its own fault."""
        found = one.part.prompt()
        return [_PartSource(str(source.name), TIERS[TIERS.index(source.tier)], source, self, one) for source in found]

    async def tools(self, session: "SessionRecord | None") -> Mapping[str, Registered]:
        """The tools of the parts, by name: the same object until one of them says that its own have changed.

        The name of a tool belongs to whoever had it first: the registry, then the parts in their order.
        """
        parts = self._overriding["tools"]
        generations = tuple([self._at_once(one, "tools", getattr, one.part, "generation") for one in parts])
        if generations == self._generations:
            return self._brought
        self._generations, self._brought = generations, {}
        for one in parts:
            tools = await self._given(one, "tools", list | tuple, self._ask(one, "tools", session))
            if tools is None:  # those it had stay, and it is asked again in the next turn
                self._generations = ()
            else:
                self._tools[one.name] = tools
            for tool in self._tools.get(one.name, ()):
                if _is_tool(tool) and registry.get(tool.entry.name) is None and tool.entry.name not in self._brought:
                    self._brought[tool.entry.name] = tool
                else:
                    named = tool.entry.name if _is_tool(tool) else tool
                    self._failed(one.name, "tools", f"{named!r} is left out: it is no tool, or its name is taken")
        return self._brought

    async def recovered(self, record: "SessionRecord") -> "dict[str, RecoveredCall]":
        """What the parts know of calls that a crash left open, by their ids."""
        known: dict[str, RecoveredCall] = {}
        for one in self._overriding["recovered"]:
            asked = self._ask(one, "recovered", record)
            if asked is not None:
                known |= await self._given(one, "recovered", Mapping, asked) or {}
        return known

    def history_read(self, history: "History") -> None:
        for one in self._overriding["history_read"]:
            self._at_once(one, "history_read", one.part.history_read, history)

    # -- a turn ------------------------------------------------------------------------------------------------------

    async def context(self, turn: TurnFacts) -> list[str]:
        """Words of the parts beside the user's message."""
        return await self._words("context", turn)

    def answering(self) -> None:
        """The model has begun to answer."""
        for one in self._overriding["answering"]:
            self._at_once(one, "answering", one.part.answering)

    async def news(self, *session_ids: str) -> list[str]:
        """Words of the parts beside the results of a round."""
        return await self._words("news", *session_ids)

    async def _words(self, method: str, *args: Any) -> list[str]:
        said = []
        for one in self._overriding[method]:
            asked = self._ask(one, method, *args)
            if asked is not None and (words := await self._given(one, method, str, asked)):
                said.append(words)
        return said

    async def turn_ended(self, turn: TurnFacts, answer: str | None) -> None:
        for one in self._overriding["turn_ended"]:
            if (asked := self._ask(one, "turn_ended", turn, answer)) is not None:
                await self._answer(one, "turn_ended", asked)

    # -- a call ------------------------------------------------------------------------------------------------------

    async def refusal(self, call: "CallContext") -> str | None:
        """Why the call must not run, or None. A part that has a say and does not answer says no."""
        for one in self._overriding["refusal"]:
            asked = self._ask(one, "refusal", call)
            if asked is None or (reason := await self._answer(one, "refusal", asked)) is None:
                continue
            if not isinstance(reason, str | PartFault):
                reason = self._failed(one.name, "refusal", f"the answer is no reason, but {type(reason).__name__}")
            if isinstance(reason, PartFault):
                return f"{reason.text}, {NO_JUDGE}"
            return reason or f"the part {one.name!r} refuses it, and does not say why"
        return None

    def around(self, call: "CallContext") -> AbstractAsyncContextManager[None] | None:
        """What the parts do before and after the call; None when that is nothing."""
        managers = self._managers("around", call)
        return self._within("around", managers) if managers else None

    async def result(self, call: "CallContext", content: Content, duration_ms: float) -> Content:
        """What the model reads of a call."""
        for one in self._overriding["result"]:
            asked = self._ask(one, "result", call, content, duration_ms)
            if asked is None:
                continue
            changed = await self._given(one, "result", str | tuple, asked)
            if changed is not None and not _is_content(changed):
                self._failed(one.name, "result", "the answer is no content")
            elif changed is not None:
                content = changed
        return content

    async def look(self, call: "CallContext", image: ImagePart, question: str) -> str:
        """The answer of the first part that can look at pictures; what it raises is the call's error."""
        for one in self._overriding["look"]:
            if (asked := one.part.look(call, image, question)) is not None:
                return await asked
        raise ToolError(NO_EYES)

    # -- a session that moves, and the end ---------------------------------------------------------------------------

    async def before_compression(self, messages: Sequence[JsonObject]) -> str:
        """Words of the parts that a summary of `messages` should keep."""
        return "\n".join(await self._words("before_compression", messages))

    def keep(self, before: Sequence[Message], kept: list[Message]) -> list[Message]:
        """`kept`, and what the parts add to it."""
        for one in self._overriding["keep"]:
            more = self._at_once(one, "keep", one.part.keep, before, kept)
            if isinstance(more, list) and all(isinstance(message, Message) for message in more):
                kept = more
            elif not isinstance(more, PartFault):
                self._failed(one.name, "keep", "the answer is no list of messages")
        return kept

    def carried(self) -> JsonObject:
        """What the parts take along into a session that a compression begins, by their names."""
        found: JsonObject = {}
        for one in self._overriding["carried"]:
            value = self._at_once(one, "carried", lambda part: to_builtins(part.carried(), str_keys=True), one.part)
            if value is not None and not isinstance(value, PartFault):
                found[one.name] = value
        return found

    def around_move(self, old: str, new: str) -> AbstractAsyncContextManager[None]:
        """What the parts do before and after it is stored that the session goes on as `new`."""
        return self._within("around_move", self._managers("around_move", old, new))

    async def session_moved(self, old: str, new: str) -> None:
        for one in self._overriding["session_moved"]:
            await self._answer(one, "session_moved", self._ask(one, "session_moved", old, new))

    async def close(self, *ended: str) -> None:
        self.begin()
        for one in self._overriding["close"]:
            await self._answer(one, "close", self._ask(one, "close", *ended))

    # -- the border --------------------------------------------------------------------------------------------------

    async def _given(self, one: _Joined, method: str, kind: Any, asked: Any) -> Any:
        """The part's answer if it is of this kind; None when there is none."""
        answer = await self._answer(one, method, asked)
        if answer is None or isinstance(answer, kind):
            return answer
        if not isinstance(answer, PartFault):
            self._failed(one.name, method, f"the answer is {type(answer).__name__}")
        return None

    def _ask(self, one: _Joined, method: str, *args: Any, ask: Callable[..., Any] | None = None) -> Any:
        """What `_answer` waits for; None, at once, from a part that has nothing to say."""
        name, part = one
        if self._late and (late := self._late.get((name, method))) is not None:
            return late
        try:
            return (ask or getattr(part, method))(*args)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - as in `_at_once`; nobody cancels here
            return self._failed(name, method, _words(error), error)

    async def _answer(self, one: _Joined, method: str, asked: Any) -> Any:
        """The part's answer, or a `PartFault`. A cancellation of who asks passes through."""
        if asked is None or isinstance(asked, PartFault):
            return asked
        (name, part), task, limit = one, asyncio.current_task(), None
        assert task is not None
        cancels = task.cancelling()
        try:
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
                return self._failed(name, method, _words(error), error)
            fault = self._failed(name, method, f"no answer within {part.limit_s:g} s", error)
            return self._late.setdefault((name, method), fault)
        if task.cancelling() > cancels:
            raise asyncio.CancelledError  # the turn was stopped meanwhile, and the part kept that to itself
        return answer

    def _at_once(self, one: _Joined, method: str, ask: Callable[..., Any], *args: Any) -> Any:
        try:
            return ask(*args)
        except Exception as error:  # noqa: BLE001 - the border to a part's code; it is logged below
            return self._failed(one.name, method, _words(error), error)

    def _failed(self, name: str, method: str, why: str, error: BaseException | None = None) -> PartFault:
        fault = PartFault(f"the part {name!r} failed in {method} ({why})")
        if (name, method) not in self._told:
            self._told.add((name, method))
            log.warning("%s", fault.text, exc_info=error)
            outcome = "the call is denied" if method == "refusal" else "the turn goes on without it"
            (self.tell or self.untold.append)(StatusChanged("warning", f"{fault.text}; {outcome}"))
        return fault

    def _managers(self, method: str, *args: Any) -> list[tuple[_Joined, AbstractAsyncContextManager[None]]]:
        """What the parts put around something; most of them have nothing to do for most calls."""
        found: list[tuple[_Joined, AbstractAsyncContextManager[None]]] = []
        for one in self._overriding[method]:
            each = self._ask(one, method, *args)
            if isinstance(each, AbstractAsyncContextManager):
                found.append((one, each))
            elif each is not None and not isinstance(each, PartFault):
                self._failed(one.name, method, f"the answer is no async context manager, but {type(each).__name__}")
        return found

    @asynccontextmanager
    async def _within(
        self, method: str, managers: "Sequence[tuple[_Joined, AbstractAsyncContextManager[None]]]"
    ) -> AsyncIterator[None]:
        """Enter what the parts put around something, leave it in the opposite order; neither can end what is inside."""
        async with AsyncExitStack() as stack:
            for one, manager in managers:
                entered = await self._answer(one, method, self._ask(one, method, ask=manager.__aenter__))
                if not isinstance(entered, PartFault):
                    stack.push_async_exit(_Leave(self, one, method, manager))
            yield


class _Leave(Struct, frozen=True):
    """The way out of a part's context manager, once it was entered: what it raises or hides is its own affair."""

    parts: JoinedParts
    one: _Joined
    method: str
    manager: AbstractAsyncContextManager[None]

    async def __call__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        async def leave() -> None:
            try:
                await self.manager.__aexit__(kind, error, trace)
            except BaseException as raised:
                if raised is not error:
                    raise

        # A name of its own: who came too late to enter for one call is still to leave for another.
        method = f"{self.method}, on leaving"
        await self.parts._answer(self.one, method, self.parts._ask(self.one, method, ask=leave))


class _PartSource(Struct, frozen=True):
    """A part's words in the prompt; none where it cannot say them."""

    name: str
    tier: Tier
    source: PromptSource
    parts: JoinedParts
    one: _Joined

    async def text(self, session: JsonObject) -> str | PromptText:
        asked = self.parts._ask(self.one, "prompt", session, ask=self.source.text)
        said: str | PromptText = await self.parts._given(self.one, "prompt", str | PromptText, asked) or ""
        return said if isinstance(said, PromptText) else PromptText(said, f"part {self.one.name}" if said else "")


class _Absent(Part):
    """In place of a part with a say that could not be made."""

    def __init__(self, fault: PartFault) -> None:
        self._fault = fault

    async def refusal(self, call: "CallContext") -> str:
        return f"{self._fault.text}, {NO_JUDGE}"


def _overridden(kind: type[Part]) -> tuple[str, ...]:
    if kind not in _OVERRIDDEN:
        _OVERRIDDEN[kind] = tuple([one for one in _METHODS if getattr(kind, one) is not getattr(Part, one)])
    return _OVERRIDDEN[kind]


def _is_content(answer: str | tuple[Any, ...]) -> bool:
    return isinstance(answer, str) or all(isinstance(one, TextPart | ImagePart | OpaquePart) for one in answer)


def _is_tool(tool: Any) -> bool:
    entry, traits = (tool.entry, tool.traits) if isinstance(tool, Registered) else (None, None)
    if not (isinstance(entry, ToolEntry) and isinstance(traits, Traits)):
        return False
    return type(entry.name) is str and type(entry.schema) is dict


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
