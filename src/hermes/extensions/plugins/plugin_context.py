"""`ctx`: what the `register` of a plugin is handed. Every registration is recorded as data; functions are kept apart.

What the plugin declared (`needs` in its manifest) is held here: a hook, tool, or model that it did not declare raises
`PermissionError`. One that declares nothing gets everything.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes.config import paths
from hermes.extensions.plugins import joints
from hermes.extensions.plugins.offers import CommandOffer, PluginSkill, ToolOffer, UnusedOffer
from hermes.extensions.plugins.plugin_models import PluginModelAccess
from hermes.extensions.plugins.provider_bases import BASES
from hermes.hook_points import HOOKS, MIDDLEWARE

if TYPE_CHECKING:
    from hermes.extensions.plugins.manifest import PluginManifest
    from hermes.extensions.plugins.plugin import Plugin

_SKILL_NAME = re.compile(r"[A-Za-z0-9_-]+")
_TASK_KEY = re.compile(r"[A-Za-z0-9_]+")
_COMMAND_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_PLATFORM_KEYS: Final = {
    *("is_connected", "setup_fn", "allowed_users_env", "allow_all_env", "max_message_length", "pii_safe", "emoji"),
    *("allow_update_command", "platform_hint"),
}
_AUXILIARY_DEFAULTS: Final = {
    "provider": "auto",
    "model": "",
    "base_url": "",
    "api_key": "",
    "timeout": 60,
    "extra_body": {},
}
log = logging.getLogger("hermes.plugins")


class PluginContext:
    """One plugin's way to everything that plugins can bring."""

    def __init__(self, plugin: "Plugin") -> None:
        self._plugin = plugin
        self._offers = plugin.recorded
        self._live = plugin.live
        self.llm = PluginModelAccess(plugin)

    @property
    def manifest(self) -> "PluginManifest":
        return self._plugin.manifest

    @property
    def profile_name(self) -> str:
        """`default`, the id of a profile, or `custom` for a home that is somewhere else."""
        home, root = self._plugin.home, paths.root_home()
        if home == root:
            return paths.DEFAULT_PROFILE
        return home.name if home.parent == paths.profiles_dir(root) else "custom"

    @property
    def settings(self) -> Mapping[str, Any]:
        """`plugins.entries.<key>.settings` of config.yaml."""
        return dict(self._plugin.entry.settings)

    # -- tools, hooks, middleware ------------------------------------------------------------------------------------

    def register_tool(  # noqa: PLR0913, PLR0917 - the contract's parameters
        self,
        name: str,
        toolset: str,
        schema: dict[str, Any],
        handler: Callable[..., Any],
        check_fn: Callable[[], object] | None = None,
        requires_env: Iterable[str] | None = None,
        is_async: bool = False,
        description: str = "",
        emoji: str = "",
        override: bool = False,
    ) -> None:
        """Offer a tool. A name that another toolset has is left with it, unless the operator allows the override."""
        given: tuple[Any, ...] = (name, toolset, schema)  # whatever a plugin's author wrote
        if not (name and isinstance(given[0], str) and isinstance(given[1], str) and isinstance(given[2], dict)):
            raise TypeError("register_tool takes a name, a toolset and a schema as an object")
        for what, function in (("handler", handler), ("check_fn", check_fn or bool)):
            if not callable(function):
                raise TypeError(f"{what} of tool {name!r} must be callable, not {type(function).__name__}")
        wanted = [requires_env] if isinstance(requires_env, str) else list(requires_env or ())
        offer = ToolOffer(
            name=name,
            toolset=toolset,
            schema={**schema, "name": schema.get("name") or name},
            description=description,
            emoji=emoji,
            requires_env=wanted,
            is_async=is_async,
            has_check=check_fn is not None,
            override=override,
        )
        self._live.handlers[name] = handler
        if check_fn is not None:
            self._live.checks[name] = check_fn
        if any(one.name == name for one in self._offers.tools):
            self._warn(f"the tool {name!r} is registered twice; the later one counts")
            self._offers.tools[:] = [one for one in self._offers.tools if one.name != name]
        why = joints.tools().add(self._plugin, offer)
        if why:
            self._warn(why)
            return
        self._offers.tools.append(offer)

    def register_hook(self, hook_name: str, callback: Callable[..., Any]) -> None:
        """Have `callback(**keywords)`, sync or async, called for every event of this name."""
        if hook_name not in HOOKS:
            self._warn(f"there is no hook {hook_name!r}; it is kept, and nothing calls it")
        elif not HOOKS[hook_name].is_fired:
            self._warn(f"the hook {hook_name!r} is kept, and nothing in this version calls it")
        self._declared("hooks", hook_name)
        self._live.hooks.setdefault(hook_name, []).append(callback)
        self._offers.hooks.append(hook_name)

    def register_middleware(self, kind: str, callback: Callable[..., Any]) -> None:
        """Put `callback` around calls (`tool_request`, `tool_execution`) or requests (`llm_…`)."""
        if kind not in MIDDLEWARE:
            raise ValueError(f"there is no middleware {kind!r}; there are {', '.join(MIDDLEWARE)}")
        if not callable(callback):
            raise TypeError(f"middleware must be callable, not {type(callback).__name__}")
        self._declared("hooks", kind)
        self._live.middleware.setdefault(kind, []).append(callback)
        self._offers.middleware.append(kind)

    # -- commands and skills -----------------------------------------------------------------------------------------

    def register_command(
        self, name: str, handler: Callable[..., Any], description: str = "", args_hint: str = ""
    ) -> None:
        """A slash command: `handler(raw_args)` gives the text to show, or None; sync or async."""
        plain = "-".join(str(name).strip().lower().removeprefix("/").split())
        if not _COMMAND_NAME.fullmatch(plain):
            raise ValueError(f"{name!r} is no name of a command; use small letters, digits and '-'")
        if plain in self._plugin.taken_commands("slash"):
            self._warn(f"the command /{plain} is left out: Hermes has one of that name")
            return
        words = " ".join(description.split()) or "Plugin command"
        self._live.commands[plain] = handler
        self._offers.commands[:] = [one for one in self._offers.commands if one.name != plain]
        self._offers.commands.append(CommandOffer(name=plain, description=words, args_hint=args_hint))

    def register_cli_command(
        self,
        name: str,
        help: str,  # noqa: A002 - the contract's name
        setup_fn: Callable[..., Any],
        handler_fn: Callable[..., Any] | None = None,
        description: str = "",
    ) -> None:
        """`hermes NAME`: `setup_fn(parser)` is handed an argparse parser, `handler_fn(args)` what was parsed."""
        plain = str(name).strip().lower()
        if not _COMMAND_NAME.fullmatch(plain):
            raise ValueError(f"{name!r} is no name of a command; use small letters, digits and '-'")
        if plain in self._plugin.taken_commands("cli"):
            self._warn(f"the command hermes {plain} is left out: Hermes has one of that name")
            return
        words = " ".join((help or description).split()) or "Plugin command"
        self._live.cli_setups[plain] = setup_fn
        if handler_fn is not None:
            self._live.cli_handlers[plain] = handler_fn
        self._offers.cli_commands[:] = [one for one in self._offers.cli_commands if one.name != plain]
        self._offers.cli_commands.append(CommandOffer(name=plain, description=words))

    def register_skill(self, name: str, path: str | Path, description: str = "") -> None:
        """A skill that is read as `<plugin>:<name>`, and is in no list."""
        if not _SKILL_NAME.fullmatch(str(name)):
            raise ValueError(f"{name!r} is no name of a skill; use letters, digits, '_' and '-'")
        file = Path(path)
        file = file / "SKILL.md" if file.is_dir() else file
        if not file.is_file():
            raise FileNotFoundError(f"there is no skill at {str(path)!r}")
        self._offers.skills.append(PluginSkill(name=name, path=str(file.resolve()), description=description))

    # -- providers ---------------------------------------------------------------------------------------------------

    def register_context_engine(self, engine: Any) -> None:
        """Who shortens conversations when `context.engine` is its name; an instance of `ContextEngine`, one only."""
        if not joints.providers().is_engine(engine):
            self._warn(f"the context engine is left out: it is no ContextEngine, but {type(engine).__name__}")
        elif self._live.context_engine is not None:
            self._warn("a second context engine is left out")
        else:
            self._live.context_engine = engine
            self._offers.context_engine = str(engine.name)

    def register_memory_provider(self, provider: Any) -> None:
        """Who recalls when `memory.provider` names it; only in a plugin of the kind `exclusive`."""
        if self.manifest.kind != "exclusive":
            self._warn("the memory provider is left out: plugin.yaml does not say `kind: exclusive`")
        elif not joints.providers().is_memory(provider):
            self._warn(f"the memory provider is left out: it is no MemoryProvider, but {type(provider).__name__}")
        elif self._live.memory_provider is not None:
            self._warn("a second memory provider is left out")
        else:
            self._live.memory_provider = provider
            self._offers.memory_provider = str(provider.name)

    def register_model_provider(self, profile: Any) -> None:
        """A provider of models that settings can name; a `ProviderProfile`."""
        as_data = getattr(profile, "as_data", None)
        if as_data is None:
            self._warn(f"the model provider is left out: it is no ProviderProfile, but {type(profile).__name__}")
            return
        data = as_data()
        why = joints.providers().add_model_provider(self._plugin, data)
        if why:
            self._warn(why)
            return
        self._offers.model_providers.append(data)

    def register_web_search_provider(self, provider: Any) -> None:
        """A search service that `web.search_backend` can name."""
        if not isinstance(provider, BASES["web_search_provider"]):
            self._warn(f"the search service is left out: it is no WebSearchProvider, but {type(provider).__name__}")
            return
        name = str(provider.name)  # type: ignore[attr-defined]  # of the base class
        self._live.web_search_providers[name] = provider
        why = joints.providers().add_search(self._plugin, name)
        if why:
            self._warn(why)
        else:
            self._offers.web_search_providers.append(name)

    def register_platform(  # noqa: PLR0913, PLR0917 - the contract's parameters
        self,
        name: str,
        label: str,
        adapter_factory: Callable[..., Any],
        check_fn: Callable[..., Any],
        validate_config: Callable[..., Any] | None = None,
        required_env: Iterable[str] | None = None,
        install_hint: str = "",
        **entry: Any,
    ) -> None:
        """A chat platform. It is kept and listed; nothing uses it yet."""
        unknown = sorted(entry.keys() - _PLATFORM_KEYS)
        if unknown:
            raise TypeError(f"register_platform() got an unexpected keyword argument {unknown[0]!r}")
        for what, function in (("adapter_factory", adapter_factory), ("check_fn", check_fn)):
            if not callable(function):
                raise TypeError(f"{what} of platform {name!r} must be callable")
        facts = {"label": label, "adapter_factory": adapter_factory, "check_fn": check_fn, "install_hint": install_hint}
        facts |= {"validate_config": validate_config, "required_env": list(required_env or ()), **entry}
        self._keep_unused("platform", str(name), facts)

    def register_auxiliary_task(
        self, key: str, *, display_name: str, description: str, defaults: Mapping[str, Any] | None = None
    ) -> None:
        """A helper task of the plugin's own. It is kept and listed; nothing uses it yet."""
        if not _TASK_KEY.fullmatch(str(key)):
            raise ValueError(f"{key!r} is no key of a task; use letters, digits and '_'")
        if key in self._plugin.taken_commands("tasks"):
            raise ValueError(f"there is a helper task {key!r} already")
        facts = {"display_name": display_name, "description": description}
        self._keep_unused("auxiliary_task", key, {**facts, "defaults": {**_AUXILIARY_DEFAULTS, **(defaults or {})}})

    def register_slack_action_handler(self, action_id: str, callback: Callable[..., Any]) -> None:
        """An action of Slack. It is kept and listed; nothing uses it yet."""
        if not callable(callback):
            raise TypeError(f"the handler of {action_id!r} must be callable")
        self._keep_unused("slack_action_handler", str(action_id), callback)

    def __getattr__(self, name: str) -> Any:
        kind = name.removeprefix("register_")
        if kind in BASES and name.startswith("register_"):
            return lambda provider: self._register_provider(kind, provider)
        raise AttributeError(f"a plugin's context has no {name!r}")

    def _register_provider(self, kind: str, provider: Any) -> None:
        if not isinstance(provider, BASES[kind]):
            self._warn(f"the {kind} is left out: it is no {BASES[kind].__name__}, but {type(provider).__name__}")
            return
        self._keep_unused(kind, str(getattr(provider, "name", kind)), provider)

    def _keep_unused(self, kind: str, name: str, value: Any) -> None:
        self._live.unused[f"{kind}:{name}"] = value
        self._offers.unused.append(UnusedOffer(kind, name))

    # -- asking the runtime ------------------------------------------------------------------------------------------

    def dispatch_tool(self, tool_name: str, args: Mapping[str, Any], **kwargs: Any) -> str:
        """The result text of a call, through hooks and approval like any other."""
        self._declared("tools", tool_name)
        return joints.calls().dispatch(tool_name, args, kwargs)

    def inject_message(self, content: str, role: str = "user") -> bool:
        """Queue words as the next input of the conversation; False where there is none."""
        if not content.strip():
            raise ValueError("inject_message takes the words of a message, and there are none")
        words = content if role == "user" else f"[{role}] {content}"
        return self._plugin.inject(words)

    def _declared(self, kind: str, name: str) -> None:
        needs = self.manifest.needs
        if needs is not None and not needs.allows(kind, name):
            raise PermissionError(
                f"the plugin {self.manifest.key!r} did not declare {name!r} (needs.{kind} in its plugin.yaml)"
            )

    def _warn(self, words: str) -> None:
        log.warning("plugin %r: %s", self.manifest.key, words)
        if words not in self._offers.warnings:
            self._offers.warnings.append(words)
