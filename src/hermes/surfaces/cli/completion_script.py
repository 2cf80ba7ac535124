"""The script by which a shell completes `hermes`."""

import click
from click.shell_completion import ShellComplete, get_completion_class


def completion_script(root: click.Command, shell: str) -> str:
    """The script for `shell`. It calls `hermes`, whichever the PATH leads to."""
    kind = get_completion_class(shell)
    assert kind is not None
    # Not `source()` of the class itself: that of bash starts a bash to ask for its version.
    return ShellComplete.source(kind(root, {}, "hermes", "_HERMES_COMPLETE"))
