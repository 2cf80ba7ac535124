"""`agent.auxiliary_client`: a question to a model beside the conversation."""

import sys
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from hermes.errors import UserError


def call_llm(messages: Sequence[Mapping[str, Any]], *, task: str = "", **asked: Any) -> Any:
    """The answer in the shape of a chat completion: `.choices[0].message.content`, `.usage`, `.model`."""
    from hermes.extensions.plugins import joints  # the runtime itself, paid by who asks
    from hermes.extensions.plugins.plugin import plugin_of_module
    from hermes.extensions.plugins.plugin_models import PluginModelAccess, PluginQuestion

    taken = ("model", "provider", "temperature", "max_tokens", "timeout")
    unknown = sorted(asked.keys() - set(taken))
    if unknown:
        raise UserError(f"call_llm does not take {unknown[0]!r} here; it takes {', '.join(('task', *taken))}")
    given = {name: value for name, value in asked.items() if value is not None}
    plugin = plugin_of_module(str(sys._getframe(1).f_globals.get("__name__")))  # it has the rights of its own `ctx.llm`
    if plugin is not None:
        answer = PluginModelAccess(plugin).complete(messages, purpose=task, **given)
    else:
        listed = tuple(dict(one) for one in messages)
        answer = joints.calls().complete(PluginQuestion(plugin="call_llm", purpose=task, messages=listed, **given))
    message = SimpleNamespace(role="assistant", content=answer.text, tool_calls=None)
    choice = SimpleNamespace(index=0, message=message, finish_reason="stop")
    return SimpleNamespace(choices=[choice], model=answer.model, usage=SimpleNamespace(**answer.usage))


__all__ = ["call_llm"]
