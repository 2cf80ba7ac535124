"""What a plugin offers, as plain data: recorded when it registers, and known afterwards without importing it."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, field

from hermes.types import JsonObject

# Registrations that are accepted, checked and listed, and that nothing uses yet.
UNUSED_KINDS: Final = (
    "platform",
    "image_gen_provider",
    "video_gen_provider",
    "tts_provider",
    "transcription_provider",
    "browser_provider",
    "dashboard_auth_provider",
    "secret_source",
    "slack_action_handler",
    "auxiliary_task",
)


class ToolOffer(Struct, frozen=True, kw_only=True):
    """One tool; `handler` and `check_fn` are there once the plugin is loaded."""

    name: str
    toolset: str
    schema: JsonObject
    description: str = ""
    emoji: str = ""
    requires_env: list[str] = field(default_factory=list)
    is_async: bool = False
    has_check: bool = False
    override: bool = False


class CommandOffer(Struct, frozen=True, kw_only=True):
    """A slash command, or a command of `hermes`."""

    name: str
    description: str = ""
    args_hint: str = ""


class PluginSkill(Struct, frozen=True, kw_only=True):
    """A skill, read as `<plugin>:<name>`."""

    name: str
    path: str
    description: str = ""


class UnusedOffer(Struct, frozen=True):
    """A registration that nothing uses yet."""

    kind: str
    name: str


class Offers(Struct, kw_only=True):
    """All that one plugin offers."""

    tools: list[ToolOffer] = field(default_factory=list)
    hooks: list[str] = field(default_factory=list)
    middleware: list[str] = field(default_factory=list)
    commands: list[CommandOffer] = field(default_factory=list)
    cli_commands: list[CommandOffer] = field(default_factory=list)
    skills: list[PluginSkill] = field(default_factory=list)
    context_engine: str = ""
    memory_provider: str = ""
    model_providers: list[JsonObject] = field(default_factory=list)
    web_search_providers: list[str] = field(default_factory=list)
    unused: list[UnusedOffer] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether it registered nothing at all, so that its import is its whole purpose."""
        names = (name for name in self.__struct_fields__ if name != "warnings")
        return not any(getattr(self, name) for name in names)

    def lines(self) -> list[str]:
        """For a person, one line a kind."""
        told: list[str] = []
        for what, names in (
            ("tools", [one.name for one in self.tools]),
            ("hooks", sorted(set(self.hooks))),
            ("middleware", sorted(set(self.middleware))),
            ("slash commands", [f"/{one.name}" for one in self.commands]),
            ("commands", [f"hermes {one.name}" for one in self.cli_commands]),
            ("skills", [one.name for one in self.skills]),
            ("context engine", [self.context_engine] if self.context_engine else []),
            ("memory provider", [self.memory_provider] if self.memory_provider else []),
            ("model providers", [str(one.get("name")) for one in self.model_providers]),
            ("web search", self.web_search_providers),
        ):
            if names:
                told.append(f"{what}: {', '.join(names)}")
        told += [f"{one.kind} {one.name}: nothing uses it yet" for one in self.unused]
        return told


class LiveOffers(Struct):
    """What of the offers only the loaded plugin has: its functions and objects, by name."""

    handlers: dict[str, Callable[..., Any]] = field(default_factory=dict)  # of tools
    checks: dict[str, Callable[[], object]] = field(default_factory=dict)
    hooks: dict[str, list[Callable[..., Any]]] = field(default_factory=dict)
    middleware: dict[str, list[Callable[..., Any]]] = field(default_factory=dict)
    commands: dict[str, Callable[..., Any]] = field(default_factory=dict)
    cli_setups: dict[str, Callable[..., Any]] = field(default_factory=dict)
    cli_handlers: dict[str, Callable[..., Any]] = field(default_factory=dict)
    context_engine: Any = None
    memory_provider: Any = None
    web_search_providers: dict[str, Any] = field(default_factory=dict)
    unused: dict[str, Any] = field(default_factory=dict)
