"""Hooks around a turn's requests and at its end: told of each request, and asked about the answer."""

from collections.abc import Mapping, Sequence
from time import perf_counter, time
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from hermes.dicts import from_dict, to_dict
from hermes.errors import ProviderError
from hermes.hook_points import LazyView, plain_copy
from hermes.models.client import CallPlan, ModelAnswer
from hermes.runtime.outcome import Outcome
from hermes.runtime.requests import build_units, sendable
from hermes.runtime.turn import Turn
from hermes.seams import HookBus, ModelRequest, Unit
from hermes.tools.hooks import Hooks
from hermes.tools.view import definition_of
from hermes.types import JsonObject, PrefixBroken, ToolDefinition, text_of

OF_REQUESTS = frozenset({"pre_api_request", "post_api_request", "api_request_error", "llm_request", "llm_execution"})
OF_ENDS = frozenset({"transform_llm_output", "post_llm_call", "on_session_end"})
_FIXED = ("model", "stream", "messages", "tools", "max_tokens")


def heard(hooks: HookBus, names: frozenset[str]) -> Hooks | None:
    """The bus, when somebody listens to one of these."""
    return hooks if isinstance(hooks, Hooks) and not hooks.heard.isdisjoint(names) else None


async def ended(hooks: Hooks, turn: Turn, outcome: Outcome, platform: str) -> None:
    """A turn is over and stored: the answer as transforms leave it is in `outcome` afterwards."""
    ctx = turn.ctx
    ids = {"task_id": ctx.task_id, "session_id": ctx.session_id, "turn_id": ctx.turn_id}
    about = {**ids, "model": outcome.model, "platform": platform}
    text = outcome.final_response if outcome.completed and not outcome.interrupted else None
    if text:
        changed = await hooks.transform("transform_llm_output", text, {**about, "response_text": text})
        outcome.final_response = ctx.services.redactor.redact(changed) if changed is not text else text
        said = {"user_message": turn.history.last_user, "assistant_response": outcome.final_response}
        history = LazyView.of(turn.history.dicts)
        await hooks.observe("post_llm_call", {**about, **said, "conversation_history": history})
    ending = {"completed": outcome.completed, "interrupted": outcome.interrupted}
    await hooks.observe("on_session_end", {**about, **ending})


