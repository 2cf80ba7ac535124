"""What plugins ask of the runtime: a call of a tool, and an answer of a model."""

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from hermes.config.load import load_settings
from hermes.dicts import from_dict
from hermes.errors import ProviderError
from hermes.extensions.plugins.plugin_models import PluginAnswer, PluginQuestion
from hermes.model_tools import handle_function_call
from hermes.models.client import CallPlan, ModelClient
from hermes.models.providers.resolve import ModelQuery, resolve_model
from hermes.runtime.requests import build_units, sendable
from hermes.runtime.setup.model_setup import client_options
from hermes.runtime.setup.process import shared
from hermes.scope import TurnScope
from hermes.seams import ModelRequest, RequestOptions
from hermes.tools.calling.loops import run_sync
from hermes.types import text_of

LIMIT_S = 120.0
_TOLD = ("task_id", "tool_call_id", "session_id", "user_task", "enabled_tools")


class PluginCalls:
    """`CallJoint` of this process."""

    def dispatch(self, name: str, args: Mapping[str, Any], keywords: Mapping[str, Any]) -> str:
        given = {key: keywords[key] for key in _TOLD if key in keywords}
        return handle_function_call(name, dict(args), **given)

    def complete(self, asked: PluginQuestion) -> PluginAnswer:
        return run_sync(self.acomplete(asked), (asked.timeout or LIMIT_S) + 5)

    async def acomplete(self, asked: PluginQuestion) -> PluginAnswer:
        """One call, with its row in the ledger; its purpose names the plugin."""
        settings = load_settings()
        query = ModelQuery(name=asked.model, provider=asked.provider)
        model, store = resolve_model(settings, shared.http, query), shared.store(settings)
        client = ModelClient([model], store, shared.clock, shared.ids, client_options(settings, shared.window_memory))
        purpose = f"plugin:{asked.plugin}{f':{asked.purpose}' if asked.purpose else ''}"
        scope = TurnScope(purpose, timeout_s=asked.timeout or LIMIT_S)
        answer = None
        async with scope:
            answer = await client.call(_request(asked), CallPlan(purpose=purpose, session_id=None), scope)
            await store.commit(answer.closing)
        if answer is None:
            raise ProviderError(f"no answer within {asked.timeout or LIMIT_S:g} s", reason="timeout")
        usage = to_builtins(answer.response.usage)
        return PluginAnswer(
            text=text_of(answer.response.message.content),
            provider=answer.provider,
            model=answer.model,
            agent_id=asked.agent_id,
            usage={key: value for key, value in usage.items() if value is not None},
            audit={"plugin": asked.plugin, "purpose": purpose, "attempt": answer.closing.attempt_id},
        )


def _request(asked: PluginQuestion) -> ModelRequest:
    system = "\n\n".join(str(one["content"]) for one in asked.messages if one["role"] == "system")
    rest = [from_dict(dict(one)) for one in asked.messages if one["role"] != "system"]
    extra = {"temperature": asked.temperature} if asked.temperature is not None else {}
    options = RequestOptions(max_tokens=asked.max_tokens, extra_body=extra)
    return ModelRequest(system=system, tools=(), units=sendable(build_units(rest)), options=options)


JOINT = PluginCalls()
