"""Whether the chosen provider can work, found out without a request."""

from hermes.config.sections.memory import Section
from hermes.config.settings import Settings
from hermes.context.memory.local.sentence_model import INSTALL, missing_parts
from hermes.context.memory.provider import PROVIDERS
from hermes.context.memory.provider_home import provider_home


def provider_trouble(settings: Settings) -> tuple[str, str]:
    """Its name, and what keeps it from working; both empty where none is chosen."""
    name = settings.of(Section).provider
    if not name:
        return "", ""
    home = provider_home(settings)
    if name == "local":  # it has no store to read here, so it is asked for its parts alone
        missing = missing_parts(home.root)
        return name, f"{', '.join(missing)} missing; install with: {INSTALL}" if missing else ""
    try:
        return name, "" if PROVIDERS.make(name, home).is_available() else "what it needs is not here"
    except KeyError:
        return name, f"there is no such provider; there are: {', '.join(PROVIDERS.names())}"
    except Exception as error:  # noqa: BLE001 - the border to a provider's code; it is told to the person
        return name, str(error)
