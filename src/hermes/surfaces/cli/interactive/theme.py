"""Colours for dark and light backgrounds, and which of them a terminal has."""

import os
import re
import select
import time
from collections.abc import Mapping
from typing import Literal, TypeAlias

Theme: TypeAlias = Literal["dark", "light"]
DARK = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
LIGHT = {"bold": "1", "dim": "38;5;243", "red": "38;5;160", "green": "38;5;28", "yellow": "38;5;130", "cyan": "38;5;25"}
WAIT_S = 0.08
_BACKGROUND = re.compile(rb"\x1b\]11;rgb:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})(?:\x07|\x1b\\)")
_ATTRIBUTES = re.compile(rb"\x1b\[\?[\d;]*c")
# Terminals that are known to answer; to wait for any other would make the start slower.
_ANSWERING = (
    "TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "ALACRITTY_WINDOW_ID", "WEZTERM_PANE", "KONSOLE_VERSION",
    "ITERM_SESSION_ID", "GHOSTTY_RESOURCES_DIR", "XTERM_VERSION",
)  # fmt: skip


def told_theme(environ: Mapping[str, str]) -> Theme | None:
    """What the terminal's variables say of its background; None when they say nothing."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    if background.isdecimal():
        return "light" if int(background) in (7, 15) else "dark"
    return None


def answers(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is one that says its background when asked."""
    return any(environ.get(name) for name in _ANSWERING)


def asked_theme(reads: int, writes: int) -> tuple[Theme | None, bytes]:
    """Ask a terminal in raw mode for its background; also what was typed meanwhile, which belongs to the person."""
    os.write(writes, b"\x1b]11;?\x07\x1b[c")  # every terminal answers the second: then the first is not coming
    got, until = b"", time.monotonic() + WAIT_S
    while not _ATTRIBUTES.search(got) and (left := until - time.monotonic()) > 0:
        if not select.select([reads], [], [], left)[0]:
            break
        got += os.read(reads, 1024)
    found = _BACKGROUND.search(got)
    typed = _ATTRIBUTES.sub(b"", _BACKGROUND.sub(b"", got))
    if found is None:
        return None, typed
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
    return ("light" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "dark"), typed
