"""Replace small private files whole: the old text or the new one, never half of it."""

import os
from contextlib import suppress
from pathlib import Path

from hermes.config.paths import made
from hermes.disk_trouble import reason_of
from hermes.errors import UserError


def write_private(file: Path, text: str) -> None:
    """Replace `file` by `text`, readable by its owner alone, durable when this returns. Links are followed."""
    target = file.resolve() if file.is_symlink() else file
    made(target.parent)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(target)
    except OSError as error:
        with suppress(OSError):  # a read-only disk does not even let a file go that is not there
            temporary.unlink()
        raise UserError(f"cannot write {str(file)!r}: {reason_of(error)}") from error
