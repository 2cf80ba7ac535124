"""What somebody meant whose command line could not be understood."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

import click
from click.exceptions import MissingParameter, NoArgsIsHelpError, NoSuchOption

from hermes.surfaces.cli.context import Cli

# What people type for a command that a group calls otherwise.
MEANT = {
    "add": ("create", "new", "install", "enable", "edit"),
    "create": ("new", "add", "install"),
    "delete": ("remove", "forget", "revoke"),
    "info": ("show", "view", "inspect", "status"),
    "list": ("status",),
    "ls": ("list", "status"),
    "new": ("create", "add"),
    "remove": ("forget", "delete", "revoke"),
    "rm": ("remove", "delete", "forget", "revoke"),
    "show": ("view", "info", "inspect", "list", "status"),
    "start": ("run", "daemon", "serve"),
    "view": ("show", "info"),
}


def meant_command(ctx: click.Context, name: str, known: Sequence[str]) -> str:
    """A hint for a word that is no command of a group; empty where none is near."""
    if " " in name:  # nobody calls a command that
        return f' To ask that: hermes chat -q "{name}"'
    near = [word for word in MEANT.get(name, ()) if word in known] or get_close_matches(name, known, 1)
    return f" Did you mean: {ctx.command_path} {near[0]}" if near else ""


def show_usage(cli: Cli, error: click.UsageError) -> None:
    """What was wrong with a command line, and where it is explained."""
    if isinstance(error, NoArgsIsHelpError):
        cli.out.note(error.format_message())
        return
    cli.out.error(f"{_plain(error.format_message())}{_meant_option(error)}")
    if error.ctx is not None:
        if isinstance(error, MissingParameter):
            cli.out.note(error.ctx.get_usage())
        cli.out.note(f"See: {error.ctx.command_path} --help")


# What click says of numbers, in words.
_NUMBERS = (
    (re.compile(r"is not a valid integer( range)?\.$"), "is not a whole number."),
    (re.compile(r"is not a valid float( range)?\.$"), "is not a number."),
    (re.compile(r"is not in the range x>=(\S+)\.$"), r"is less than \1."),
    (re.compile(r"is not in the range (\S+)<=x<=(\S+)\.$"), r"is not between \1 and \2."),
)


def _plain(words: str) -> str:
    for pattern, said in _NUMBERS:
        words = pattern.sub(said, words)
    return words


def _meant_option(error: click.UsageError) -> str:
    """A hint for `hermes serve status`, where `--status` is an option, and for a value that looks like an option."""
    if isinstance(error, NoSuchOption) and error.option_name[1:2].isdigit() and error.ctx is not None:
        return f" A value that begins with '-' stands behind a '--': {error.ctx.command_path} … -- {error.option_name}"
    _, mark, word = error.format_message().partition("unexpected extra argument (")
    option = f"--{word.rstrip(')').split(' ')[0]}"
    if not mark or error.ctx is None or not any(option in param.opts for param in error.ctx.command.params):
        return ""
    return f". Did you mean: {error.ctx.command_path} {option}"
