"""The conversation in a terminal: an input line that stays live while the agent works."""

from hermes.surfaces.cli.chat.run_options import Wish
from hermes.surfaces.cli.context import Cli


def run_interactive(cli: Cli, wish: Wish) -> int:
    """Talk until the person leaves; the exit code."""
    from hermes.surfaces.cli.interactive.start_chat import converse  # paid by whoever talks

    return converse(cli, wish)
