"""Attach to a session that runs in the server of this home, and leave it running."""

import click

from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.shell_completion import matching_sessions


@click.command("attach")
@click.argument("session", required=False, shell_complete=matching_sessions)
@click.option("--new", is_flag=True, help="Begin a new session there.")
@click.option("--read-only", is_flag=True, help="Only watch: nothing that is typed is sent.")
@click.pass_obj
def attach(cli: Cli, session: str | None, new: bool, read_only: bool) -> int:
    """Talk to a session that lives in the server of this home, and see what others do in it.

    SESSION is an id, the beginning of one, or a title; without it the newest that the server has. The server is
    started when none runs. /detach, Ctrl-D and a lost terminal leave the session working.
    """
    if new and session:
        raise click.UsageError("--new begins a session of its own; leave out its name.")
    from hermes.surfaces.cli.interactive.attach_chat import AttachWish, attached  # for --help nothing of it

    return attached(cli, AttachWish(session=session, is_new=new, is_read_only=read_only))


COMMAND = attach
