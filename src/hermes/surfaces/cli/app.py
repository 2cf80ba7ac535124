"""The `hermes` command: its options, and its subcommands, which are loaded when they are named."""

from typing import Any

import click

from hermes.surfaces.cli.chat_options import chat_options
from hermes.surfaces.cli.context import Cli
from hermes.tables import Table

COMMANDS: Table[click.Command] = Table("hermes.surfaces.cli.commands", "COMMAND")


def _claim_stdout(ctx: click.Context, _param: click.Parameter, is_json: bool) -> bool:
    if is_json and isinstance(ctx.obj, Cli):
        ctx.obj.out.claim()
    return is_json


as_json = click.option("--json", "as_json", is_flag=True, callback=_claim_stdout, help="As JSON.")

WHOLE = 1_000  # no first sentence of a help text is longer

EPILOG = """\b
Examples:
  cd ~/project && hermes               talk, in your project
  hermes --continue                    go on with the last session
  hermes chat -q "What does this project do?"
  git diff | hermes chat -q "Review this."
  hermes model                         choose the model, and try its key
  hermes doctor                        what is wrong, and what to run
More: hermes help topics"""


class TypedContext(click.Context):
    """A context whose help names commands as they can be typed here and now."""

    def get_help(self) -> str:
        text = super().get_help()
        return self.obj.out.typed(text) if isinstance(self.obj, Cli) else text


class Menu(click.Group):
    """A group that suggests the right spelling; a mistake never runs something else instead."""

    context_class = TypedContext

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from hermes.surfaces.cli.usage_hints import meant_command  # only when something is wrong

            hint = meant_command(ctx, name, self.list_commands(ctx))
            raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
        found, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            command.context_class = TypedContext
        return found, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with their whole first sentence, which click would cut off; other names beside the own one."""
        names: dict[click.Command, list[str]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                names.setdefault(command, []).append(name)
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (", ".join(sorted(each, key=lambda name: name != command.name)), command.get_short_help_str(WHOLE))
                    for command, each in names.items()
                ]
            )


class LazyMenu(Menu):
    """The commands of the table, each imported when it is used; listing them imports none.

    Behind them are those of plugins, which are looked for when a word is none of ours, and for the help.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS.names(), *_of_plugins(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        try:
            return COMMANDS.load(cmd_name)
        except KeyError:
            if cmd_name not in _of_plugins(ctx):
                return None
        from hermes.surfaces.cli.plugin_command import plugin_command

        return plugin_command(ctx.obj, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS.summary(name)) for name in COMMANDS.names()])
        if own := _of_plugins(ctx):
            with formatter.section("Commands of plugins"):
                formatter.write_dl(list(own.items()))


def _of_plugins(ctx: click.Context) -> dict[str, str]:
    """The commands of plugins and their help; none where no plugin is switched on."""
    if not isinstance(ctx.obj, Cli) or not (ctx.obj.home / "config.yaml").exists():
        return {}
    from hermes.surfaces.cli.plugin_command import summaries  # for words that are none of ours

    return summaries(ctx.obj)


@click.group(
    cls=LazyMenu, invoke_without_command=True, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("-V", "--version", is_flag=True, help="Tell the version.")
@click.option("-z", "--oneshot", metavar="PROMPT", help="Answer one prompt; print only the final text.")
@click.option("-p", "--profile", metavar="NAME", expose_value=False, help="Use the home of this profile.")
@chat_options
@click.pass_context
def app(ctx: click.Context, /, version: bool, oneshot: str | None, **options: Any) -> int | None:
    """An agent for your terminal: a model works with tools on what you ask, and every step is kept.

    Go to your project and type `hermes`: that opens a conversation, in which it shows what it does and asks before what
    is dangerous. A piped text is answered as `hermes chat` would.
    """
    cli: Cli = ctx.obj
    cli.chat = {name: value for name, value in options.items() if value not in (None, False, ())}
    if version:
        from hermes import __version__

        cli.out.line(f"hermes {__version__}")
        return 0
    if ctx.invoked_subcommand is not None:
        if oneshot is not None:
            raise click.UsageError("-z stands alone; leave out the command.", ctx)
        return None
    from hermes.surfaces.cli.chat import run_chat

    return run_chat(cli, {**options, "oneshot": oneshot})


APP = app
