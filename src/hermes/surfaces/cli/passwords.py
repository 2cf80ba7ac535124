"""Ask the person at the terminal for a password: not echoed, in no history, and not for ever."""

import os
import select
import sys

LIMIT_S = 45.0
_CTRL_C = b"\x03"


async def ask_password(prompt: str) -> str | None:
    """What was typed, or None when there is no terminal or nobody answered; a prompt line on screen steps aside."""
    from prompt_toolkit.application import run_in_terminal  # for the few who are asked

    return await run_in_terminal(lambda: read_password(prompt), in_executor=True)


def read_password(prompt: str, limit_s: float = LIMIT_S) -> str | None:
    """Read one line from the terminal without showing it. Ctrl-C and Ctrl-D are no answer."""
    import termios  # Windows has none

    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        old = termios.tcgetattr(terminal)
        # Ctrl-C ends the line here: as a signal it would stop the whole turn.
        special = [*old[6][: termios.VEOL], _CTRL_C, *old[6][termios.VEOL + 1 :]]
        silent = [*old[:3], old[3] & ~(termios.ECHO | termios.ISIG), *old[4:6], special]
        termios.tcsetattr(terminal, termios.TCSAFLUSH, silent)
        try:
            os.write(terminal, prompt.encode())
            ready, _, _ = select.select([terminal], [], [], limit_s)
            typed = os.read(terminal, 4096) if ready else b""
            os.write(terminal, b"\n")
        finally:
            termios.tcsetattr(terminal, termios.TCSAFLUSH, old)
    finally:
        os.close(terminal)
    if not typed.endswith(b"\n"):
        return None
    return typed.rstrip(b"\r\n").decode(sys.getfilesystemencoding(), "surrogateescape") or None
