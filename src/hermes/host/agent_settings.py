"""What a way in and the settings ask of an agent, as the agent's keywords."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hermes.config.sections import agent as agent_section
from hermes.config.sections import model
from hermes.config.sections import top as top_section
from hermes.config.settings import Settings

if TYPE_CHECKING:
    from hermes.host.tool_report import ToolReport


class AgentSettings(Struct, frozen=True, kw_only=True):
    """What whoever opens a session asks of its agent beside the settings."""

    source: str = "cli"  # the way in, as sessions are listed by it
    pass_session_id: bool = False
    yolo: bool = False
    checkpoints: bool = False
    ignore_rules: bool = False
    quiet: bool = False
    output_schema: Any = None  # what each answer has to be


def agent_keywords(asked: AgentSettings, settings: Settings) -> dict[str, Any]:
    """The agent's keywords that the settings decide."""
    refuse_unknown_toolsets(settings)
    agent, chosen = settings.of(agent_section.Section), settings.of(model.Section)
    effort = agent.reasoning_effort
    return {
        "model": chosen.default,
        "max_tokens": chosen.max_tokens,
        "reasoning_config": {"enabled": effort != "none", "effort": effort} if effort else None,
        "service_tier": agent.service_tier or None,
        "ephemeral_system_prompt": agent.system_prompt or None,
        "prefill_messages": _prefill(settings),
        "max_iterations": agent.max_turns,
        "enabled_toolsets": _toolsets(asked.source, settings),
        "default_toolsets": list(settings.of(top_section.Section).toolsets),
        "disabled_toolsets": list(agent.disabled_toolsets) or None,
        "platform": asked.source,
        "pass_session_id": asked.pass_session_id,
        "checkpoints_enabled": asked.checkpoints or None,  # else the settings decide
        "skip_context_files": asked.ignore_rules,
        "skip_memory": asked.ignore_rules,
        "quiet_mode": asked.quiet,
        "output_schema": asked.output_schema,
    }


def _prefill(settings: Settings) -> list[dict[str, Any]] | None:
    if not settings.of(top_section.Section).prefill_messages_file:
        return None
    from hermes.host.prefill_file import prefill_messages  # rare

    return prefill_messages(settings)


def refuse_unknown_toolsets(settings: Settings) -> None:
    """`UserError` for a toolset of the command line that is none: a session without its tools would tell nobody."""
    named = [*settings.flags.get("toolsets", ()), *settings.flags.get("agent.disabled_toolsets", ())]
    if found := _if_unusual(settings, named):
        found.check_toolsets(named)


def note_unknown_toolsets(tell: Callable[[str], None], settings: Settings) -> None:
    """A word about each toolset of config.yaml that is none. It may come from a tool file that is away for a while."""
    is_named = "toolsets" in settings.tree and "toolsets" not in settings.flags
    wanted = settings.of(top_section.Section).toolsets if is_named else ()
    named = [*wanted, *settings.of(agent_section.Section).disabled_toolsets]
    if found := _if_unusual(settings, named):
        for name in named:
            if not found.is_toolset(name):
                tell(f"config.yaml names a toolset {name!r} that does not exist; see: hermes tools")


def _if_unusual(settings: Settings, toolsets: Sequence[str]) -> "ToolReport | None":
    """What tools there are, when these are not all among our own toolsets and those that the settings describe."""
    if not toolsets:
        return None
    from hermes.tools.registration.groups import custom_groups, table  # paid by who names some

    custom = custom_groups(settings.mapping)
    if all(name in table().toolsets or name in custom for name in toolsets):
        return None
    from hermes.host.tool_report import report  # executes the tool files of the home

    return report(settings.home, settings.mapping, Path.cwd())


def _toolsets(source: str, settings: Settings) -> list[str] | None:
    """The toolsets asked for: on the command line, for this way in, or for all. None when nobody has named any."""
    top = settings.of(top_section.Section)
    if "toolsets" not in settings.flags and source in top.platform_toolsets:
        return list(top.platform_toolsets[source])
    return list(top.toolsets) if "toolsets" in settings.flags or "toolsets" in settings.tree else None
