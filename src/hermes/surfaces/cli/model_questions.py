"""The questions by which a person chooses a model; each answer is tried before the next."""

import asyncio
import sys
from collections.abc import Sequence

import click

from hermes.errors import ProviderError, UserError
from hermes.host.model_choice import (
    ModelChoice,
    OfferedProvider,
    adopt_choice,
    offered_providers,
    provider_meant,
    try_choice,
)
from hermes.models.providers.catalogue import ProviderEntry, find_provider, is_loopback, provider_of_host
from hermes.models.providers.endpoint_check import CheckResult, require_model
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.output import Output

SHOWN_MODELS = 40
KEEP = "\0keep"


def is_interactive() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class SetupOutput:
    """`SetupWatcher` on stderr."""

    def __init__(self, out: Output) -> None:
        self.note = out.note
        self._stream = out.stderr
        self.draws_over = out.stderr.isatty()

    def progress(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def try_now(cli: Cli, choice: ModelChoice, *, needs_model: bool = True) -> CheckResult:
    """What the provider says to `choice`; `UserError` says what is not right."""
    return asyncio.run(try_choice(cli, SetupOutput(cli.out), choice, needs_model=needs_model))[1]


def adopt(cli: Cli, choice: ModelChoice, *, is_tried: bool) -> None:
    """Try `choice`, write it down, and tell both."""
    for line in asyncio.run(adopt_choice(cli, SetupOutput(cli.out), choice, is_tried=is_tried)):
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
            base_url = with_scheme(base_url)
            entry = provider_of_host(base_url) or entry
        if entry.kind in ("key", "any") and not any(cli.settings().lookup(name) for name in entry.env):
            api_key = _ask_key(entry, base_url, api_key)
        choice = ModelChoice(provider=entry.id, base_url=base_url, api_key=api_key)
        try:
            result = try_now(cli, choice, needs_model=False)
            break
        except UserError as error:
            cli.out.note(str(error))
            if not click.confirm("Try again, with what you typed as the default", default=True, err=True):
                raise
    if result.server and entry.kind == "any":
        entry = find_provider(result.server) or entry
    name = _ask_model(cli, result.models)
    return ModelChoice(provider=entry.id, base_url=base_url, api_key=api_key, model=name), entry


def with_scheme(address: str) -> str:
    """What somebody means who types `localhost:8000/v1`. No key goes out unencrypted by a guess."""
    if not address or "://" in address:
        return address
    return f"{'http' if is_loopback(f'http://{address}') else 'https'}://{address}"


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


def _ask_provider(cli: Cli) -> ProviderEntry | None:
    """Who serves the model; None keeps what is set."""
    settings = cli.settings()
    offered = offered_providers(settings)
    now = str(settings.get("model.provider") or ""), str(settings.get("model.default") or "")
    kept = f"keep {': '.join(filter(None, now))}" if any(now) else ""
    if _can_draw(cli):
        options: list[tuple[str, str]] = [(kept, KEEP)] if kept else []
        options += [
            (f"{one.entry.name}{'  (key is set)' if one.has_key else ''}  {one.entry.id}", one.entry.id)
            for one in offered
        ]
        return _drawn_provider(cli, options, offered)
    for number, one in enumerate(offered, 1):
        cli.out.note(f"{number:3}  {one.entry.name}{' (key is set)' if one.has_key else ''}")
    while True:
        keeps = f" (Enter: {kept})" if kept else ""
        default = "" if kept else None
        answer = click.prompt(
            f"Provider, by number or name{keeps}", default=default, show_default=False, err=True
        ).strip()
        if not answer:
            return None
        if answer.isdigit() and 1 <= int(answer) <= len(offered):
            return offered[int(answer) - 1].entry
        if (found := provider_meant(answer, offered)) is not None:
            return found
        cli.out.note(f"There is no provider {answer!r}.")


def _drawn_provider(
    cli: Cli, options: list[tuple[str, str]], offered: Sequence[OfferedProvider]
) -> ProviderEntry | None:
    from hermes.surfaces.cli.choose import choose  # draws

    while True:
        taken = choose("Who serves the model", options)
        if taken == KEEP:
            return None
        if taken is None:
            raise UserError("nothing was chosen, and nothing was changed")
        if (found := provider_meant(taken, offered)) is not None:
            return found
        cli.out.note(f"There is no provider {taken!r}.")


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
