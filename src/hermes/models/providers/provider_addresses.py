"""Where a provider is reached when nobody gives an address: as config.yaml, a variable or the catalogue has it."""

from hermes.config.sections import top as top_section
from hermes.config.settings import Settings
from hermes.models.providers.catalogue import ProviderEntry, find_provider
from hermes.models.providers.credentials import AuthFile


def own_providers(settings: Settings) -> dict[str, top_section.Provider]:
    """Those of config.yaml that are not in the catalogue, by their lowered names."""
    top = settings.of(top_section.Section)
    named = {name.lower(): entry for name, entry in top.providers.items() if find_provider(name) is None}
    return {entry.name.lower(): entry for entry in top.custom_providers if entry.name} | named


def configured_provider(settings: Settings, entry: ProviderEntry) -> top_section.Provider:
    """What config.yaml says of a provider of the catalogue, or of an own one."""
    named = settings.of(top_section.Section).providers.get(entry.id)
    return named or own_providers(settings).get(entry.id) or top_section.Provider()


def usual_address(settings: Settings, entry: ProviderEntry) -> str:
    """The address of `entry`; empty when it has none."""
    if moved := configured_provider(settings, entry).base_url:
        return moved
    if entry.base_url_env and (set_by := settings.lookup(entry.base_url_env)):
        return set_by
    if entry.kind == "aws":
        from hermes.models.wires.bedrock_converse import bedrock_url  # noqa: PLC0415 - only who uses it

        return bedrock_url(region(settings))
    return entry.base_url or (auth_file(settings).address(entry.id) if entry.kind == "oauth" else "")


def region(settings: Settings) -> str:
    """The AWS region."""
    from hermes.config.sections import bedrock  # noqa: PLC0415 - a start pays for its own provider alone

    section = settings.of(bedrock.Section)
    return section.region or settings.lookup("AWS_REGION") or settings.lookup("AWS_DEFAULT_REGION") or ""


def auth_file(settings: Settings) -> AuthFile:
    """The keys and sign-ins that are stored in the home."""
    return AuthFile(settings.home / "auth.json")
