"""What a server may ask of us while it works on a call: a person's answer, a model's answer, where the work is.

Everything it asks belongs to a call that is under way. Without one nobody is asked and no model is called.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from hermes.errors import HermesError, ToolError
from hermes.seams import AsksUser, ToolContext
from hermes.tools.mcp.call_clock import CallClock, CallUnderWay
from hermes.tools.mcp.server_config import ServerConfig

if TYPE_CHECKING:
    from mcp_types import CreateMessageResult, ElicitResult, ErrorData, ListRootsResult

DECLINE = "decline"
MAX_FIELDS = 20
MAX_MESSAGE = 2000
MAX_SAMPLING_CHARS = 400_000
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
log = logging.getLogger(__name__)


class SampleRequest(Struct, frozen=True, kw_only=True):
    """A model call that a server wants."""

    system: str
    text: str
    max_tokens: int
    model: str  # empty is the usual one
    timeout_s: float


class SampleAnswer(Struct, frozen=True):
    """What the model said."""

    text: str
    model: str
    stopped: str  # as the protocol calls it


class Sampler(Protocol):
    """The one model client, behind whoever introduced it."""

    def model_for(self, wanted: str) -> str:
        """The name of the model that would answer."""
        ...

    async def sample(self, asked: SampleRequest, ctx: ToolContext) -> SampleAnswer: ...


async def _contained(work: Awaitable[str]) -> str | ToolError:
    """A refusal as a value: raised within a group it would come out as a group."""
    try:
        return await work
    except ToolError as error:
        return error


class ServerRequests:
    """Answers one server."""

    def __init__(self, config: ServerConfig, roots: Callable[[], str], sampler: Sampler | None) -> None:
        self._server = config.name
        self._sampling = config.entry.sampling
        self._roots = roots
        self._sampler = sampler
        self._times: deque[float] = deque()
        self.clock = CallClock(config.entry.timeout)

    @property
    def may_sample(self) -> bool:
        return self._sampling.enabled and self._sampler is not None

    @property
    def _newest(self) -> CallUnderWay | None:
        return self.clock.calls[-1] if self.clock.calls else None

    async def list_roots(self, context: Any) -> "ListRootsResult":
        """The folder that the session works in, and nothing else."""
        from mcp_types import ListRootsResult, Root

        folder = self._roots()
        return ListRootsResult(
            roots=[Root.model_validate({"uri": Path(folder).as_uri(), "name": Path(folder).name or "/"})]
        )

    # -- a person's answer --------------------------------------------------------------------------------------------

    async def elicit(self, context: Any, params: Any) -> "ElicitResult | ErrorData":
        """Put the server's questions to the person, one field after another. Nobody there is no consent."""
        from mcp_types import ElicitResult

        call = self._newest
        if call is None:
            return _error("nothing was called, so nobody is asked")
        message = f"The MCP server {self._server!r} asks: {str(params.message)[:MAX_MESSAGE]}"
        try:
            if params.mode == "url":
                text = f"{message}\nIt wants you to open {params.url} and to say when you are done."
                said = await self._ask(call, text, ["done", DECLINE])
                return ElicitResult(action="accept" if said == "done" else "decline")
            content = await self._form(call, message, params.requested_schema)
        except ToolError as error:
            log.info("a question of the MCP server %r was not answered: %s", self._server, error)
            return ElicitResult(action="cancel")
        return ElicitResult(action="decline") if content is None else ElicitResult(action="accept", content=content)

    async def _ask(self, call: CallUnderWay, question: str, choices: Sequence[str] | None) -> str:
        """What the person says; `ToolError` when nobody does. It is asked from where the call was made."""
        ctx = call.ctx
        if not isinstance(ctx, AsksUser):
            raise ToolError("nobody can be asked here")
        self.clock.pause(call)
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(_contained(ctx.ask_user(question, choices)), context=call.context)
            said = task.result()
        finally:
            self.clock.resume(call)
        if isinstance(said, ToolError):
            raise said
        return said

    async def _form(self, call: CallUnderWay, message: str, schema: Any) -> dict[str, Any] | None:
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        fields = list(properties.items())[:MAX_FIELDS] if isinstance(properties, Mapping) else []
        if not fields:
            return {} if await self._ask(call, message, ["accept", DECLINE]) == "accept" else None
        required = schema.get("required") or ()
        content: dict[str, Any] = {}
        for name, field in fields:
            facts = field if isinstance(field, Mapping) else {}
            what = " ".join(str(facts.get(key)) for key in ("title", "description") if facts.get(key)) or str(name)
            needed = name in required
            choices = _choices(facts)
            hint = f"({name}, {facts.get('type', 'text')}{'' if needed else ', may be left empty'})"
            text = f"{message}\n{what[:MAX_MESSAGE]} {hint}" + ("" if choices else f"; say {DECLINE!r} to refuse")
            said = (await self._ask(call, text, [*choices, DECLINE] if choices else None)).strip()
            if said.lower() == DECLINE:
                return None
            if said or needed:
                content[str(name)] = _value(said, facts)
        return content

    # -- a model's answer ---------------------------------------------------------------------------------------------

    async def sample(self, context: Any, params: Any) -> "CreateMessageResult | ErrorData":
        """Ask the one model client, within the caps of this server."""
        from mcp_types import CreateMessageResult, TextContent

        call, caps = self._newest, self._sampling
        if call is None or self._sampler is None or not caps.enabled:
            return _error("no call is under way that a model could be asked for")
        if self._is_too_often():
            return _error(f"more than {caps.max_rpm} model calls in a minute")
        model = self._sampler.model_for(caps.model)
        if caps.allowed_models and model not in caps.allowed_models:
            return _error(f"the model {model!r} is none of those that this server may use")
        text = _conversation(params.messages)
        if len(text) > MAX_SAMPLING_CHARS:
            return _error(f"the messages have {len(text)} characters, more than {MAX_SAMPLING_CHARS}")
        asked = SampleRequest(
            system=str(params.system_prompt or ""),
            text=text,
            max_tokens=max(1, min(int(params.max_tokens), caps.max_tokens_cap)),
            model=caps.model,
            timeout_s=caps.timeout,
        )
        log.log(_LEVELS[caps.log_level], "the MCP server %r asks %s for an answer", self._server, model)
        try:
            async with asyncio.timeout(caps.timeout):
                said = await self._sampler.sample(asked, call.ctx)
        except TimeoutError:
            return _error(f"no answer within {caps.timeout:g} s")
        except HermesError as error:
            return _error(str(error))
        content = TextContent(type="text", text=said.text)
        return CreateMessageResult(role="assistant", content=content, model=said.model, stop_reason=said.stopped)

    def _is_too_often(self) -> bool:
        now = time.monotonic()
        while self._times and now - self._times[0] > 60:
            self._times.popleft()
        if len(self._times) >= self._sampling.max_rpm:
            return True
        self._times.append(now)
        return False


