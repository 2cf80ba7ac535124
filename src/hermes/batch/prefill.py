"""Messages that every conversation of a run begins with."""

from pathlib import Path
from typing import Any

import msgspec

from hermes.disk_trouble import reason_of
from hermes.errors import UserError
from hermes.typed import from_json


def read_prefill(file: Path) -> list[dict[str, Any]]:
    """The JSON list in `file`; `UserError` when it is none."""
    try:
        found = from_json(file.expanduser().read_bytes(), list[dict[str, Any]])
    except OSError as error:
        raise UserError(f"cannot read {str(file)!r}: {reason_of(error)}") from error
    except msgspec.DecodeError as error:
        raise UserError(f"{str(file)!r} is no JSON list of messages ({error})") from error
    for number, one in enumerate(found, 1):
        if one.get("role") not in ("user", "assistant") or not isinstance(one.get("content"), str):
            raise UserError(f"{str(file)!r}: message {number} needs a role, user or assistant, and a content")
    return found
