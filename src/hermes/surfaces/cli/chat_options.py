"""The options of a conversation, the same before and after `chat`."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hermes.surfaces.cli.shell_completion import matching_sessions, matching_skills

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("-m", "--model", metavar="NAME", help="Model for this run."),
    click.option("--provider", metavar="NAME", help="Who serves it."),
    click.option("--base-url", metavar="URL", help="Address of the API."),
    click.option("-t", "--toolsets", metavar="A,B", help="Toolsets the model gets."),
    click.option(
        "-r",
        "--resume",
        metavar="SESSION",
        shell_complete=matching_sessions,
        help="Go on with a session: its id, the start of it, or its title.",
    ),
    click.option(
        "-c",
        "--continue",
        "continue_",
        metavar="[NAME]",
        is_flag=False,
        flag_value="",
        shell_complete=matching_sessions,
        help="Go on with the newest session, or the newest of that name.",
    ),
    click.option("--fork", is_flag=True, help="With --resume or --continue: go on in a copy of the session."),
    click.option("--wait", is_flag=True, help="With -q: wait until nobody else works on the session, and ask here."),
    click.option("--max-turns", type=click.IntRange(min=1), metavar="N", help="Model calls the turn may make."),
    click.option(
        "--max-budget",
        type=click.FloatRange(min=0, min_open=True),
        metavar="USD",
        help="US dollars the session may cost, with its children (spending.session_usd).",
    ),
    click.option(
        "-s",
        "--skills",
        metavar="A,B",
        multiple=True,
        shell_complete=matching_skills,
        help="Skills the model is given first: folders of HERMES_HOME/skills.",
    ),
    click.option("-w", "--worktree", is_flag=True, help="Work in a git worktree of its own."),
    click.option(
        "--add-dir",
        "add_dirs",
        metavar="DIR",
        multiple=True,
        help="Let commands and file tools write below this folder, too. May be given several times.",
    ),
    click.option(
        "--allow-host",
        "allow_hosts",
        metavar="HOST",
        multiple=True,
        help="Let commands reach this host unasked where terminal.network is ask. May be given several times.",
    ),
    click.option("--checkpoints", is_flag=True, help="Take a snapshot before files are changed."),
    click.option(
        "--yolo",
        is_flag=True,
        envvar="HERMES_YOLO_MODE",
        help="Do not ask before dangerous commands. Hard rules still hold.",
    ),
    click.option("--accept-hooks", is_flag=True, help="Run configured hooks without asking."),
    click.option("--pass-session-id", is_flag=True, help="Tell the model the id of its session."),
    click.option(
        "--ignore-rules",
        is_flag=True,
        envvar="HERMES_IGNORE_RULES",
        help="Leave out AGENTS.md, SOUL.md, memory and skills.",
    ),
    click.option(
        "--ignore-user-config",
        is_flag=True,
        envvar="HERMES_IGNORE_USER_CONFIG",
        help="Leave out config.yaml; .env still counts.",
    ),
)


def chat_options(command: F) -> F:
    """Add the options of a conversation to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
