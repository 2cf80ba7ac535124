"""The options of a child: the parent's model and folder, fewer tools, no memory, and a prompt that ends in its task."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from hermes.config.sections.delegation import Section
from hermes.runtime.delegation.child_task import ChildTask
from hermes.runtime.delegation.parent_link import TASK_HEAD, ParentLink
from hermes.runtime.options import (
    AgentOptions,
    CallbackOptions,
    LimitOptions,
    ModelOptions,
    SessionOptions,
    ToolOptions,
)
from hermes.runtime.prompt import Tier
from hermes.seams import PromptText, Sink, ToolView
from hermes.tools.registry import Registered
from hermes.types import JsonObject

DELEGATE = "delegate_task"
NEVER = frozenset({DELEGATE, "clarify", "memory", "send_message", "execute_code", "cronjob"})  # tools of no child
REPORT = (
    "You work on this alone, for another agent that sees nothing but your last message. Do it without asking back. "
    "Then report briefly: what you did, what you found, which files you wrote, and what is open or uncertain. Say "
    "plainly what did not work."
)


def task_text(task: ChildTask, folder: str) -> str:
    """The end of a child's system prompt."""
    context = f"\n\nWhat you should know:\n{task.context}" if task.context else ""
    return f"{TASK_HEAD}\n\n{REPORT}\n\nThe task:\n{task.goal}{context}\n\nYour folder: {folder}"


class TaskSource:
    """`PromptSource` of a child's task. After everything else: all before it is the same for the whole batch."""

    name = "99-task"
    tier: Tier = "volatile"

    def __init__(self, text: str) -> None:
        self._text = text

    async def text(self, session: JsonObject) -> PromptText:
        return PromptText(self._text, "the parent")


def may_delegate(task: ChildTask, section: Section, depth: int) -> bool:
    """Whether a child at this depth has children of its own; one that may not is a leaf, silently."""
    return task.is_orchestrator and section.orchestrator_enabled and depth < section.max_spawn_depth


def tools_for(
    task: ChildTask, view: ToolView, settings: Mapping[str, Any], section: Section, depth: int
) -> frozenset[str]:
    """The parent's tools that the child gets: those of the toolsets it was given, never those of no child."""
    if task.program:
        return frozenset()  # it has its own
    mine = view.names() - view.barred()
    given = (mine - NEVER) | ({DELEGATE} & mine if may_delegate(task, section, depth) else frozenset())
    if task.toolsets is None:
        return given
    from hermes.tools.registration.definitions import select  # paid by who names toolsets
    from hermes.tools.registration.groups import Groups, custom_groups
    from hermes.tools.registry import registry

    find = getattr(view, "find", lambda _name: None)
    own: dict[str, Registered] = {name: tool for name in mine if (tool := find(name)) is not None}
    wanted = select(Groups(registry, custom_groups(settings)), task.toolsets, (), own, [])
    foreign = {name for name in given if view.rules(name).toolset.startswith("mcp-")}
    kept = foreign if section.inherit_mcp_toolsets else set()
    return frozenset(given & (wanted | kept | {DELEGATE}))


def child_options(
    parent: AgentOptions, section: Section, link: ParentLink, session: SessionOptions, sink: Sink
) -> AgentOptions:
    """What the child is made of. `session` says which it is and whose; the rest follows from the parent."""
    asked = parent.callbacks
    callbacks = CallbackOptions(
        approval_callback=asked.approval_callback, sudo_password_callback=asked.sudo_password_callback, sink=sink
    )
    return AgentOptions(
        model=_model(parent.model, section),
        tools=ToolOptions(work_mode=parent.tools.work_mode),  # one word for the whole tree, as of now
        callbacks=callbacks,
        session=replace(
            session,
            platform="subagent",
            session_db=parent.session.session_db,
            store=parent.session.store,
            user_id=parent.session.user_id,
            skip_context_files=True,
            skip_memory=True,
        ),
        limits=LimitOptions(max_iterations=section.max_iterations, turn_timeout_s=section.child_timeout_seconds),
        parent=link,
    )


def _model(parent: ModelOptions, section: Section) -> ModelOptions:
    """The parent's, unless the settings name another for children."""
    chosen = {
        name: value
        for name in ("model", "provider", "base_url", "api_key", "api_mode")
        if (value := getattr(section, name))
    }
    effort = section.reasoning_effort
    kept = replace(parent, prefill_messages=None, output_schema=None)
    if "provider" in chosen or "base_url" in chosen:  # served by somebody else, who has no use for the parent's key
        kept = ModelOptions(request_overrides=parent.request_overrides, reasoning_config=parent.reasoning_config)
    model = replace(kept, **chosen)
    return replace(model, reasoning_config={"enabled": effort != "none", "effort": effort}) if effort else model
