"""The picture in the clipboard, through whatever program of this machine can read it."""

import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from hermes.config import paths
from hermes.errors import ToolError, UserError
from hermes.host.pictures import MAX_IMAGE_BYTES, kind_of
from hermes.host.run_program import Program, run_program
from hermes.programs import find_program

KEPT = 50  # pictures; a message holds a copy of its own once it is sent
READERS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-t", "image/png", "-o"),
    ("pngpaste", "-"),
)
TIMEOUT_S = 5.0


async def picture_from_clipboard(home: Path, environ: Mapping[str, str]) -> Path:
    """A file with the picture; `UserError` says what lacks. The first program that has one is believed."""
    found = [(path, *words) for name, *words in READERS if (path := find_program(name, environ))]
    if not found:
        raise UserError("no program here reads pictures from the clipboard; install wl-clipboard, xclip or pngpaste")
    for argv in found:
        data = await _read(argv, environ)
        if kind_of(data) is not None:
            return _kept(home, data)
    raise UserError("there is no picture in the clipboard")


async def _read(argv: tuple[str, ...], environ: Mapping[str, str]) -> bytes:
    program = Program(
        argv=argv, cwd="/", env=environ, purpose="read the clipboard", timeout_s=TIMEOUT_S, most_bytes=MAX_IMAGE_BYTES
    )
    try:
        ran = await run_program(program)
    except (ToolError, TimeoutError):
        return b""
    if ran.is_cut:
        raise UserError("the picture in the clipboard is too large; pictures may have 20 MB")
    return ran.raw if ran.exit_code == 0 else b""


def _kept(home: Path, data: bytes) -> Path:
    folder = paths.made(home / "image_cache")
    older = sorted(folder.glob("pasted-*"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in older[KEPT - 1 :]:
        file.unlink(missing_ok=True)
    file = folder / f"pasted-{secrets.token_hex(4)}.png"
    file.touch(mode=0o600)
    file.write_bytes(data)
    return file


FROM_LINES = 6
FROM_CHARS = 1_000
_MARK = re.compile(r"\[pasted \d+ lines(?: #\d+)?\]")


class Pastes:
    """What the marks in the input line stand for."""

    def __init__(self) -> None:
        self._by_mark: dict[str, str] = {}

    def shortened(self, text: str) -> str:
        """`text`, or the mark that stands for it when it is long."""
        plain = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = plain.count("\n") + 1
        if lines < FROM_LINES and len(plain) < FROM_CHARS:
            return plain
        mark = f"[pasted {lines} lines]"
        number = 2
        while self._by_mark.get(mark, plain) != plain:
            mark = f"[pasted {lines} lines #{number}]"
            number += 1
        self._by_mark[mark] = plain
        return mark

    def expanded(self, text: str) -> str:
        """`text` with every mark replaced by what it stands for; a mark that somebody typed stays."""
        return _MARK.sub(lambda found: self._by_mark.get(found.group(), found.group()), text)
