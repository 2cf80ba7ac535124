"""The models that an editor can choose among, and what choosing one changes."""

from typing import Any

from hermes.config.sections import top as top_section
from hermes.config.settings import Settings
from hermes.errors import HermesError, UserError
from hermes.models.providers.catalogue import find_provider
from hermes.models.providers.resolve import ModelQuery, resolve
from hermes.surfaces.acp.protocol import ModelOffered, ModelState


def model_state(settings: Settings) -> ModelState:
    """The model in use, and the ones that the settings name beside it."""
    try:
        endpoint = resolve(settings, ModelQuery()).endpoint
    except HermesError:
        return ModelState("", ())
    current = ModelOffered(f"{endpoint.provider}:{endpoint.model}", endpoint.model or endpoint.provider, "in use")
    others = [_fallback(each) for each in settings.of(top_section.Section).fallback_providers]
    return ModelState(current.model_id, (current, *(one for one in others if one is not None and one != current)))


def model_changes(settings: Settings, model_id: str) -> tuple[str, dict[str, Any]]:
    """The name that `provider:model` or a bare name means, and the settings that it changes."""
    provider, _, name = model_id.partition(":")
    if not name or (find_provider(provider) is None and provider != "custom"):
        provider, name = "", model_id
    if not name:
        raise UserError("name a model, as in provider:model")
    current = resolve(settings, ModelQuery()).endpoint.provider
    if provider in ("", "custom", current):
        return name, {"model__default": name}
    # The address and the key of another provider are not its own.
    return name, {"model__default": name, "model__provider": provider, "model__base_url": "", "model__api_key": ""}


def _fallback(entry: Any) -> ModelOffered | None:
    provider, model = getattr(entry, "provider", ""), getattr(entry, "model", "")
    return ModelOffered(f"{provider}:{model}", model, "stands in when the first one fails") if model else None
