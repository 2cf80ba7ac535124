"""Compress a session that grew too long: what it says is summed up, and it goes on under another id.

The order is fixed: everything pending is stored; the engine shortens; what the agent's parts keep and the context of
kept messages come along; the prompt is built anew; the parts make ready, so that large results are linked; then one
commit ends the old session and begins the new one. Until that commit the old session is untouched, and whatever fails
leaves it so.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from hermes.config.sections import compression as compression_section
from hermes.config.sections import context as context_section
from hermes.context.compressor import MAX_IDLE, ContextCompressor, SummaryRequest
from hermes.context.limits import tokens_of
from hermes.context.summary import is_summary, parted
from hermes.dicts import from_dict, to_dict
from hermes.errors import HermesError, SessionMoved, StoreError, UserError
from hermes.models.auxiliary import AuxiliaryQuestion
from hermes.ops import ContextAttached, MessageAppended, SessionChanged, SessionContinued, SessionCreated, StoreOp
from hermes.ops import SessionRecord as Record
from hermes.runtime.session.context_watch import ContextWatch
from hermes.runtime.session.history import CARRIED, from_record
from hermes.runtime.session.tool_refresh import refreshed
from hermes.runtime.setup.environment_setup import rename_session
from hermes.scope import TurnScope
from hermes.seams import ContextEngine, Sink
from hermes.tools.files.file_memory import forget_shown
from hermes.types import JsonObject, Message, PrefixBroken, SessionRotated, StatusChanged, text_of

if TYPE_CHECKING:
    from hermes.runtime.setup.assembly import Assembly

TASK: Final = "compression"
MAX_TRIES = 3  # to commit, while another process writes to the session
ADVICE = "begin anew with /new, or say what matters with /compress TOPIC"
log = logging.getLogger(__name__)


class CompressionRequest(Struct, frozen=True, kw_only=True):
    """What is to be compressed, and why.

    `force` is for a person who asked or a provider that refused: neither a cool-down nor thrashing stands in its way.
    `past` is the history where a caller brought one; else the store's is taken. `window` is what fits, where a
    refusal has shown that to be less than was thought.
    """

    session_id: str
    sink: Sink
    scope: TurnScope
    tokens: int = 0
    focus: str = ""
    force: bool = False
    past: Sequence[Message] | None = None
    window: int | None = None
    model_config: JsonObject | None = None


class Compressed(Struct, frozen=True, kw_only=True):
    """The session that goes on, and what became shorter."""

    record: Record
    system: str
    previous: str
    before: Sequence[Message]
    tokens_before: int
    tokens_after: int

    def as_dict(self) -> dict[str, Any]:
        """For surfaces: numbers, the id that goes on, and the summary."""
        after = self.record.messages
        summary = next((text_of(parted(one)[0].content) for one in after if is_summary(one)), "")
        return {
            "status": "compressed",
            "session_id": self.record.session_id,
            "previous_session_id": self.previous,
            "removed": len(self.before) - len(after),
            "before_messages": len(self.before),
            "after_messages": len(after),
            "before_tokens": self.tokens_before,
            "after_tokens": self.tokens_after,
            "summary": summary,
        }


class Compression:
    """Compresses the sessions of one agent. `prompt` builds the prompt of the session that takes over."""

    def __init__(
        self, assembly: "Assembly", prompt: Callable[[str, JsonObject], Awaitable[str]], watch: ContextWatch
    ) -> None:
        self._assembly = assembly
        self._prompt = prompt
        self._engine: ContextEngine = assembly.options.session.context_engine or self._configured()
        self._watch = watch
        watch.uses(self._engine)
        self._asked_by: CompressionRequest | None = None
        self._is_checked = False
        self.why_not = ""  # of the last one that did not come to be

    async def run(self, wish: CompressionRequest) -> Compressed | None:
        """Compress; None when the session stays as it is, and `why_not` says why."""
        self._asked_by = wish
        for _ in range(MAX_TRIES):
            record = await self._settled(wish.session_id)
            if record is None:
                return self._stay("nothing was said in this session yet")
            if record.continued_by:
                return self._stay(f"the session goes on as {record.continued_by}")
            if not self._may(wish, record):
                return None
            try:
                return await self._once(wish, record)
            except SessionMoved as error:
                log.info("the compression of %s is done again: %s", wish.session_id, error)
        return self._stay("another process keeps writing to this session")

    async def _once(self, wish: CompressionRequest, record: Record) -> Compressed | None:
        before = list(wish.past if wish.past is not None else record.messages)
        told = [to_dict(message) for message in before]
        if not self._watch.call_engine("has_content_to_compress", True, told, sink=wish.sink):
            return self._stay("there is nothing in it that could be summed up")
        self._check_once(wish)
        wish.sink.emit(StatusChanged(TASK, f"summing up {len(before)} messages to make room"))
        words = await self._assembly.services.parts.before_compression(told)
        asked = replace(wish, focus="\n".join(filter(None, (wish.focus, words)))) if words else wish
        shorter = await self._shortened(asked, told)
        if shorter is None:
            await self._note_failure(wish, record)
            return None
        kept = self._assembly.services.parts.keep(before, shorter)
        return await self._rotated(wish, record, before, kept)

    async def _shortened(self, wish: CompressionRequest, messages: list[JsonObject]) -> list[Message] | None:
        """What the engine makes of `messages`; None when they stay, and its `last_error` may say why."""
        engine = self._engine
        engine.last_error = ""
        try:
            made = engine.compress(messages, wish.tokens or None, wish.focus or None)
            shorter = await made if inspect.isawaitable(made) else made
            _refuse_invalid(messages, shorter)
            kept = [from_dict(message) for message in shorter]
        except Exception as error:  # the border to an engine of one's own: nothing it raises may end the turn
            log.exception("context engine %r failed in compress", engine.name)
            engine.last_error = f"the context engine failed: {type(error).__name__}: {error}"
            return None
        return None if not kept or shorter is messages or shorter == messages else kept

    async def _rotated(
        self, wish: CompressionRequest, record: Record, before: Sequence[Message], kept: list[Message]
    ) -> Compressed:
        services, old = self._assembly.services, record.session_id
        new, now = services.ids.session(), services.clock.now()
        config = wish.model_config if wish.model_config is not None else dict(record.model_config or {})
        config = {name: value for name, value in config.items() if name != CARRIED}
        if carried := services.parts.carried():
            config[CARRIED] = carried
        system = await self._prompt(new, config)
        child = SessionCreated(
            session_id=new,
            source=record.source,
            model=record.model,
            model_config=config,
            system_prompt=system,
            tool_definitions=await refreshed(self._assembly, record),
            parent_session_id=old,
            cwd=record.cwd,
            started_at=now,
        )
        last_row = record.messages[-1].id or 0 if record.messages else 0
        begun = SessionContinued(session_id=old, child=child, last_row=last_row, at=now)
        async with services.parts.around_move(old, new):
            await services.store.commit(begun, *_rows(new, kept, _contexts(record, kept)), *self._streak(new))
        made = await services.store.load(new)
        if made is None:
            raise StoreError(f"session {new!r} was stored and cannot be read")
        await self._settle_in(wish, before, old, made)
        tokens_before, tokens_after = tokens_of(before), tokens_of(made.messages)
        told = f"{len(before)} messages are {len(kept)} now; the session goes on as {new}"
        wish.sink.emit(StatusChanged(TASK, told))
        wish.sink.emit(PrefixBroken("compression", wish.tokens or tokens_before))
        wish.sink.emit(SessionRotated(session_id=new, previous=old))
        log.info("session %s goes on as %s (%s messages, then %s)", old, new, len(before), len(kept))
        return Compressed(
            record=made,
            system=system,
            previous=old,
            before=before,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
        )

    async def _settle_in(self, wish: CompressionRequest, before: Sequence[Message], old: str, made: Record) -> None:
        """Whoever knows the session by its id learns the new one; files that were shown may be shown again."""
        services = self._assembly.services
        self._assembly.store.follow(made)
        forget_shown(services.memo)
        self._watch.moved(old, [to_dict(message) for message in before], made.session_id)
        await services.parts.session_moved(old, made.session_id)
        await rename_session(services.environment, made.session_id, wish.scope)

    # -- whether ------------------------------------------------------------------------------------------------------

    def _may(self, wish: CompressionRequest, record: Record) -> bool:
        engine = self._engine
        self._watch.introduce(wish.window or 0)
        if isinstance(engine, ContextCompressor):
            engine.cool_down_until = max(engine.cool_down_until, record.compress_after)
            engine.idle_compressions = max(engine.idle_compressions, record.idle_compressions)
            engine.summary_window = self._summary_window()
            if engine.is_thrashing and not wish.force:
                self._stay(f"the last {MAX_IDLE} compressions hardly made it shorter: {ADVICE}")
                wish.sink.emit(StatusChanged("warning", f"the conversation is long, and {self.why_not}"))
                return False
            if not wish.force and not engine.should_compress(wish.tokens):
                self._stay("a compression failed a short while ago")
                return False
        return True

    def _stay(self, why: str) -> Compressed | None:
        """The session stays as it is."""
        self.why_not = why
        return None

    def _summary_window(self) -> int | None:
        try:
            return self._assembly.auxiliary.window(TASK)
        except HermesError:
            return None  # it is told when it is asked

    def _check_once(self, wish: CompressionRequest) -> None:
        """Say, once, when the model for summaries reads less than it will be given."""
        window, own = self._summary_window(), self._assembly.client.window.tokens
        if self._is_checked or not window:
            return
        self._is_checked = True
        if window < own // 2:
            told = f"the model for summaries reads {window:,} tokens; long conversations reach it in pieces"
            wish.sink.emit(StatusChanged("warning", told))

    async def _note_failure(self, wish: CompressionRequest, record: Record) -> None:
        """Leave the session alone for a while, in every process."""
        engine = self._engine
        if not engine.last_error:
            self._stay("a summary would hardly be shorter")
            changes: JsonObject = {"compression_fallback_streak": getattr(engine, "idle_compressions", 0)}
        else:
            self._stay(f"no summary could be had ({engine.last_error})")
            told = f"{self.why_not}; nothing was left out, and the conversation goes on as it was"
            wish.sink.emit(StatusChanged("warning", told))
            until = getattr(engine, "cool_down_until", 0.0)
            error = self._assembly.services.redactor.redact(engine.last_error)
            changes = {"compression_failure_cooldown_until": until, "compression_failure_error": error}
        await self._assembly.services.store.commit(SessionChanged(record.session_id, changes))

    def _streak(self, session_id: str) -> list[StoreOp]:
        count = getattr(self._engine, "idle_compressions", 0)
        return [SessionChanged(session_id, {"compression_fallback_streak": count})] if count else []

    async def _settled(self, session_id: str) -> Record | None:
        """The session; calls that a crash left open are answered first."""
        store = self._assembly.services.store
        record = await store.load(session_id)
        if record is None or not record.open_calls:
            return record
        await store.commit(*from_record(record)[1])
        return await store.load(session_id)

    # -- the default engine -------------------------------------------------------------------------------------------

    def _configured(self) -> ContextEngine:
        if self._assembly.settings.of(context_section.Section).engine == "none":
            raise UserError(
                "context.engine is 'none', so nothing is compressed; see: hermes config explain context.engine"
            )
        return self._compressor()

    def _compressor(self) -> ContextCompressor:
        section = self._assembly.settings.of(compression_section.Section)
        return ContextCompressor(
            self._summarise,
            threshold_percent=section.threshold,
            protect_first_n=section.protect_first_n,
            protect_last_n=section.protect_last_n,
            summary_target_ratio=section.target_ratio,
            now=self._assembly.services.clock.now,
        )

    async def _summarise(self, request: SummaryRequest) -> str:
        assert self._asked_by is not None
        question = AuxiliaryQuestion(
            task=TASK,
            system=request.system,
            text=request.text,
            session_id=self._asked_by.session_id,
            max_tokens=request.max_tokens,
            on_main=request.on_main,
            on_status=self._asked_by.sink.emit,
        )
        return await self._assembly.auxiliary.ask(question, self._asked_by.scope)


def _refuse_invalid(before: list[JsonObject], shorter: Any) -> None:
    """`ValueError` for what no session can begin with: then nothing is changed."""
    if not isinstance(shorter, list) or not all(isinstance(one, Mapping) for one in shorter):
        raise ValueError("it gave no list of messages")
    asked: set[str] = set()
    for one in shorter:
        if one.get("role") not in ("user", "assistant", "tool", "system"):
            raise ValueError(f"it gave a message whose role is {one.get('role')!r}")
        if one.get("role") == "tool" and one.get("tool_call_id") not in asked:
            raise ValueError("it gave a result without its call")
        asked.update(str(call.get("id")) for call in one.get("tool_calls") or () if isinstance(call, Mapping))
    if len(shorter) > len(before):
        raise ValueError(f"it made {len(shorter)} messages of {len(before)}")


def _rows(session_id: str, kept: Sequence[Message], contexts: Mapping[int, str]) -> list[StoreOp]:
    rows: list[StoreOp] = []
    for place, message in enumerate(kept):
        rows.append(MessageAppended(session_id, replace(message, id=None)))
        if place in contexts:
            rows.append(ContextAttached(session_id, contexts[place]))
    return rows


def _contexts(record: Record, kept: Sequence[Message]) -> dict[int, str]:
    """The context of messages that stay as they were: at the end, and the newest question before them."""
    found: dict[int, str] = {}
    stored = list(record.messages)
    place = len(kept) - 1
    while stored and place >= 0 and _same(stored[-1], kept[place]):
        _note(found, place, record, stored.pop())
        place -= 1
    asked = next((one for one in reversed(stored) if one.role == "user"), None)
    while place >= 0 and kept[place].role != "user":
        place -= 1
    if asked is not None and place >= 0 and _same(asked, kept[place]):
        _note(found, place, record, asked)
    return found


def _note(found: dict[int, str], place: int, record: Record, message: Message) -> None:
    if context := record.contexts.get(message.id or -1):
        found[place] = context


def _same(stored: Message, kept: Message) -> bool:
    kept = parted(kept)[-1]
    return (stored.role, stored.content, stored.tool_call_id) == (kept.role, kept.content, kept.tool_call_id)
