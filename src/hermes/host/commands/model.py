"""Show or change the model; --global also writes it to config.yaml."""

from hermes.config.write import set_key
from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, words_of
from hermes.host.model_choice import ModelChoice, save_choice
from hermes.models.providers.catalogue import find_provider
from hermes.models.providers.resolve import ModelQuery, resolve

USAGE = "/model NAME [--provider PROVIDER] [--global]"


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    if not call.words:
        model = session.figures.model
        return CommandResult(text=f"{model}; change it with {USAGE}", data={"model": model})
    name, provider, is_global = parsed(call.words)
    await session.reconfigure(**changes(name, provider))
    if await session.exists():
        await session.in_thread(session.db.update_session_model, session.session_id, name)
    kept = "for this run; the next request is not read from the provider's cache"
    if is_global:
        if provider:  # the address and the key of another one are not its own
            entry = resolve(session.settings, ModelQuery()).entry
            await session.in_thread(save_choice, session.settings, ModelChoice(model=name, provider=provider), entry)
        else:
            await session.in_thread(set_key, session.settings.home, "model.default", name)
        kept = "from now on, written to config.yaml"
    return CommandResult(text=f"The model is {name} {kept}.", data={"model": name})


def changes(name: str, provider: str) -> dict[str, str]:
    """The settings of this run that change; another provider has neither the address nor the key of the one before."""
    other = {"model__provider": provider, "model__base_url": "", "model__api_key": ""} if provider else {}
    return {"model__default": name, **other}


def parsed(words: str) -> tuple[str, str, bool]:
    """Name, provider and whether for good; `provider/model` stays a name, as aggregators have such names."""
    parts = words_of(words)
    is_global = "--global" in parts
    parts = [part for part in parts if part != "--global"]
    provider = ""
    if "--provider" in parts:
        place = parts.index("--provider")
        if place + 1 >= len(parts):
            raise UserError(USAGE)
        provider = parts[place + 1]
        del parts[place : place + 2]
        if find_provider(provider) is None:
            raise UserError(f"there is no provider {provider!r}; see: hermes model --list")
    if len(parts) != 1:
        raise UserError(USAGE)
    return parts[0], provider, is_global


COMMAND = SlashCommand(run=run, args="[NAME] [--provider P] [--global]", when_busy=False)
