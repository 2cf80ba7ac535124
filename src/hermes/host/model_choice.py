"""Which model a person chose: what can be chosen, whether it works, and how it is written down."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from hermes.config import paths
from hermes.config.dotenv import set_env
from hermes.config.settings import Settings
from hermes.config.write import set_key, unset_key
from hermes.errors import ProviderError, UserError
from hermes.host.installation import Installation
from hermes.models.http.client import HttpClient
from hermes.models.providers.catalogue import ProviderEntry, find_provider, providers
from hermes.models.providers.endpoint_check import CheckResult, check_endpoint, require_model
from hermes.models.providers.key_homes import Home
from hermes.models.providers.resolve import ModelQuery, Resolved, resolve

if TYPE_CHECKING:
    from hermes.host.model_discovery import SetupWatcher

CUSTOM_KEY = "CUSTOM_API_KEY"
BUNDLED = "SmolLM2-135M"
LIKELY = ("openrouter", "anthropic", "openai", "gemini", "custom", "ollama", "lmstudio", "vllm", "local")


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


class OfferedProvider(Struct, frozen=True):
    """A provider that a person may choose."""

    entry: ProviderEntry
    has_key: bool


def offered_providers(settings: Settings) -> list[OfferedProvider]:
    """Those that can be chosen here: first those whose key is set, then the likely ones."""
    offered = [
        OfferedProvider(entry, any(settings.lookup(name) for name in entry.env))
        for entry in providers().values()
        if entry.kind not in ("oauth", "external")
    ]
    places = {name: place for place, name in enumerate(LIKELY)}
    return sorted(offered, key=lambda one: (not one.has_key, places.get(one.entry.id, len(LIKELY))))


def provider_meant(answer: str, offered: Sequence[OfferedProvider]) -> ProviderEntry | None:
    """The provider of this name, or the only one whose name has it in it."""
    entries = [one.entry for one in offered]
    found = find_provider(answer)
    if found is not None and found in entries:
        return found
    near = [entry for entry in entries if answer.lower() in f"{entry.id} {entry.name}".lower()]
    return near[0] if len(near) == 1 else None


async def try_choice(
    installation: Installation, watcher: "SetupWatcher", choice: ModelChoice, *, needs_model: bool = True
) -> tuple[Resolved, CheckResult]:
    """Ask the provider whether key and model are right; `UserError` says what is not."""
    wanted = choice if choice.model else replace(choice, model="-")
    found = resolve(installation.settings(), wanted.asked())
    if found.entry.kind == "box":
        file = (await box_choice(installation, watcher, choice.model)).model
        return found, CheckResult((file or BUNDLED,))
    try:
        result = await _ask(found)
        result = result if result.models else CheckResult(found.models, result.server, result.is_checked)
        if needs_model and choice.model:
            require_model(result, choice.model)
    except ProviderError as error:
        raise UserError(f"{error}; nothing was changed (--no-check writes it down untried)") from error
    return found, result


async def _ask(found: Resolved) -> CheckResult:
    http = HttpClient()
    try:
        return await check_endpoint(http, found.endpoint)
    finally:
        await http.close()


async def box_choice(
    installation: Installation, watcher: "SetupWatcher", text: str, *, is_tried: bool = True
) -> ModelChoice:
    """The GGUF file that `text` names, or the bundled one, as a choice; it is ready to run."""
    from hermes.host.model_discovery import ready_file  # brings what starts processes

    return ModelChoice(
        provider="local", model=str(await ready_file(installation, watcher, text, is_tried=is_tried) or "")
    )


async def adopt_choice(
    installation: Installation, watcher: "SetupWatcher", choice: ModelChoice, *, is_tried: bool
) -> list[str]:
    """Try `choice` and write it down; what was written, in words. The watcher hears what the try showed."""
    if (named := find_provider(choice.provider)) is not None and named.kind == "box":
        entry = resolve(installation.settings(), choice.asked()).entry  # refuses an address
        choice = await box_choice(installation, watcher, choice.model, is_tried=is_tried)
    elif is_tried:
        found, result = await try_choice(installation, watcher, choice)
        entry = found.entry
        told = "the key is right" if found.endpoint.api_key else "it answers"
        watcher.note(f"{entry.name}: {told}." if result.is_checked else f"{entry.name}: could not be asked beforehand.")
    else:
        entry = resolve(installation.settings(), choice.asked()).entry
    return save_choice(installation.settings(), choice, entry)


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
