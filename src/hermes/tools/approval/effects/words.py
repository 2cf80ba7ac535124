"""How an effect names the command it came from."""

from hermes.tools.approval.glob import plain
from hermes.tools.approval.state import Cmd
from hermes.tools.approval.text import UNKNOWN


def line(cmd: Cmd) -> str:
    """The command as a person reads it, unknown parts as `…`."""
    return plain(" ".join([cmd.name, *cmd.args])).replace(UNKNOWN, "…")[:200]
