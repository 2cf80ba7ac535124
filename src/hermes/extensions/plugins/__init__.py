"""Plugins: code of the user's own or of others that adds tools, hooks, commands, skills and providers.

The three functions are the contract's; the rest is in the modules beside this one.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["discover_plugins", "get_plugin_commands", "invoke_hook"]


def discover_plugins(force: bool = False) -> None:
    """Load every plugin that is switched on, once a process; `force` looks again at what is there."""
    for plugin in _chosen(force=force):
        plugin.load()


def invoke_hook(name: str, /, **keywords: Any) -> list[Any]:
    """Fire a hook; what the callbacks of plugins answer, without None. One that raises answers nothing."""
    from hermes.extensions.plugins.plugin_set import callbacks
    from hermes.hook_points import HOOK_API, VERSION_KEYWORD

    found = []
    for plugin in _chosen():
        for callback in callbacks(plugin, "hooks", name):
            answer = _quietly(plugin.key, name, callback, {**keywords, VERSION_KEYWORD: HOOK_API})
            if answer is not None:
                found.append(answer)
    return found


def get_plugin_commands() -> dict[str, dict[str, Any]]:
    """The slash commands of plugins: `{name: {handler, description, plugin, args_hint}}`."""
    from hermes.config.load import load_settings
    from hermes.extensions.plugins.plugin_set import plugins_of

    settings = load_settings()
    return {
        name: {
            "handler": plugin.loaded().live.commands[name],
            "description": offer.description,
            "plugin": plugin.key,
            "args_hint": offer.args_hint,
        }
        for name, (plugin, offer) in plugins_of(settings.home).commands(settings).items()
    }


def _chosen(*, force: bool = False) -> Any:
    from hermes.config.load import load_settings
    from hermes.extensions.plugins.plugin_set import plugins_of

    settings = load_settings()
    return plugins_of(settings.home).chosen(settings, force=force)


def _quietly(key: str, name: str, callback: Any, keywords: Mapping[str, Any]) -> Any:
    import logging

    from hermes.extensions.plugins import joints

    try:
        return joints.ground().finished(callback(**keywords))
    except Exception:  # the border to a plugin's code
        logging.getLogger("hermes.plugins").exception("hook %r of plugin %r failed", name, key)
        return None
