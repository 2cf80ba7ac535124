"""The question: the words of the command line, and what was piped in."""

import os
import select
import stat
import sys

from hermes.surfaces.cli.output import Output

WAIT_NOTE_S = 2.0


def asked_words(words: str | None) -> str:
    """The words of the command line, as text that can be stored."""
    return (words or "").encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()


def piped_in(out: Output) -> str:
    """All of stdin when it is a pipe or a file; nothing when it is a terminal or closed."""
    try:
        number = sys.stdin.fileno() if sys.stdin is not None else None
        kind = os.fstat(number).st_mode if number is not None else 0
    except (OSError, ValueError):
        return ""
    if number is None or not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return ""
    if not select.select([number], [], [], WAIT_NOTE_S)[0]:
        out.note("Waiting for the end of what is piped in; to ask without it, add: </dev/null")
    chunks: list[bytes] = []
    while chunk := os.read(number, 1 << 16):
        chunks.append(chunk)
    return b"".join(chunks).decode("utf-8", "replace").strip("\n")
