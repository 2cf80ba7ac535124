"""`providers`: a plugin makes a provider of models known."""

from hermes.compat.providers.base import ProviderProfile


def register_provider(profile: ProviderProfile) -> None:
    """Have settings able to name the provider; while a plugin is loaded, it is the plugin's."""
    from hermes.extensions.plugins.plugin import loading
    from hermes.extensions.plugins.plugin_context import PluginContext

    plugin = loading.get()
    if plugin is None:
        raise RuntimeError("register_provider is for the code of a plugin, while it is loaded")
    PluginContext(plugin).register_model_provider(profile)


__all__ = ["ProviderProfile", "register_provider"]
