"""Which model a person chose: the provider, the name, the key, and how they are written down."""

from msgspec import Struct

from hermes.config import paths
from hermes.config.dotenv import set_env
from hermes.config.settings import Settings
from hermes.config.write import set_key, unset_key
from hermes.models.providers.catalogue import ProviderEntry
from hermes.models.providers.key_homes import Home
from hermes.models.providers.resolve import ModelQuery

CUSTOM_KEY = "CUSTOM_API_KEY"


class ModelChoice(Struct, frozen=True, kw_only=True):
    """What a person asked for; empty fields are still open."""

    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_key: str = ""
    api_mode: str = ""

    def asked(self) -> ModelQuery:
        return ModelQuery(
            provider=self.provider,
            name=self.model,
            base_url=self.base_url,
            api_key=self.api_key,
            api_mode=self.api_mode,
        )


def save_choice(settings: Settings, choice: ModelChoice, entry: ProviderEntry) -> list[str]:
    """Write the choice to config.yaml and its key to .env; what was written, in words.

    A name alone is another model of the same server, whose address and key stay.
    """
    home = paths.made(settings.home)
    if choice == ModelChoice(model=choice.model) and (settings.get("model.provider") or settings.get("model.base_url")):
        set_key(home, "model.default", choice.model)
        return [f"model.default = {choice.model}"]
    provider = choice.provider or entry.id
    written = [f"model.provider = {provider}"]
    set_key(home, "model.provider", provider)
    if choice.model:
        set_key(home, "model.default", choice.model)
        written.append(f"model.default = {choice.model}")
    else:
        unset_key(home, "model.default")
    for key, value in (("model.base_url", choice.base_url), ("model.api_mode", choice.api_mode)):
        if value:
            set_key(home, key, value)
            written.append(f"{key} = {value}")
        else:
            unset_key(home, key)
    is_usual = not choice.base_url or Home(provider=entry.id).has(choice.base_url)
    variable = entry.env[0] if entry.env and is_usual else CUSTOM_KEY
    if choice.api_key:
        set_env(paths.env_file(home), variable, choice.api_key)
        written.append(f"{variable} in .env")
    if choice.api_key and variable == CUSTOM_KEY:  # the variable of a provider is for the provider's own hosts
        set_key(home, "model.api_key", f"${{{CUSTOM_KEY}}}")
    else:
        unset_key(home, "model.api_key")
    return written
