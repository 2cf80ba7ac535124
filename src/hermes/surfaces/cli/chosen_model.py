"""The model of a run: the one that was chosen, or what is found when nobody has chosen one."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.config.sections import model as model_section
from hermes.config.settings import Settings
from hermes.host.installation import is_model_chosen
from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from hermes.host.model_discovery import ModelPick


def with_model(cli: Cli, settings: Settings, *, is_quiet: bool) -> Settings:
    """`settings` with a model in them: as they are where they name one, else with what is found, told on stderr."""
    if is_model_chosen(settings):
        _check_box(cli, settings, is_quiet=is_quiet)
        return settings
    pick = _found(cli, settings)
    if not is_quiet:
        cli.out.note(f"model: {pick.why}")
    ignore_file = not settings.tree and not pick.is_saved
    return cli.settings({**settings.flags, **pick.flags}, ignore_file=ignore_file)


def _found(cli: Cli, settings: Settings) -> "ModelPick":
    """The first of: a known key, a local server, what a person at the terminal answers, the box."""
    from hermes.host.model_discovery import NOTHING_FOUND, find_model, the_box  # brings what starts processes
    from hermes.surfaces.cli.model_questions import SetupOutput, is_interactive

    found = asyncio.run(find_model(settings))
    if found is None:
        found = _asked(cli) if is_interactive() else asyncio.run(the_box(cli, SetupOutput(cli.out), NOTHING_FOUND))
    return found


def _asked(cli: Cli) -> "ModelPick":
    import click

    from hermes.host.model_choice import ModelChoice, save_choice
    from hermes.host.model_discovery import NOTHING_FOUND, ModelPick, can_be_had, the_box
    from hermes.models.box.files import HONEST
    from hermes.models.providers.catalogue import providers
    from hermes.surfaces.cli.model_questions import SetupOutput, ask_choice

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


def _check_box(cli: Cli, settings: Settings, *, is_quiet: bool) -> None:
    section = settings.of(model_section.Section)
    if section.provider not in ("local", "box"):
        return
    from hermes.host.model_discovery import ensure_box  # brings what starts processes
    from hermes.models.box.files import HONEST
    from hermes.surfaces.cli.model_questions import SetupOutput

    file = Path(section.default) if section.default else None
    asyncio.run(ensure_box(cli, SetupOutput(cli.out), file, "the model in the box is not installed"))
    if not section.default and not is_quiet:
        cli.out.note(f"model: SmolLM2 in the box, {HONEST}")
