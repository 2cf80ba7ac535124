"""Consent to the programs of `hooks` in config.yaml: asked for once each, where there is somebody to ask."""

import click

from hermes.config.settings import Settings
from hermes.surfaces.cli.context import Cli


def consent_to_hooks(cli: Cli, settings: Settings, *, may_ask: bool) -> None:
    """Ask about each hook that nobody has accepted yet; those that stay so do not run, and that is told."""
    if "hooks" not in settings.tree:
        return
    from hermes.extensions.shell_hooks import accept, not_accepted  # for who has hooks

    for one in not_accepted(settings):
        which = f"{one.hook.command!r} ({one.event})"
        if may_ask:
            cli.out.note(f"config.yaml has a hook: {which}")
        if may_ask and click.confirm("Allow it from now on?", err=True):
            accept(settings.home, one)
        else:
            how = "" if may_ask else " hermes in a terminal asks you, --accept-hooks allows all of them."
            cli.out.note(f"The hook {which} does not run: nobody has allowed it.{how}")
