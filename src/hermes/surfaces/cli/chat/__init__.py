"""`hermes chat`: one question and its answer, or a conversation where somebody can type."""

import sys
from collections.abc import Mapping
from typing import Any, TextIO

from click import UsageError

from hermes.surfaces.cli.context import Cli


def run_chat(cli: Cli, options: Mapping[str, Any]) -> int:
    """Run a conversation with the options of the command line; the exit code."""
    from hermes.surfaces.cli.chat.run_options import wish_from  # help and mistakes do without the kernel

    given = {name: value for name, value in options.items() if value not in (None, False, ())}
    wish = wish_from({**cli.chat, **given})
    if schema := given.get("output_schema"):
        from hermes.surfaces.cli.chat.answer_data import with_schema  # for who wants data

        wish = with_schema(wish, schema)
    if wish.question is None and not wish.as_json and not wish.quiet and is_terminal(sys.stdin):
        if wish.wait:
            raise UsageError("--wait is for a question (-q); in a conversation, what you type can wait.")
        from hermes.surfaces.cli.interactive import run_interactive  # a question does without it

        return run_interactive(cli, wish)
    from hermes.surfaces.cli.chat.headless import answer  # see above

    return answer(cli, wish)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody can type there."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
