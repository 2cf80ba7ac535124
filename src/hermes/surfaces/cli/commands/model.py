"""Choose the model, and check its key at once."""

from typing import TYPE_CHECKING, Any

import click

from hermes.config import paths
from hermes.errors import UserError
from hermes.surfaces.cli.app import as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit

if TYPE_CHECKING:
    from hermes.host.model_choice import ModelChoice

NOBODY_TO_ASK = (
    "no model is configured, and there is no terminal to ask in; say which: "
    "hermes model NAME --provider PROVIDER, with --base-url URL for a server of your own, or: hermes model local"
)


@click.command("model")
@click.argument("name", required=False)
@click.argument("file", required=False)
@click.option("--provider", metavar="NAME", default="", help="Who serves it; --list shows them.")
@click.option("--base-url", metavar="URL", default="", help="Address, for a server of your own.")
@click.option("--api-key", metavar="KEY", default="", help="Its key; kept in .env.")
@click.option("--api-mode", metavar="MODE", default="", help="Wire protocol, where the address does not tell.")
@click.option("--no-check", is_flag=True, help="Write it down untried.")
@click.option("--list", "list_providers", is_flag=True, help="List the providers and leave.")
@click.option("--models", "list_models", is_flag=True, help="List the models of the provider and leave.")
@click.option("--update", "source", metavar="FILE|URL", help="Take windows and prices from there (models.dev works).")
@as_json
@click.pass_obj
def model(cli: Cli, /, **options: Any) -> int:
    """Choose the model, and check its key at once.

    Without anything, ask step by step in a terminal; elsewhere tell which model is in use. `hermes model local FILE`
    runs a GGUF file on this machine; without FILE it offers the files and servers that are here. Where nobody can be
    asked, it takes the small model in the box.
    """
    from hermes.host.model_choice import ModelChoice, save_choice
    from hermes.surfaces.cli.model_questions import adopt, ask_choice, is_interactive, told_next

    as_json: bool = options["as_json"]
    if options["source"] is not None:
        return _update(cli, options["source"])
    if options["list_providers"]:
        return _providers(cli, as_json)
    words = {name: options[name] for name in ("provider", "base_url", "api_key", "api_mode")}
    choice = ModelChoice(model=options["name"] or "", **words)
    if choice == ModelChoice(model="local"):
        choice = ModelChoice(provider="local", model=options["file"] or "")
    elif options["file"] is not None:
        raise click.UsageError("Only `hermes model local` takes a file.")
    if options["list_models"]:
        is_local = choice == ModelChoice(provider="local")
        return _local_models(cli, as_json) if is_local else _models(cli, choice, as_json)
    if choice == ModelChoice(provider="local") and not options["no_check"] and is_interactive():
        from hermes.surfaces.cli.local_models import ask_local

        for line in save_choice(cli.settings(), *ask_local(cli)):
            cli.out.line(line)
        told_next(cli)
        return Exit.ANSWERED
    if choice != ModelChoice():
        adopt(cli, choice, is_tried=not options["no_check"])
        return Exit.ANSWERED
    if not is_interactive() or as_json:
        return _show(cli, as_json)
    asked = ask_choice(cli)
    for line in save_choice(cli.settings(), *asked) if asked is not None else ["What was set is kept."]:
        cli.out.line(line)
    told_next(cli)
    return Exit.ANSWERED


def _show(cli: Cli, as_json: bool) -> int:
    from hermes.models.providers.resolve import NO_MODEL, ModelQuery, resolve

    try:
        found = resolve(cli.settings(), ModelQuery())
    except UserError as error:
        raise UserError(NOBODY_TO_ASK if str(error) == NO_MODEL else str(error)) from error
    endpoint = found.endpoint
    facts = {
        "model": endpoint.model or None,
        "provider": endpoint.provider,
        "api_mode": endpoint.api_mode,
        "base_url": endpoint.base_url,
        "has_key": bool(endpoint.api_key or endpoint.headers),
        "context_length": endpoint.context_length,
        "source": found.source,
        "withheld": endpoint.withheld or None,
    }
    if as_json:
        cli.out.json(facts)
    elif found.entry.kind == "box":
        cli.out.line(f"{endpoint.model or 'SmolLM2-135M'} in the box ({endpoint.provider}, {found.source})")
    else:
        if endpoint.withheld:
            cli.out.note(endpoint.withheld)
        cli.out.line(
            f"{endpoint.model or 'the loaded model'} at {endpoint.base_url} ({endpoint.provider}, {found.source})"
        )
    return Exit.ANSWERED


def _providers(cli: Cli, as_json: bool) -> int:
    from hermes.models.providers.catalogue import providers

    settings = cli.settings()
    rows = [
        {
            "id": entry.id,
            "name": entry.name,
            "kind": entry.kind,
            "base_url": entry.base_url,
            "env": list(entry.env),
            "has_key": any(settings.lookup(name) for name in entry.env),
        }
        for entry in providers().values()
    ]
    if as_json:
        cli.out.json(rows)
        return Exit.ANSWERED
    kinds = {
        "oauth": "sign-in: tokens in auth.json",
        "external": "not in this version",
        "local": "on this machine",
        "box": "on this machine",
    }
    cells = [
        [row["id"], row["name"], "set" if row["has_key"] else kinds.get(str(row["kind"]), "-"), ", ".join(row["env"])]  # type: ignore[arg-type]  # a list of names
        for row in rows
    ]
    cli.out.table(["PROVIDER", "NAME", "KEY", "VARIABLES"], cells)
    return Exit.ANSWERED


def _models(cli: Cli, choice: "ModelChoice", as_json: bool) -> int:
    from hermes.surfaces.cli.model_questions import try_now

    result = try_now(cli, choice, needs_model=False)
    if as_json:
        cli.out.json(list(result.models))
        return Exit.ANSWERED
    for name in result.models:
        cli.out.line(name)
    if not result.models:
        cli.out.note("This provider does not tell its models.")
    return Exit.ANSWERED


def _local_models(cli: Cli, as_json: bool) -> int:
    from hermes.surfaces.cli.local_models import local_models

    found = local_models(cli)
    if as_json:
        rows = [one.choice for one in found]
        cli.out.json([{"provider": one.provider, "model": one.model, "base_url": one.base_url} for one in rows])
        return Exit.ANSWERED
    for one in found:
        cli.out.line(one.label)
    cli.out.note("A file by its path: hermes model local FILE")
    return Exit.ANSWERED


def _update(cli: Cli, source: str) -> int:
    from hermes.models.providers.metadata import update_metadata

    table = update_metadata(paths.cache_dir(cli.home), _read(source))
    file = paths.cache_dir(cli.home) / "models.json"
    cli.out.line(f"Windows and prices of {len(table.models)} models, a snapshot of {table.snapshot}, are in {file}")
    return Exit.ANSWERED


def _read(source: str) -> bytes:
    from pathlib import Path

    if not source.startswith(("http://", "https://")):
        try:
            return Path(source).read_bytes()
        except OSError as error:
            raise UserError(f"cannot read {source}: {error.strerror}") from error
    import asyncio

    import msgspec

    from hermes.models.http.client import HttpClient
    from hermes.models.http.errors import HttpError

    async def fetch() -> bytes:
        http = HttpClient()
        try:
            return msgspec.json.encode(await http.get_json(source, {}, 30.0))
        except HttpError as error:
            raise UserError(str(error)) from error
        finally:
            await http.close()

    return asyncio.run(fetch())


COMMAND = model
