"""The picture in the clipboard, through whatever program of this machine can read it."""

import secrets
from collections.abc import Mapping
from pathlib import Path

from hermes.config import paths
from hermes.errors import ToolError, UserError
from hermes.programs import find_program
from hermes.surfaces.cli.chat.children import Program, run_program
from hermes.surfaces.cli.chat.question import MAX_IMAGE_BYTES, kind_of

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
