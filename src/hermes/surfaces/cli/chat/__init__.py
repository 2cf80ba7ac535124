"""One question, one answer: `hermes chat -q`, its events as JSON lines, and its exit code."""

from collections.abc import Mapping
from typing import Any

from hermes.surfaces.cli.context import Cli


def run_chat(cli: Cli, options: Mapping[str, Any]) -> int:
    """Run a conversation with the options of the command line; the exit code."""
    from hermes.surfaces.cli.chat.headless import answer  # noqa: PLC0415 - help and mistakes do without the kernel
    from hermes.surfaces.cli.chat.wish import wish_from  # noqa: PLC0415

    given = {name: value for name, value in options.items() if value not in (None, False, ())}
    return answer(cli, wish_from({**cli.chat, **given}))
