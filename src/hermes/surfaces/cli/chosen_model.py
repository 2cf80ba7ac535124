"""The model of a run: the one that was chosen, or what is found when nobody has chosen one."""

from hermes.config.sections import model as model_section
from hermes.config.settings import Settings
from hermes.host.installation import is_model_chosen
from hermes.surfaces.cli.context import Cli


def with_model(cli: Cli, settings: Settings, *, is_quiet: bool) -> Settings:
    """`settings` with a model in them: as they are where they name one, else with what is found, told on stderr."""
    if is_model_chosen(settings):
        section = settings.of(model_section.Section)
        is_elsewhere = bool(settings.flags.get("model.base_url"))  # an address for this run wins over the file
        if section.provider in ("local", "box") and not is_elsewhere:
            from hermes.surfaces.cli.found_model import check_box  # starts processes

            check_box(cli, section.default, is_quiet=is_quiet)
        return settings
    from hermes.surfaces.cli.found_model import found_model  # as above

    pick = found_model(cli, settings)
    if not is_quiet:
        cli.out.note(f"model: {pick.why}")
        for line in pick.more:
            cli.out.note(line)
    ignore_file = not settings.tree and not pick.is_saved
    return cli.settings({**settings.flags, **pick.flags}, ignore_file=ignore_file)
