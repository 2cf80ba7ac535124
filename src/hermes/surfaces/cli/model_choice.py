"""Choosing a model: which provider, with which key, under which name; tried before it is written down."""

import asyncio
import sys
from collections.abc import Sequence

import click

from hermes.errors import ProviderError, UserError
from hermes.host.model_choice import ModelChoice, save_choice
from hermes.models.http.client import HttpClient
from hermes.models.providers.catalogue import ProviderEntry, find_provider, is_loopback, provider_of_host, providers
from hermes.models.providers.endpoint_check import CheckResult, check_endpoint, require_model
from hermes.models.providers.resolve import Resolved, resolve
from hermes.surfaces.cli.context import Cli

SHOWN_MODELS = 40
KEEP = "\0keep"
LIKELY = ("openrouter", "anthropic", "openai", "gemini", "custom", "ollama", "lmstudio", "vllm", "local")


def is_interactive() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def try_choice(cli: Cli, choice: ModelChoice, *, needs_model: bool = True) -> tuple[Resolved, CheckResult]:
    """Ask the provider whether key and model are right; `UserError` says what is not."""
    wanted = choice if choice.model else ModelChoice(**{**_fields(choice), "model": "-"})
    found = resolve(cli.settings(), wanted.asked())
    if found.entry.kind == "box":
        file = _box_choice(cli, choice.model, is_tried=True).model
        return found, CheckResult((file or "SmolLM2-135M",))
    try:
        result = asyncio.run(_ask(found))
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


def adopt(cli: Cli, choice: ModelChoice, *, is_tried: bool) -> None:
    """Try `choice`, write it down, and tell both."""
    if (named := find_provider(choice.provider)) is not None and named.kind == "box":
        entry = resolve(cli.settings(), choice.asked()).entry  # refuses an address
        choice = _box_choice(cli, choice.model, is_tried=is_tried)
    elif is_tried:
        found, result = try_choice(cli, choice)
        entry = found.entry
        told = "the key is right" if found.endpoint.api_key else "it answers"
        cli.out.note(f"{entry.name}: {told}." if result.is_checked else f"{entry.name}: could not be asked beforehand.")
    else:
        entry = resolve(cli.settings(), choice.asked()).entry
    for line in save_choice(cli.settings(), choice, entry):
        cli.out.line(line)


# -- asking a person ---------------------------------------------------------------------------------------------


def ask_choice(cli: Cli) -> tuple[ModelChoice, ProviderEntry] | None:
    """Ask for provider, key and model, step by step; each answer is tried before the next question.

    None when what is set is kept. What was typed stays when a try fails, so that a slip costs one answer and not all.
    """
    entry = _ask_provider(cli)
    if entry is None:
        return None
    if entry.kind == "box":
        from hermes.surfaces.cli.local_models import ask_local  # brings what starts processes

        return ask_local(cli)
    base_url = api_key = ""
    while True:
        if entry.kind == "any" or not (entry.base_url or entry.kind == "aws"):
            base_url = click.prompt("Address of the API (base URL)", default=base_url or None, err=True).strip()
            entry = provider_of_host(base_url) or entry
        if entry.kind in ("key", "any") and not any(cli.settings().lookup(name) for name in entry.env):
            api_key = _ask_key(entry, base_url, api_key)
        choice = ModelChoice(provider=entry.id, base_url=base_url, api_key=api_key)
        try:
            _, result = try_choice(cli, choice, needs_model=False)
            break
        except UserError as error:
            cli.out.note(str(error))
            if not click.confirm("Try again, with what you typed as the default", default=True, err=True):
                raise
    if result.server and entry.kind == "any":
        entry = find_provider(result.server) or entry
    name = _ask_model(cli, result.models)
    return ModelChoice(provider=entry.id, base_url=base_url, api_key=api_key, model=name), entry


def told_next(cli: Cli) -> None:
    """The last line of a wizard."""
    cli.out.note("Now type: hermes")


def _ask_key(entry: ProviderEntry, base_url: str, typed: str) -> str:
    where = f" ({entry.signup})" if entry.signup else ""
    if typed:
        again = click.prompt(
            "Its key (Enter: as typed before)", hide_input=True, default="", show_default=False, err=True
        )
        return again.strip() or typed
    return _ask_secret(f"Key of {entry.name}{where}", is_optional=entry.kind == "any" or is_loopback(base_url))


