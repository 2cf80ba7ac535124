"""The contract's questions: is this command dangerous, is it one that never runs."""

from hermes.tools.approval.analysis import analyse
from hermes.tools.approval.model import Severity
from hermes.tools.approval.patterns import search, search_hardline
from hermes.tools.approval.text import MAX_BYTES


def detect_dangerous_command(
    command: str, *, cwd: str | None = None, home: str | None = None
) -> tuple[bool, str | None, str | None]:
    """`(True, key, key)` when a person must be asked, else `(False, None, None)`; the key describes the danger."""
    dangers = analyse(command, cwd=cwd, home=home).dangers
    key = dangers[0].key if dangers else _net(command)
    return (True, key, key) if key else (False, None, None)


def detect_hardline_command(
    command: str, *, cwd: str | None = None, home: str | None = None
) -> tuple[bool, str | None]:
    """`(True, description)` for what never runs on a host, whatever was approved, else `(False, None)`."""
    dangers = analyse(command, cwd=cwd, home=home).dangers
    if dangers and dangers[0].severity is Severity.HARDLINE:
        return True, dangers[0].key
    key = search_hardline(command) if len(command) <= MAX_BYTES else None
    return (True, key) if key else (False, None)


def _net(command: str) -> str | None:
    return search(command) if len(command) <= MAX_BYTES else None
