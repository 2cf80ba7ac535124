"""Plugins: which are switched on, and what each of them may do."""

from typing import Annotated, Any

from msgspec import field

from hermes.config.section import SectionBase, key


class PluginModels(SectionBase, frozen=True):
    """What a plugin may choose when it asks a model through `ctx.llm`."""

    allow_provider_override: Annotated[bool, key("May name a provider.")] = False
    allow_model_override: Annotated[bool, key("May name a model.")] = False
    allowed_models: Annotated[tuple[str, ...], key("The models it may name; empty is any.")] = ()
    allow_agent_id_override: Annotated[bool, key("May name an agent.")] = False
    allow_profile_override: Annotated[bool, key("May name a profile.")] = False


class PluginEntry(SectionBase, frozen=True):
    """One plugin, by its key."""

    allow_tool_override: Annotated[bool, key("May replace a tool that is there already, a built-in too.")] = False
    required: Annotated[bool, key("Nothing runs while this plugin is not loaded: a policy that must not be a gap.")] = (
        False
    )
    hook_timeout: Annotated[float, key("Seconds that one call of a hook may take.", gt=0, le=300)] = 10.0
    llm: Annotated[PluginModels, key("What it may choose when it asks a model.")] = PluginModels()
    settings: Annotated[dict[str, Any], key("Settings of its own; it reads them as `ctx.settings`.")] = field(
        default_factory=dict
    )


class Section(SectionBase, frozen=True):
    """Plugins: code of your own or of others that runs inside Hermes. Only what is named here runs."""

    enabled: Annotated[tuple[str, ...], key("The plugins that are switched on, by key or name.")] = ()
    disabled: Annotated[tuple[str, ...], key("Those that are off, whatever `enabled` says.")] = ()
    entries: Annotated[dict[str, PluginEntry], key("What one plugin may do, by its key.")] = field(default_factory=dict)

    @classmethod
    def fold(cls, plain: object) -> object:
        """A list alone is `enabled`; null lists are empty."""
        if isinstance(plain, list):
            return {"enabled": plain}
        if isinstance(plain, dict):
            return {name: value for name, value in plain.items() if value is not None}
        return plain
