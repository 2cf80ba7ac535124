"""What a provider is made from, read from the settings."""

from typing import Any

from hermes.config import paths
from hermes.config.sections import honcho, memory
from hermes.config.settings import Settings
from hermes.config.values import plain
from hermes.context.memory.provider import ProviderHome

SECRETS = ("HONCHO_API_KEY",)


def provider_home(settings: Settings, store: Any = None) -> ProviderHome:
    """For the provider that `memory.provider` names."""
    found = {name: value for name in SECRETS if (value := settings.lookup(name))}
    own = {**plain(settings.of(honcho.Section)), "recall_lines": settings.of(memory.Section).recall_lines, **found}
    return ProviderHome(settings.home, paths.root_home(settings.environ), own, store)
