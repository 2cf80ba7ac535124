"""`ctx.llm`: a plugin asks a model, within what the operator allows; each question is in the ledger."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from hermes.extensions.plugins import joints
from hermes.types import JsonObject

if TYPE_CHECKING:
    from hermes.extensions.plugins.plugin import Plugin


class PluginQuestion(Struct, frozen=True, kw_only=True):
    """What is asked, of whom, and for whom."""

    plugin: str
    messages: tuple[JsonObject, ...]
    provider: str = ""
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    agent_id: str = ""
    profile: str = ""
    purpose: str = ""
    response_format: JsonObject | None = None


class PluginAnswer(Struct, kw_only=True):
    """What came back. `parsed` is there for structured answers."""

    text: str
    provider: str
    model: str
    agent_id: str = ""
    usage: JsonObject = field(default_factory=dict)
    audit: JsonObject = field(default_factory=dict)
    parsed: Any = None


class PluginModelAccess:
    """The four ways to ask. What the operator did not allow raises `PermissionError` before anything is sent."""

    def __init__(self, plugin: "Plugin") -> None:
        self._plugin = plugin

    def complete(self, messages: str | Sequence[Mapping[str, Any]], **asked: Any) -> PluginAnswer:
        """The answer to `messages`; provider, model, temperature, max_tokens, timeout, agent_id, profile, purpose."""
        answer: PluginAnswer = joints.calls().complete(self._question(messages, asked))
        return answer

    async def acomplete(self, messages: str | Sequence[Mapping[str, Any]], **asked: Any) -> PluginAnswer:
        """`complete`, awaited."""
        answer: PluginAnswer = await joints.calls().acomplete(self._question(messages, asked))
        return answer

    def complete_structured(self, **asked: Any) -> PluginAnswer:
        """An answer in JSON: instructions, input, json_schema, json_mode, schema_name, system_prompt, …"""
        messages, rest = _structured(asked)
        return _parsed(self.complete(messages, **rest))

    async def acomplete_structured(self, **asked: Any) -> PluginAnswer:
        """`complete_structured`, awaited."""
        messages, rest = _structured(asked)
        return _parsed(await self.acomplete(messages, **rest))

    def _question(self, messages: str | Sequence[Mapping[str, Any]], asked: JsonObject) -> PluginQuestion:
        plugin = self._plugin
        needs, may = plugin.manifest.needs, plugin.entry.llm
        if needs is not None and not needs.llm:
            raise PermissionError(f"the plugin {plugin.key!r} did not declare llm (needs.llm in its plugin.yaml)")
        for name in ("provider", "model", "agent_id", "profile"):
            if asked.get(name) and not getattr(may, f"allow_{name}_override"):
                where = f"plugins.entries.{plugin.key}.llm.allow_{name}_override"
                raise PermissionError(f"the plugin {plugin.key!r} may not choose the {name}; {where} allows it")
        model = asked.get("model")
        if model and may.allowed_models and model not in may.allowed_models:
            raise PermissionError(f"the plugin {plugin.key!r} may ask {', '.join(may.allowed_models)}, not {model!r}")
        listed = (
            [{"role": "user", "content": messages}] if isinstance(messages, str) else [dict(one) for one in messages]
        )
        if not listed or any(one.get("role") not in ("system", "user", "assistant") for one in listed):
            raise ValueError(
                "messages is a text, or a list of objects with a role (system, user, assistant) and a content"
            )
        given = {name: value for name, value in asked.items() if value is not None}
        return PluginQuestion(plugin=plugin.key, messages=tuple(listed), **given)


def _structured(asked: JsonObject) -> tuple[list[JsonObject], JsonObject]:
    rest = dict(asked)
    schema, is_json = rest.pop("json_schema", None), rest.pop("json_mode", True)
    name = rest.pop("schema_name", None) or "answer"
    system = [rest.pop("system_prompt", None), rest.pop("instructions", None)]
    if schema is not None:
        system.append(f"Answer with JSON alone that fits this schema ({name}): {json.dumps(schema)}")
    elif is_json:
        system.append("Answer with JSON alone.")
    given = rest.pop("input", "")
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    words = "\n\n".join(str(one) for one in system if one)
    return [{"role": "system", "content": words}, {"role": "user", "content": text}], rest


def _parsed(answer: PluginAnswer) -> PluginAnswer:
    text = answer.text.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    try:
        answer.parsed = json.loads(text)
    except ValueError:
        answer.parsed = None
    return answer
