"""`ExternalAgent`: a `Model` that is another agent. It is asked in words, and answers in words."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from io import StringIO

from msgspec.structs import replace

from hermes.errors import ProviderError
from hermes.models.endpoint import Endpoint
from hermes.models.external.agent_process import AgentProcess, AgentProgram, AgentReply
from hermes.scope import TurnScope
from hermes.seams import ModelRequest, Supervisor, Unit
from hermes.types import JsonObject, Message, ModelEvent, ModelResponse, ReasoningDelta, TextDelta, Usage, text_of

MOST_TOKENS = 1 << 53  # whatever is more is no count
_RULE = (
    "You answer for another agent runtime. Answer in words. You cannot write files or run commands here: every "
    "permission that you ask for is refused."
)


class ExternalAgent:
    """One program behind one agent. A conversation that goes on is one session of it, told what is new.

    The runtime, which knows who starts processes, sets `supervisor` before the first call, and closes it.
    """

    def __init__(self, endpoint: Endpoint, program: AgentProgram) -> None:
        self._endpoint = endpoint
        self._program = program
        self._process: AgentProcess | None = None
        self._asking = asyncio.Lock()  # guards the one conversation that the program has with us
        self._session = ""
        self._told: list[Unit] = []  # what the program's session knows
        self.supervisor: Callable[[], Supervisor] | None = None

    @property
    def name(self) -> str:
        return self._endpoint.model

    @property
    def provider(self) -> str:
        return self._endpoint.provider

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url

    @property
    def endpoint(self) -> Endpoint:
        return self._endpoint

    def work_in(self, folder: str) -> None:
        """The folder that the program is started in; before the first call."""
        self._program = replace(self._program, cwd=folder)

    async def stream(self, request: ModelRequest, scope: TurnScope) -> AsyncIterator[ModelEvent]:
        async with self._asking:
            process = await self._started()
            prompt = await self._prompt(process, request)
            session, self._session = self._session, ""  # what it makes of a prompt that is given up is not known
            answer, done = _Answer(self._endpoint), None
            asked = {"sessionId": session, "prompt": prompt}
            try:
                async for said in process.exchange("session/prompt", asked):
                    if isinstance(said, AgentReply):
                        done = said.result
                    elif delta := _delta(said):
                        answer.add(delta)
                        yield delta
            except (GeneratorExit, asyncio.CancelledError, ProviderError):
                await process.stop()
                raise
            self._session, self._told = session, list(request.units)
            yield ModelResponse(message=answer.message, finish_reason="stop", usage=_usage(done), model=self.name)

    async def aclose(self) -> None:
        """Stop the program; the next call starts it again."""
        self._session = ""
        if self._process is not None:
            await self._process.stop()

    async def _started(self) -> AgentProcess:
        if self.supervisor is None:
            raise ProviderError("another agent serves an agent's own calls only", reason="model_not_found")
        if self._process is None:
            self._process = AgentProcess(self._program, self.supervisor(), self._endpoint)
        if not self._process.is_running:
            self._session = ""
            await self._process.start()
        return self._process

    async def _prompt(self, process: AgentProcess, request: ModelRequest) -> list[JsonObject]:
        """What is new since the program was last asked; everything, in a session of its own, when that was other."""
        known = len(self._told)
        goes_on = bool(self._session) and all(
            one is other for one, other in zip(self._told, request.units[:known], strict=False)
        )
        if goes_on and known < len(request.units):
            return _blocks("", [unit for unit in request.units[known:] if unit.messages[0].role != "assistant"])
        made = await process.ask("session/new", {"cwd": self._program.cwd, "mcpServers": []})
        if not isinstance(made, dict) or not isinstance(made.get("sessionId"), str):
            raise ProviderError(f"{self._program.argv[0]!r} does not name the session it began", reason="format_error")
        self._session = made["sessionId"]
        return _blocks(f"{request.system}\n\n{_RULE}", request.units)


class _Answer:
    """The words of an answer so far, held to what one may come to."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._name = endpoint.model
        self._limits = endpoint.answer
        self._text, self._thought = StringIO(), StringIO()  # many small pieces would take many times the memory

    def add(self, delta: TextDelta | ReasoningDelta) -> None:
        """Take a piece; `ProviderError` when that is too much."""
        is_text = isinstance(delta, TextDelta)
        kept = self._text if is_text else self._thought
        kept.write(delta.text)
        most = self._limits.max_chars if is_text else self._limits.max_thinking_chars
        if kept.tell() > most:
            what, setting = ("text", "max_chars") if is_text else ("reasoning", "max_thinking_chars")
            said = f"{most:,} characters of {what}, the most that agent.answer.{setting} allows"
            raise ProviderError(f"{self._name!r} sent more than {said}", reason="server_error")

    @property
    def message(self) -> Message:
        return Message(role="assistant", content=self._text.getvalue(), reasoning=self._thought.getvalue() or None)


def _blocks(system: str, units: Sequence[Unit]) -> list[JsonObject]:
    parts = [system] if system else []
    is_alone = len(units) == 1
    for unit in units:
        for message in unit.messages:
            words = text_of(message.content)
            parts.append(words if is_alone and message.role == "user" else f"[{message.role}]\n{words}")
        if unit.context:
            parts.append(unit.context)
    return [{"type": "text", "text": "\n\n".join(part for part in parts if part)}]


def _delta(update: JsonObject) -> TextDelta | ReasoningDelta | None:
    content = update.get("content")
    text = str(content.get("text") or "") if isinstance(content, dict) else ""
    match update.get("sessionUpdate"):
        case "agent_message_chunk" if text:
            return TextDelta(text)
        case "agent_thought_chunk" if text:
            return ReasoningDelta(text)
        case _:
            return None


def _usage(done: object) -> Usage:
    told = done.get("usage") if isinstance(done, dict) else None
    if not isinstance(told, dict):
        return Usage()

    def count(name: str) -> int | None:
        value = told.get(name)
        return value if isinstance(value, int) and 0 <= value < MOST_TOKENS else None

    return Usage(
        input_tokens=count("inputTokens"), output_tokens=count("outputTokens"), reasoning_tokens=count("thoughtTokens")
    )
