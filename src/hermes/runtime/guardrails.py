"""Notice a turn that goes in circles: tell the model first, then end the turn."""

import hashlib
from collections import deque
from collections.abc import Mapping
from functools import partial
from threading import Lock
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field, json

from hermes.tools.registry import tool_error
from hermes.tools.results.tool_result import as_object
from hermes.typed import convert
from hermes.types import Content, JsonObject, ResultStatus, text_of

Action: TypeAlias = Literal["allow", "warn", "block", "halt"]

_CYCLES = (2, 3, 4)
_CYCLE_WARN = 3
_CYCLE_HALT = 5
_FEWEST = _CYCLES[0] * _CYCLE_WARN  # calls that a cycle takes


class Thresholds(Struct, frozen=True, kw_only=True):
    """After how many times something is done about it."""

    exact_failure: int = 2
    same_tool_failure: int = 3
    idempotent_no_progress: int = 2
    no_progress: int = 3


class GuardrailConfig(Struct, frozen=True, kw_only=True):
    """The section `tool_loop_guardrails` of the configuration."""

    warnings_enabled: bool = True
    hard_stop_enabled: bool = True
    warn_after: Thresholds = Thresholds()
    hard_stop_after: Thresholds = Thresholds(
        exact_failure=5, same_tool_failure=8, idempotent_no_progress=5, no_progress=5
    )

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "GuardrailConfig":
        """From the merged configuration; what is not set keeps its default."""
        section: JsonObject = dict(settings.get("tool_loop_guardrails") or {})
        stops = {"exact_failure": 5, "same_tool_failure": 8, "idempotent_no_progress": 5, "no_progress": 5}
        section["hard_stop_after"] = {**stops, **(section.get("hard_stop_after") or {})}
        section["warn_after"] = dict(section.get("warn_after") or {})
        return convert(section, cls)


class GuardrailDecision(Struct, frozen=True, kw_only=True):
    """What is to be done about one call."""

    action: Action = "allow"
    code: str = ""
    message: str = ""
    tool_name: str = ""
    count: int = 0
    signature: str = ""

    def as_json(self) -> str:
        """The result of a call that was blocked."""
        facts = {"code": self.code, "count": self.count, "tool_name": self.tool_name, "signature": self.signature}
        return tool_error(self.message, guardrail=facts)

    def note(self) -> str:
        """The words added to a result."""
        return f"[Tool loop warning: {self.code}; count={self.count}; {self.message}]"


ALLOW = GuardrailDecision()


