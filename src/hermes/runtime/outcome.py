"""How a turn ended, and the dict the contract promises to say so."""

from operator import attrgetter
from typing import Any

from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from hermes.types import JsonObject, ToolCall, ToolResult, TurnFinished, Usage, text_of

_EXTRAS = ("error", "error_reason", "interrupt_message", "pending_steer", "guardrail")  # told when there are some
_VERDICT = (
    "exit_reason",
    "final_response",
    "completed",
    "partial",
    "interrupted",
    "failed",
    "error",
    "error_reason",
    "api_calls",
    "files_changed",
    "commands",
    "failed_calls",
)
_extras = attrgetter(*_EXTRAS)
_NO_EXTRAS = (None,) * len(_EXTRAS)


class Outcome(Struct):
    """Filled in while a turn runs; complete when it ends."""

    final_response: str = ""
    exit_reason: str = ""
    completed: bool = False
    partial: bool = False
    interrupted: bool = False
    failed: bool = False
    error: str | None = None
    error_reason: str | None = None
    api_calls: int = 0
    last_reasoning: str | None = None
    last_prompt_tokens: int = 0
    streamed: bool = False
    model: str = ""
    provider: str = ""
    base_url: str = ""
    interrupt_message: str | None = None
    pending_steer: str | None = None
    guardrail: JsonObject | None = None
    totals: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)  # tokens of the session, in the order of `Usage`
    cost_usd: float | None = 0.0
    cost_source: str = "none"
    files_changed: list[str] = field(default_factory=list)
    commands: list[JsonObject] = field(default_factory=list)
    failed_calls: list[JsonObject] = field(default_factory=list)
    output: Any = UNSET  # the answer as data, when such was wanted and it fits

    def end(self, reason: str, text: str = "", *, completed: bool = False, partial: bool = False, **more: Any) -> None:
        """Close the turn; the first ending stands."""
        if self.exit_reason:
            return
        if "<memory-context>" in text:
            from hermes.runtime.memory_fence import MemoryFence  # paid by answers that repeat what was recalled

            fence = MemoryFence()
            text = fence.add(text) + fence.rest()
        self.exit_reason, self.final_response, self.completed, self.partial = reason, text, completed, partial
        for name, value in more.items():
            setattr(self, name, value)

    def saw(self, call: ToolCall, result: ToolResult) -> None:
        """Keep what the call really did, for the record of the turn."""
        if details := result.details:
            if details.get("command"):
                self.commands.append({"command": details["command"], "exit_code": details.get("exit_code")})
            for path in details.get("files_changed", ()):
                if path not in self.files_changed:
                    self.files_changed.append(path)
        if result.status != "ok":
            text = text_of(result.content)
            self.failed_calls.append({"name": call.name, "status": result.status, "error": text[:500]})

    def spent(self, usage: Usage, cost_usd: float | None, source: str) -> None:
        """Add one attempt. A single unknown price makes the sum unknown; it is never counted as nothing."""
        inp, out, read, write, reasoning = self.totals
        self.totals = (
            inp + (usage.input_tokens or 0),
            out + (usage.output_tokens or 0),
            read + (usage.cache_read_tokens or 0),
            write + (usage.cache_write_tokens or 0),
            reasoning + (usage.reasoning_tokens or 0),
        )
        self.cost_usd = None if cost_usd is None or self.cost_usd is None else self.cost_usd + cost_usd
        self.cost_source = source

    def record(self, session_id: str, turn_id: str) -> TurnFinished:
        return TurnFinished(
            session_id=session_id,
            turn_id=turn_id,
            exit_reason=self.exit_reason,
            completed=self.completed,
            api_calls=self.api_calls,
            files_changed=tuple(self.files_changed),
            commands=tuple(self.commands),
            failed_calls=tuple(self.failed_calls),
        )

    def verdict(self) -> JsonObject:
        """What listeners are told of the end, of which nothing is told that is not so."""
        told = {name: getattr(self, name) for name in _VERDICT}
        return {name: value for name, value in told.items() if value}

    def as_dict(self, session_id: str, messages: list[JsonObject]) -> dict[str, Any]:
        """The keys of the contract; token fields are session totals."""
        inp, out, read, write, reasoning = self.totals
        result: dict[str, Any] = {
            "final_response": self.final_response,
            "last_reasoning": self.last_reasoning,
            "messages": messages,
            "api_calls": self.api_calls,
            "completed": self.completed,
            "turn_exit_reason": self.exit_reason,
            "partial": self.partial,
            "interrupted": self.interrupted,
            "failed": self.failed,
            "response_previewed": self.streamed,
            "response_transformed": False,
            "model": self.model,
            "provider": self.provider,
            "base_url": self.base_url,
            "session_id": session_id,
            "input_tokens": inp,
            "output_tokens": out,
            "cache_read_tokens": read,
            "cache_write_tokens": write,
            "reasoning_tokens": reasoning,
            "prompt_tokens": inp + read + write,
            "completion_tokens": out,
            "total_tokens": inp + read + write + out,
            "last_prompt_tokens": self.last_prompt_tokens,
            "estimated_cost_usd": self.cost_usd,
            "cost_status": "unknown" if self.cost_usd is None else "estimated",
            "cost_source": self.cost_source,
            "files_changed": self.files_changed,
            "commands": self.commands,
            "failed_calls": self.failed_calls,
        }
        if self.output is not UNSET:
            result["output"] = self.output
        extras = _extras(self)
        if extras != _NO_EXTRAS:
            result |= {name: value for name, value in zip(_EXTRAS, extras, strict=True) if value is not None}
        return result


class Ending(Struct, frozen=True):
    """How a turn ends with an answer, as soon as that is stored."""

    reason: str
    text: str
    completed: bool = False
    partial: bool = False
    error: str | None = None
    failed: bool = False
    error_reason: str | None = None
    output: Any = UNSET

    def apply(self, outcome: Outcome) -> None:
        """End the turn so."""
        more = {name: getattr(self, name) for name in ("error", "failed", "error_reason", "output")}
        outcome.end(self.reason, self.text, completed=self.completed, partial=self.partial, **more)

    def of(self, outcome: Outcome) -> Outcome:
        """`outcome` as it is then."""
        ended = replace(outcome)
        self.apply(ended)
        return ended
