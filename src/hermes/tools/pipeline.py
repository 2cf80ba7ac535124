"""The stages around every call, whoever makes it: policies before it, observers and transforms after it."""

from msgspec import Struct

from hermes.seams import HookBus, ToolRules
from hermes.tools.hooks import Hooks
from hermes.types import Content, JsonObject

BEFORE = ("pre_tool_call", "edit_approval")
AFTER = ("post_tool_call", "transform_tool_result")
AROUND = BEFORE + AFTER


class CallFacts(Struct, frozen=True, kw_only=True):
    """Which call the hooks are told of."""

    name: str
    args: JsonObject
    task_id: str | None = None
    session_id: str | None = None
    tool_call_id: str | None = None

    def payload(self) -> JsonObject:
        return {
            "tool_name": self.name,
            "args": self.args,
            "task_id": self.task_id,
            "session_id": self.session_id,
            "tool_call_id": self.tool_call_id,
        }


async def refusal(hooks: HookBus, facts: CallFacts, rules: ToolRules, *, skip_pre_hook: bool = False) -> str | None:
    """Why the call must not run, or None. Each policy is asked exactly once."""
    if nobody_listens(hooks, BEFORE):
        return None
    if not skip_pre_hook:
        reason = await hooks.allow("pre_tool_call", facts.payload())
        if reason is not None:
            return reason
    if rules.edits:
        reason = await hooks.allow("edit_approval", facts.payload())
        if reason is not None:
            return f"Edit approval denied: {reason}"
    return None


async def told(hooks: HookBus, facts: CallFacts, content: Content, duration_ms: float) -> Content:
    """Tell the observers, and return the content as the transforms leave it."""
    if nobody_listens(hooks, AFTER):
        return content
    payload = {**facts.payload(), "result": content, "duration_ms": duration_ms}
    await hooks.observe("post_tool_call", payload)
    if isinstance(content, str):
        return await hooks.transform("transform_tool_result", content, payload)
    return content


def nobody_listens(hooks: HookBus, names: tuple[str, ...]) -> bool:
    """Whether a payload for these need not even be made."""
    return isinstance(hooks, Hooks) and hooks.heard.isdisjoint(names)