class RequestHooks:
    """The hooks of one request of a turn."""

    def __init__(self, hooks: Hooks, turn: Turn, platform: str) -> None:
        self._hooks = hooks
        self._turn = turn
        self._platform = platform
        self._id = turn.ctx.services.ids.new("request")
        self._began = 0.0

    async def call(self, request: ModelRequest, plan: CallPlan) -> ModelAnswer:
        """The answer, by way of everybody who listens."""
        turn, hooks = self._turn, self._hooks
        request = await self._requested(request)
        facts = self._facts(request)
        await hooks.observe("pre_api_request", facts)
        plan = replace(plan, on_failed=lambda error, tries: self._failed(facts, error, tries))
        began = perf_counter()

        async def send(wanted: ModelRequest) -> ModelAnswer:
            return await turn.client.call(wanted, plan, turn.ctx.scope)

        answer = await (self._executed(request, send) if hooks.middleware("llm_execution") else send(request))
        if "post_api_request" in hooks.heard:
            await hooks.observe("post_api_request", {**facts, **_answer_facts(answer, perf_counter() - began)})
        return answer

    @property
    def _ids(self) -> JsonObject:
        ctx = self._turn.ctx
        about = {"task_id": ctx.task_id, "session_id": ctx.session_id, "turn_id": ctx.turn_id}
        return {**about, "api_request_id": self._id}

    def _facts(self, request: ModelRequest) -> JsonObject:
        turn, client = self._turn, self._turn.client
        endpoint, history, units = client.endpoint, turn.history.dicts, request.units
        sizes = sum(len(text_of(message.content)) for unit in units for message in unit.messages)
        return {
            **self._ids,
            "user_message": turn.history.last_user,
            "conversation_history": LazyView.of(history),
            "platform": self._platform,
            "model": client.model.name,
            "provider": client.model.provider,
            "base_url": client.model.base_url,
            "api_mode": endpoint.api_mode if endpoint is not None else "",
            "api_call_count": turn.outcome.api_calls,
            "request_messages": LazyView(_count(units) + 1, lambda: _messages(request)),
            "message_count": _count(units),
            "tool_count": len(request.tools),
            "approx_input_tokens": turn.watch.tokens(turn),
            "request_char_count": sizes + len(request.system),
            "max_tokens": request.options.max_tokens,
            "started_at": time(),
            "request": {"model": client.model.name, **plain_copy(request.options.extra_body)},
        }

    async def _failed(self, facts: JsonObject, error: ProviderError, tries: int) -> None:
        told = {
            "status_code": error.status,
            "retry_count": tries,
            "max_retries": self._turn.client.max_attempts,
            "retryable": error.retryable,
            "reason": error.reason,
            "error": {"type": type(error).__name__, "message": str(error)},
            "ended_at": time(),
        }
        await self._hooks.observe("api_request_error", {**facts, **told})

    async def _requested(self, request: ModelRequest) -> ModelRequest:
        entries = self._hooks.middleware("llm_request")
        if not entries:
            return request
        original = self._as_dict(request)
        current = original
        for entry in entries:
            payload = {**self._ids, "request": current, "original_request": original}
            answer = await self._hooks.table.ask(entry, "llm_request", payload)
            changed = answer.get("request") if isinstance(answer, Mapping) else None
            if isinstance(changed, dict):
                try:
                    request = self._changed(request, current, changed)
                    current = changed
                except Exception as error:  # noqa: BLE001 - what a plugin made of it is no request; noted as a fault
                    self._hooks.table.fault("llm_request", entry.owner, error)
        return request

    async def _executed(self, request: ModelRequest, send: Any) -> ModelAnswer:
        """Around the request. A middleware that does not use `next_call` is skipped: an answer has its ledger row."""
        from hermes.tools.middleware import Chain

        original = self._as_dict(request)

        def fit(changed: Any) -> ModelRequest:
            if not isinstance(changed, dict):
                raise TypeError("next_call takes the request as an object")
            return self._changed(request, original, changed)

        made: list[ModelAnswer] = []

        async def inner(wanted: ModelRequest) -> ModelAnswer:
            made.append(await send(wanted))
            return made[-1]

        def taken(answer: Any) -> ModelAnswer | None:
            words = answer.get("content") if isinstance(answer, Mapping) else None
            return _with_text(made[-1], words) if made and isinstance(words, str) else None

        facts = {**self._ids, "original_request": original}
        chain: Chain[ModelRequest, ModelAnswer] = Chain(self._hooks.table, "llm_execution", "request", facts, fit)
        chain.show_value = self._as_dict
        return await chain.run(request, inner, taken, _shown)

    def _as_dict(self, request: ModelRequest) -> JsonObject:
        tools = [{"type": "function", "function": to_builtins(one)} for one in request.tools]
        return {
            "model": self._turn.client.model.name,
            "messages": _messages(request),
            "tools": tools,
            "max_tokens": request.options.max_tokens,
            "stream": request.options.stream,
            **plain_copy(request.options.extra_body),
        }

    def _changed(self, request: ModelRequest, before: JsonObject, after: JsonObject) -> ModelRequest:
        """The request with what a middleware changed in it; the model itself cannot be."""
        if after.get("model", before["model"]) != before["model"]:
            raise ValueError("a middleware cannot change the model of a request; a fallback or a setting does")
        extra = {key: value for key, value in after.items() if key not in _FIXED}
        limit = after.get("max_tokens", before["max_tokens"])
        request = replace(request, options=replace(request.options, max_tokens=limit, extra_body=extra))
        messages: list[JsonObject] = after.get("messages") or before["messages"]
        tools: list[JsonObject] = after.get("tools") or before["tools"]
        if messages == before["messages"] and tools == before["tools"]:
            return request
        self._turn.ctx.sink.emit(PrefixBroken("plugin"))
        system = "\n\n".join(str(one.get("content") or "") for one in messages if one.get("role") == "system")
        rest = [from_dict(one) for one in messages if one.get("role") != "system"]
        units: Sequence[Unit] = sendable(build_units(rest)) if messages != before["messages"] else request.units
        listed: tuple[ToolDefinition, ...] = request.tools
        if tools != before["tools"]:
            listed = tuple(definition_of(one["function"]) for one in tools)
        return replace(request, system=system, units=units, tools=listed)


def _count(units: Sequence[Unit]) -> int:
    return sum(len(unit.messages) for unit in units)


def _messages(request: ModelRequest) -> list[JsonObject]:
    """The messages as they are sent, the system prompt first."""
    found: list[JsonObject] = [{"role": "system", "content": request.system}]
    for unit in request.units:
        told = [to_dict(message) for message in unit.messages]
        if unit.context and told:
            told[-1] = {**told[-1], "content": f"{told[-1].get('content') or ''}\n\n{unit.context}"}
        found += told
    return found


def _shown(answer: ModelAnswer) -> JsonObject:
    """An answer as middleware sees it."""
    response = answer.response
    return {
        "content": text_of(response.message.content),
        "tool_calls": [to_builtins(call) for call in response.message.tool_calls],
        "finish_reason": response.finish_reason,
        "model": answer.model,
        "provider": answer.provider,
        "usage": to_builtins(response.usage),
    }


def _with_text(answer: ModelAnswer, words: str) -> ModelAnswer:
    message = answer.response.message
    if text_of(message.content) == words:
        return answer
    return replace(answer, response=replace(answer.response, message=replace(message, content=words)))


def _answer_facts(answer: ModelAnswer, took_s: float) -> JsonObject:
    shown = _shown(answer)
    return {
        "api_duration": took_s,
        "ended_at": time(),
        "finish_reason": shown["finish_reason"],
        "response_model": answer.model,
        "usage": shown["usage"],
        "assistant_message": {"role": "assistant", "content": shown["content"], "tool_calls": shown["tool_calls"]},
        "assistant_content_chars": len(shown["content"]),
        "assistant_tool_call_count": len(shown["tool_calls"]),
        "response": {"model": answer.model, "finish_reason": shown["finish_reason"]},
    }
