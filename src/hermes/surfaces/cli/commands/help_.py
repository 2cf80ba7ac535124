"""Explain a command or a topic."""

from pathlib import Path

import click

from hermes.surfaces.cli.app import COMMANDS
from hermes.surfaces.cli.context import Cli

TOPICS = Path(__file__).parents[1] / "topics"  # a text file each


def topic_names() -> list[str]:
    """What `hermes help` explains besides commands."""
    return sorted(file.stem for file in TOPICS.glob("*.txt"))


def topic_text(topic: str) -> str:
    """All of a topic; the first line says what it is about."""
    return (TOPICS / f"{topic}.txt").read_text(encoding="utf-8")


def _matching(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in ("topics", *topic_names(), *COMMANDS.names()) if name.startswith(incomplete)]


@click.command("help")
@click.argument("words", nargs=-1, metavar="[TOPIC]", shell_complete=_matching)
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Explain a command, a setting or a topic; `hermes help topics` lists them."""
    cli: Cli = ctx.obj
    root = ctx.find_root()
    if not words:
        cli.out.line(root.get_help())
    elif words == ("topics",):
        for name in topic_names():
            cli.out.line(f"  {name:<14} {topic_text(name).partition(chr(10))[0]}")
    elif words[0] in topic_names() and len(words) == 1:
        cli.out.told(topic_text(words[0]).strip())
        if words[0] in COMMANDS.names():
            cli.out.told(f"\nThe command and its options: hermes {words[0]} --help")
    elif words[0] in COMMANDS.names():
        cli.out.told(_command_help(root, words))
    elif "." in words[0]:
        explained = cli.settings().explain(words[0])
        cli.out.line(f"{explained.key}: {explained.description}")
    else:
        from difflib import get_close_matches

        near = get_close_matches(words[0], [*topic_names(), *COMMANDS.names()], n=1)
        hint = f" Did you mean: hermes help {near[0]}" if near else " See: hermes help topics"
        raise click.UsageError(f"There is no help on {words[0]!r}.{hint}", ctx)


def _command_help(root: click.Context, words: tuple[str, ...]) -> str:
    ctx = root
    for word in words:
        group = ctx.command
        command = group.get_command(ctx, word) if isinstance(group, click.Group) else None
        if command is None:
            raise click.UsageError(f"There is no command {' '.join(words)!r}.", ctx)
        ctx = click.Context(command, info_name=word, parent=ctx)
    return ctx.get_help()


COMMAND = help_
