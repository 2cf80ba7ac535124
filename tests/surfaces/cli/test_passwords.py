"""A password is read from the terminal itself: not shown, and given up with Ctrl-C."""

import os
import pty
import subprocess
import sys

import pytest

CODE = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from hermes.surfaces.cli.passwords import read_password
print("got", repr(read_password("Password for sudo: ", float(sys.argv[1]))))
"""


def answered(typed: bytes, limit_s: str = "30") -> str:
    """What a program with a terminal of its own shows when this is typed at its prompt."""
    ours, theirs = pty.openpty()
    line = [sys.executable, "-c", CODE, limit_s]
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    process = subprocess.Popen(line, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True)
    os.close(theirs)
    shown = b""
    while b"sudo: " not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, typed)
    while b"got " not in shown or not shown.endswith(b"\r\n"):
        shown += os.read(ours, 4096)
    process.wait(30)
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize(
    ("typed", "limit_s", "got"),
    [(b"pass word\r", "30", "'pass word'"), (b"half\x03", "30", "None"), (b"\x04", "30", "None"), (b"", "0.1", "None")],
)
def test_what_is_typed_is_returned_and_not_shown(typed: bytes, limit_s: str, got: str) -> None:
    assert answered(typed, limit_s) == f"Password for sudo: \r\ngot {got}\r\n"
