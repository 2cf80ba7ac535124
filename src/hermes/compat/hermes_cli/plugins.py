"""`hermes_cli.plugins`."""

from hermes.extensions.plugins import discover_plugins, get_plugin_commands, invoke_hook
from hermes.extensions.plugins.plugin_context import PluginContext

__all__ = ["PluginContext", "discover_plugins", "get_plugin_commands", "invoke_hook"]
