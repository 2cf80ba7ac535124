"""The model of a first run: what is found, or what a person at the terminal answers, or the one in the box."""

import asyncio
from pathlib import Path

import click

from hermes.config.settings import Settings
from hermes.host.model_choice import ModelChoice, save_choice
from hermes.host.model_discovery import NOTHING_FOUND, ModelPick, can_be_had, ensure_box, find_model, the_box
from hermes.models.box.files import HONEST, MADE_UP
from hermes.models.providers.catalogue import providers
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.model_questions import SetupOutput, ask_choice, is_interactive


def found_model(cli: Cli, settings: Settings) -> ModelPick:
    """The first of: a known key, a local server, what a person at the terminal answers, the box."""
    found = asyncio.run(find_model(settings))
    if found is None:
        found = _asked(cli) if is_interactive() else asyncio.run(the_box(cli, SetupOutput(cli.out), NOTHING_FOUND))
    return found


def check_box(cli: Cli, file: str, *, is_quiet: bool) -> None:
    """Install what the model in the box, or this file, needs to run."""
    reason = "the model in the box is not installed"
    asyncio.run(ensure_box(cli, SetupOutput(cli.out), Path(file) if file else None, reason))
    if not file and not is_quiet:
        cli.out.note(f"model: SmolLM2 in the box, {HONEST}")
        cli.out.note(MADE_UP)


def _asked(cli: Cli) -> ModelPick:
    cli.out.note(f"{NOTHING_FOUND[0].upper()}{NOTHING_FOUND[1:]}.")
    answer = "1"
    if can_be_had(cli):
        cli.out.note(f"  1  connect a model of your own (three questions)\n  2  try the one in the box, {HONEST}")
        answer = click.prompt("Which", type=click.Choice(["1", "2"]), default="2", err=True)
    if answer == "2":
        pick = asyncio.run(the_box(cli, SetupOutput(cli.out), "you chose it"))
        save_choice(cli.settings(), ModelChoice(provider="local"), providers()["local"])
        return pick
    asked = ask_choice(cli)
    assert asked is not None  # nothing is set that could be kept
    choice, entry = asked
    for line in save_choice(cli.settings(), choice, entry):
        cli.out.note(line)
    return ModelPick(
        flags={}, why=f"{choice.model} of {entry.name}, as you chose; another: hermes model", is_saved=True
    )
