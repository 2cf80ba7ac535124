"""The model of a run: the one that was chosen, or what is found when nobody has chosen one."""

from pathlib import Path

from hermes.config.sections import model as model_section
from hermes.config.settings import Settings
from hermes.surfaces.cli.context import Cli


def with_model(cli: Cli, settings: Settings, *, is_quiet: bool) -> Settings:
    """`settings` with a model in them: as they are where they name one, else with what is found, told on stderr."""
    if is_chosen(settings):
        _check_box(cli, settings, is_quiet=is_quiet)
        return settings
    from hermes.surfaces.cli.model_discovery import find_model  # brings what starts processes

    pick = find_model(cli, settings)
    if not is_quiet:
        cli.out.note(f"model: {pick.why}")
        for line in pick.more:
            cli.out.note(line)
    ignore_file = not settings.tree and not pick.is_saved
    return cli.settings({**settings.flags, **pick.flags}, ignore_file=ignore_file)


def is_chosen(settings: Settings) -> bool:
    """Whether flags, config.yaml or an address in the environment say which model to use."""
    section = settings.of(model_section.Section)
    named = bool(section.default or section.base_url) or section.provider not in ("", "auto")
    return named or any(settings.lookup(name) for name in ("OPENAI_BASE_URL", "OPENROUTER_BASE_URL"))


def _check_box(cli: Cli, settings: Settings, *, is_quiet: bool) -> None:
    section = settings.of(model_section.Section)
    if section.provider not in ("local", "box"):
        return
    from hermes.models.box.files import HONEST, MADE_UP
    from hermes.surfaces.cli.model_discovery import ensure_box  # brings what starts processes

    ensure_box(cli, Path(section.default) if section.default else None, "the model in the box is not installed")
    if not section.default and not is_quiet:
        cli.out.note(f"model: SmolLM2 in the box, {HONEST}")
        cli.out.note(MADE_UP)