def _box_choice(cli: Cli, text: str, *, is_tried: bool) -> ModelChoice:
    from hermes.surfaces.cli.model_discovery import ready_file  # brings what starts processes

    return ModelChoice(provider="local", model=str(ready_file(cli, text, is_tried=is_tried) or ""))


def _ask_provider(cli: Cli) -> ProviderEntry | None:
    """Who serves the model; None keeps what is set. The likely ones come first."""
    settings = cli.settings()
    offered = [entry for entry in providers().values() if entry.kind not in ("oauth", "external")]
    has_key = {entry.id: any(settings.lookup(name) for name in entry.env) for entry in offered}
    offered.sort(
        key=lambda entry: (not has_key[entry.id], LIKELY.index(entry.id) if entry.id in LIKELY else len(LIKELY))
    )
    now = str(settings.get("model.provider") or ""), str(settings.get("model.default") or "")
    kept = f"keep {': '.join(filter(None, now))}" if any(now) else ""
    if _can_draw(cli):
        labels = [f"{entry.name}{'  (key is set)' if has_key[entry.id] else ''}  {entry.id}" for entry in offered]
        options: list[tuple[str, str]] = [(kept, KEEP)] if kept else []
        options += [(label, entry.id) for label, entry in zip(labels, offered, strict=True)]
        return _drawn_provider(cli, options, offered)
    for number, entry in enumerate(offered, 1):
        cli.out.note(f"{number:3}  {entry.name}{' (key is set)' if has_key[entry.id] else ''}")
    while True:
        keeps = f" (Enter: {kept})" if kept else ""
        default = "" if kept else None
        answer = click.prompt(
            f"Provider, by number or name{keeps}", default=default, show_default=False, err=True
        ).strip()
        if not answer:
            return None
        if answer.isdigit() and 1 <= int(answer) <= len(offered):
            return offered[int(answer) - 1]
        if (found := _meant(answer, offered)) is not None:
            return found
        cli.out.note(f"There is no provider {answer!r}.")


def _drawn_provider(cli: Cli, options: list[tuple[str, str]], offered: Sequence[ProviderEntry]) -> ProviderEntry | None:
    from hermes.surfaces.cli.choose import choose  # draws

    while True:
        taken = choose("Who serves the model", options)
        if taken == KEEP:
            return None
        if taken is None:
            raise UserError("nothing was chosen, and nothing was changed")
        if (found := _meant(taken, offered)) is not None:
            return found
        cli.out.note(f"There is no provider {taken!r}.")


def _meant(answer: str, offered: Sequence[ProviderEntry]) -> ProviderEntry | None:
    """The provider of this name, or the only one whose name has it in it."""
    found = find_provider(answer)
    if found is not None and found in offered:
        return found
    near = [entry for entry in offered if answer.lower() in f"{entry.id} {entry.name}".lower()]
    return near[0] if len(near) == 1 else None


def _can_draw(cli: Cli) -> bool:
    return cli.out.is_terminal and cli.environ.get("TERM", "") not in ("", "dumb", "unknown")


def _ask_secret(text: str, *, is_optional: bool) -> str:
    default = "" if is_optional else None
    text = f"{text} (Enter: none)" if is_optional else text
    answer: str = click.prompt(text, hide_input=True, default=default, show_default=False, err=True)
    return answer.strip()


def _ask_model(cli: Cli, models: Sequence[str]) -> str:
    if models and _can_draw(cli):
        from hermes.surfaces.cli.choose import choose  # draws

        taken = choose("Which model", [(name, name) for name in models])
        if taken is None:
            raise UserError("nothing was chosen, and nothing was changed")
        return taken
    for number, name in enumerate(models[:SHOWN_MODELS], 1):
        cli.out.note(f"{number:3}  {name}")
    if len(models) > SHOWN_MODELS:
        cli.out.note(f"     … and {len(models) - SHOWN_MODELS} more; type the name of one")
    while True:
        answer: str = click.prompt("Model, by number or name", err=True).strip()
        if answer.isdigit() and 1 <= int(answer) <= len(models):
            return models[int(answer) - 1]
        if answer in models or not models:
            return answer
        try:
            require_model(CheckResult(tuple(models)), answer)
        except ProviderError as error:
            cli.out.note(f"{error}.")


def _fields(choice: ModelChoice) -> dict[str, str]:
    return {name: getattr(choice, name) for name in choice.__struct_fields__}