def _error(text: str) -> "ErrorData":
    from mcp_types import INVALID_REQUEST, ErrorData

    return ErrorData(code=INVALID_REQUEST, message=text)


def _choices(facts: Mapping[str, Any]) -> list[str]:
    if facts.get("type") == "boolean":
        return ["yes", "no"]
    options = facts.get("enum") or [one.get("const") for one in facts.get("oneOf") or () if isinstance(one, Mapping)]
    return [str(one) for one in options][:50] if isinstance(options, list) else []


def _value(said: str, facts: Mapping[str, Any]) -> Any:
    """What was said in the type that was asked for; `ToolError` when it is nothing of the kind."""
    kind = facts.get("type")
    if kind == "boolean":
        return said.lower() in ("yes", "true", "y", "1", "on")
    if kind in ("integer", "number"):
        try:
            return int(said) if kind == "integer" else float(said)
        except ValueError as error:
            raise ToolError(f"{said!r} is no {kind}") from error
    return [one.strip() for one in said.split(",")] if kind == "array" else said


def _conversation(messages: Sequence[Any]) -> str:
    """The messages as one text; a single one as it is."""
    parts = [(str(one.role), _text(one.content)) for one in messages]
    if len(parts) == 1:
        return parts[0][1]
    return "\n\n".join(f"{role}: {text}" for role, text in parts)


def _text(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(str(getattr(block, "text", None) or f"[{block.type}]") for block in blocks)
