"""Show or change the model; --global also writes it to config.yaml."""

from hermes.config.write import set_key
from hermes.errors import UserError
from hermes.models.providers.catalogue import find_provider
from hermes.models.providers.resolve import ModelQuery, resolve
from hermes.surfaces.cli.interactive.chat import Chat
from hermes.surfaces.cli.interactive.slashes import Slash, words_of
from hermes.surfaces.cli.model_choice import Choice, save_choice

USAGE = "/model NAME [--provider PROVIDER] [--global]"


async def run(chat: Chat, words: str) -> None:
    if not words:
        chat.say(f"{chat.spent.model}; change it with {USAGE}")
        return
    name, provider, is_global = parsed(words)
    await chat.reconfigure(**changes(name, provider))
    if await chat.exists():
        await chat.in_thread(chat.db.update_session_model, chat.session_id, name)
    kept = "for this run; the next request is not read from the provider's cache"
    if is_global:
        if provider:  # the address and the key of another one are not its own
            entry = resolve(chat.settings, ModelQuery()).entry
            await chat.in_thread(save_choice, chat.cli, Choice(model=name, provider=provider), entry)
        else:
            await chat.in_thread(set_key, chat.cli.home, "model.default", name)
        kept = "from now on, written to config.yaml"
    chat.say(f"The model is {name} {kept}.")


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


COMMAND = Slash(run=run, args="[NAME] [--provider P] [--global]", when_busy=False)
