"""Choose the models that take over when the first one fails."""

import json
from typing import Any

import click
from msgspec import to_builtins

from hermes.config.sections import top as top_section
from hermes.config.write import set_key, unset_key
from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli

KEY = "fallback_providers"


@click.group("fallback", cls=Menu, invoke_without_command=True)
@click.pass_context
def fallback(ctx: click.Context) -> None:
    """Choose the models that take over, in order, when the first one fails.

    The next turn begins with the first again.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


@fallback.command("list")
@as_json
@click.pass_obj
def list_(cli: Cli, as_json: bool) -> None:
    """List them in order."""
    chain = _chain(cli)
    if as_json:
        cli.out.json(chain)
        return
    for number, entry in enumerate(chain, 1):
        where = f" at {entry['base_url']}" if entry.get("base_url") else ""
        cli.out.line(f"{number}. {entry['model']} ({entry.get('provider') or 'by address'}){where}")
    if not chain:
        cli.out.note("No model takes over; add one with: hermes fallback add MODEL --provider NAME")


@fallback.command("add")
@click.argument("model")
@click.option("--provider", metavar="NAME", default="", help="Who serves it.")
@click.option("--base-url", metavar="URL", default="", help="Address, when it is not the provider's usual one.")
@click.option("--key-env", metavar="VARIABLE", default="", help="Variable that holds its key.")
@click.option("--api-mode", metavar="MODE", default="", help="Wire protocol, where the address does not tell.")
@click.option("--first", is_flag=True, help="Before the others, not after them.")
@click.option("--no-check", is_flag=True, help="Write it down untried.")
@click.pass_obj
def add(cli: Cli, /, model: str, first: bool, no_check: bool, **options: str) -> None:
    """Add a model; its key is checked at once."""
    entry = {"model": model, **{name: value for name, value in options.items() if value}}
    chain = _chain(cli)
    if entry in chain:
        raise UserError(f"{model} is in the chain already; see: hermes fallback list")
    if not no_check:
        from hermes.host.model_choice import ModelChoice
        from hermes.surfaces.cli.model_questions import try_now

        key = cli.settings().lookup(options["key_env"]) if options["key_env"] else ""
        if options["key_env"] and not key:
            raise UserError(f"the variable {options['key_env']} is not set; nothing was changed")
        try_now(
            cli,
            ModelChoice(
                model=model,
                provider=options["provider"],
                base_url=options["base_url"],
                api_mode=options["api_mode"],
                api_key=key or "",
            ),
        )
    _save(cli, [entry, *chain] if first else [*chain, entry])
    cli.out.line(f"{model} takes over as number {1 if first else len(chain) + 1}")


@fallback.command("remove")
@click.argument("which", metavar="NUMBER|MODEL")
@click.pass_obj
def remove(cli: Cli, which: str) -> None:
    """Remove one, by its number or its name."""
    chain = _chain(cli)
    places = [place for place, entry in enumerate(chain) if which in (str(place + 1), entry["model"])]
    if len(places) != 1:
        raise UserError(f"{which!r} names {len(places)} of {len(chain)} models; see: hermes fallback list")
    removed = chain.pop(places[0])
    _save(cli, chain)
    cli.out.line(f"{removed['model']} no longer takes over")


@fallback.command("clear")
@click.pass_obj
def clear(cli: Cli) -> None:
    """Remove all."""
    count = len(_chain(cli))
    unset_key(cli.home, KEY)
    cli.out.line(f"{count} removed; no model takes over")


def _chain(cli: Cli) -> list[dict[str, Any]]:
    entries = cli.settings().of(top_section.Section).fallback_providers
    return [{name: value for name, value in to_builtins(entry).items() if value} for entry in entries]


def _save(cli: Cli, chain: list[dict[str, Any]]) -> None:
    if chain:
        set_key(cli.home, KEY, json.dumps(chain))
    else:
        unset_key(cli.home, KEY)


COMMAND = fallback
