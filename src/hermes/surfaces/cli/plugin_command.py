"""Commands of `hermes` that plugins bring: an argparse parser behind a click command."""

import argparse
import inspect
import sys
from typing import TYPE_CHECKING, Any

import click

from hermes.errors import UserError
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit

if TYPE_CHECKING:
    from hermes.extensions.plugins.plugin import Plugin


def summaries(cli: Cli) -> dict[str, str]:
    """The commands of the plugins that are on, and a line about each; a broken setting is told by who needs it."""
    from hermes.extensions.plugins.plugin_set import is_asked_for, plugins_of

    try:
        settings = cli.settings()
        if not is_asked_for(settings):
            return {}
        found = plugins_of(settings.home).cli_commands(settings)
    except UserError:
        return {}
    return {name: offer.description for name, (_, offer) in found.items()}


def plugin_command(cli: Cli, name: str) -> click.Command:
    """The command; all words after its name are the plugin's own, `--help` too."""
    from hermes.extensions.plugins.plugin_set import plugins_of

    settings = cli.settings()
    plugin, offer = plugins_of(settings.home).cli_commands(settings)[name]

    @click.command(
        name,
        help=offer.description,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    )
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    @click.pass_obj
    def command(_cli: Cli, words: tuple[str, ...]) -> int:
        return _run(plugin, name, offer.description, list(words))

    return command


def _run(plugin: "Plugin", name: str, about: str, words: list[str]) -> int:
    live = plugin.loaded().live
    setup = live.cli_setups.get(name)
    if setup is None:
        raise UserError(f"the plugin {plugin.key!r} no longer brings the command {name!r}")
    parser = argparse.ArgumentParser(prog=f"hermes {name}", description=about)
    try:
        setup(parser)
        parsed = parser.parse_args(words)
        handler = live.cli_handlers.get(name) or getattr(parsed, "func", None)
        if handler is None:
            parser.print_help()
            return Exit.ANSWERED
        answer = _finished(handler(parsed))
    except SystemExit as ended:
        return _code(ended.code)
    except (KeyboardInterrupt, UserError, BrokenPipeError):
        raise
    except Exception as error:  # the border to a plugin's code
        import logging

        logging.getLogger("hermes.plugins").exception("command %r of plugin %r failed", name, plugin.key)
        raise UserError(f"the plugin {plugin.key!r} failed in {name} ({type(error).__name__}: {error})") from error
    if isinstance(answer, str) and answer:
        sys.stdout.write(f"{answer}\n")
        return Exit.ANSWERED
    return answer if isinstance(answer, int) else Exit.ANSWERED


def _finished(answer: Any) -> Any:
    from hermes.extensions.plugins import joints

    return joints.ground().finished(answer) if inspect.isawaitable(answer) else answer


def _code(code: Any) -> int:
    if code is None:
        return Exit.ANSWERED
    if isinstance(code, int):
        return code
    sys.stderr.write(f"{code}\n")
    return Exit.FAILED
