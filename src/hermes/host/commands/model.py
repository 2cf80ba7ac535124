"""Show or change the model; --global also writes it to config.yaml."""

import shlex
from difflib import get_close_matches

from hermes.config.write import set_key
from hermes.errors import HermesError, UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, words_of
from hermes.host.live_session import LiveSession
from hermes.host.model_choice import ModelChoice, save_choice
from hermes.models.providers.catalogue import find_provider
from hermes.models.providers.resolve import ModelQuery, resolve

SHOWN = 40
ASK_S = 5.0
USAGE = "/model NAME [--provider PROVIDER] [--global]"


async def run(call: CommandCall) -> CommandResult:
    session = call.session
    if not call.words:
        return await _offered(session)
    name, provider, is_global = parsed(call.words)
    doubt = "" if provider else await _doubt(session, name)
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
    return CommandResult(text=f"The model is {name} {kept}.", note=doubt, data={"model": name})


async def _offered(session: LiveSession) -> CommandResult:
    """What the server offers, to choose from; the present one is marked."""
    model, names = session.figures.model, await session.in_thread(_names, session)
    if not names:
        return CommandResult(text=f"{model}; change it with {USAGE}", data={"model": model})
    first = sorted(names, key=lambda name: name != model)
    choices = [
        {"label": f"{name}{'  (now)' if name == model else ''}", "command": f"/model {shlex.quote(name)}"}
        for name in first
    ]
    return CommandResult(
        text=f"The model is {model}. There are:",
        sections=(("", tuple((str(number), name) for number, name in enumerate(first[:SHOWN], 1))),),
        note=f"Change it with {USAGE}",
        data={"model": model, "models": list(names), "choices": choices},
    )


async def _doubt(session: LiveSession, name: str) -> str:
    """A word when the server lists its models, and this is none of them."""
    names = await session.in_thread(_names, session)
    if not names or name in names:
        return ""
    near = get_close_matches(name, names, n=1)
    return f"The server does not list it{f'; did you mean {near[0]}?' if near else '.'}"


def _names(session: LiveSession) -> tuple[str, ...]:
    """The models of the provider in use, as it tells them; none when it does not."""
    import asyncio  # in a thread of its own

    from hermes.models.http.client import HttpClient
    from hermes.models.providers.endpoint_check import check_endpoint

    async def ask() -> tuple[str, ...]:
        http = HttpClient()
        try:
            async with asyncio.timeout(ASK_S):
                return tuple((await check_endpoint(http, resolve(session.settings, ModelQuery()).endpoint)).models)
        except (HermesError, TimeoutError, OSError):
            return ()
        finally:
            await http.close()

    return asyncio.run(ask())


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