class Guardrails(Struct):
    """Counts for one turn. Whether a call failed is read from its result's structure, never from its words.

    A call that succeeded and may have changed something makes room again: the counts of what failed or stood still
    before it start anew. Repeating the whole circle is noticed as a cycle.
    """

    config: GuardrailConfig = GuardrailConfig()
    halted: GuardrailDecision | None = None
    _call: tuple[str, JsonObject | str] = ("", "")  # the one that is judged
    _failures: dict[int, int] = field(default_factory=dict)  # by the hash of a call, as the next
    _same: dict[int, tuple[int, int]] = field(default_factory=dict)  # the hash of its result, and how often that came
    _tool_failures: dict[str, int] = field(default_factory=dict)
    _trail: deque[tuple[int, int]] = field(default_factory=partial(deque, maxlen=_CYCLES[-1] * _CYCLE_HALT))
    _warned_cycle: tuple[tuple[int, int], ...] = ()

    def before(self, name: str, args: JsonObject | str, *, read_only: bool = False) -> GuardrailDecision:
        """Whether the call may run at all."""
        if not self.config.hard_stop_enabled or not (self._failures or self._same):
            return ALLOW
        self._call, key = (name, args), hash((name, _args_bytes(args)))
        stop = self.config.hard_stop_after
        failed = self._failures.get(key, 0)
        if failed >= stop.exact_failure:
            return self._stop(
                "block",
                "repeated_exact_failure_block",
                name,
                failed,
                f"{name} failed {failed} times with exactly these arguments; it was not run again.",
            )
        same = self._same.get(key, (0, 0))[1]
        if same >= (stop.idempotent_no_progress if read_only else stop.no_progress):
            code = "idempotent_no_progress_block" if read_only else "no_progress_block"
            return self._stop(
                "block", code, name, same, f"{name} gave the same result {same} times; it was not run again."
            )
        return ALLOW

    def after(
        self,
        name: str,
        args: JsonObject | str,
        content: Content,
        status: ResultStatus,
        *,
        read_only: bool = False,
    ) -> GuardrailDecision:
        """What the result adds to the picture."""
        self._call, key, identity = (name, args), hash((name, _args_bytes(args))), hash(text_of(content))
        self._trail.append((key, identity))
        last, count = self._same.get(key, (0, 0))
        count = count + 1 if last == identity else 1
        if _failed(content, status):
            self._failures[key] = self._failures.get(key, 0) + 1
            self._tool_failures[name] = self._tool_failures.get(name, 0) + 1
            self._same[key] = (identity, count)
            decision = self._judge_failure(name, key)
        else:
            self._tool_failures.pop(name, None)
            if read_only or count > 1:
                self._failures.pop(key, None)
            else:
                self._failures.clear()
                self._same.clear()
            self._same[key] = (identity, count)
            decision = self._judge_standstill(name, count, read_only=read_only)
        if decision is not ALLOW or len(self._trail) < _FEWEST:
            return decision
        return self._judge_cycle(name)

    def _judge_failure(self, name: str, key: int) -> GuardrailDecision:
        warn, stop = self.config.warn_after, self.config.hard_stop_after
        exact, by_tool = self._failures[key], self._tool_failures[name]
        if self.config.hard_stop_enabled and by_tool >= stop.same_tool_failure:
            return self._stop(
                "halt", "same_tool_failure_halt", name, by_tool, f"{name} failed {by_tool} times in a row."
            )
        if exact >= warn.exact_failure:
            text = f"{name} has failed {exact} times with these same arguments; change them or take another way."
            return self._warn("repeated_exact_failure_warning", name, exact, text)
        if by_tool >= warn.same_tool_failure:
            text = f"{name} has failed {by_tool} times this turn; find out why before trying again."
            return self._warn("same_tool_failure_warning", name, by_tool, text)
        return ALLOW

    def _judge_standstill(self, name: str, count: int, *, read_only: bool) -> GuardrailDecision:
        warn = self.config.warn_after
        if count < (warn.idempotent_no_progress if read_only else warn.no_progress):
            return ALLOW
        code = "idempotent_no_progress_warning" if read_only else "no_progress_warning"
        text = f"{name} has given this same result {count} times; use what you have or do something else."
        return self._warn(code, name, count, text)

    def _judge_cycle(self, name: str) -> GuardrailDecision:
        trail = list(self._trail)
        for length in _CYCLES:
            block = tuple(trail[-length:])
            if len(block) < length or len(set(block)) == 1:
                continue
            rounds = 1
            while tuple(trail[-length * (rounds + 1) : -length * rounds]) == block:
                rounds += 1
            if rounds >= _CYCLE_HALT and self.config.hard_stop_enabled:
                text = f"the same {length} calls with the same results came {rounds} times."
                return self._stop("halt", "cycle_halt", name, rounds, text)
            if rounds >= _CYCLE_WARN and set(block) != set(self._warned_cycle):
                self._warned_cycle = block
                text = f"the last {length} calls, with the same results, have come {rounds} times; break the circle."
                return self._warn("cycle_warning", name, rounds, text)
        return ALLOW

    def _warn(self, code: str, name: str, count: int, text: str) -> GuardrailDecision:
        return self._decided("warn", code, name, count, text) if self.config.warnings_enabled else ALLOW

    def _stop(self, action: Action, code: str, name: str, count: int, text: str) -> GuardrailDecision:
        decision = self._decided(action, code, name, count, text)
        self.halted = self.halted or decision
        return decision

    def _decided(self, action: Action, code: str, name: str, count: int, text: str) -> GuardrailDecision:
        call = signature(*self._call)
        return GuardrailDecision(action=action, code=code, message=text, tool_name=name, count=count, signature=call)


def signature(name: str, args: JsonObject | str) -> str:
    """A tool with its arguments, whatever the order of their keys."""
    return f"{name}:{hashlib.sha256(_args_bytes(args)).hexdigest()}"


def _args_bytes(args: JsonObject | str) -> bytes:
    return args.encode("utf-8", "replace") if isinstance(args, str) else json.encode(args, order="sorted")


def _failed(content: Content, status: ResultStatus) -> bool:
    """A call that did not end well, or a command that left with another code than 0."""
    if status != "ok":
        return True
    if not isinstance(content, str) or '"exit_code"' not in content:
        return False
    code = (as_object(content) or {}).get("exit_code")
    return isinstance(code, int) and code != 0


class IterationBudget:
    """A thread-safe count. A parent hands the same one to its children so that together they stay within it."""

    def __init__(self, max_total: int) -> None:
        self.max_total = max_total
        self._used = 0
        self._lock = Lock()  # guards _used

    def consume(self) -> bool:
        """Take one iteration; False when none is left."""
        with self._lock:
            if self._used >= self.max_total:
                return False
            self._used += 1
            return True

    def refund(self) -> None:
        """Give back one that was taken."""
        with self._lock:
            self._used = max(0, self._used - 1)

    @property
    def used(self) -> int:
        return self._used

    @property
    def remaining(self) -> int:
        return max(0, self.max_total - self._used)
