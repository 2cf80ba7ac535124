"""The messages that every session begins with, where a file of the settings holds some."""

from pathlib import Path
from typing import Any

import msgspec

from hermes.config.sections import top as top_section
from hermes.config.settings import Settings
from hermes.errors import UserError
from hermes.typed import from_json


def prefill_messages(settings: Settings) -> list[dict[str, Any]] | None:
    """What `prefill_messages_file` holds; None when it is not set."""
    name = settings.of(top_section.Section).prefill_messages_file
    if not name:
        return None
    file = Path(name).expanduser()
    file = file if file.is_absolute() else settings.home / file
    try:
        found = from_json(file.read_bytes(), list[dict[str, Any]])
    except OSError as error:
        raise UserError(f"prefill_messages_file: cannot read {str(file)!r}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise UserError(f"prefill_messages_file: {str(file)!r} is no JSON list of messages ({error})") from error
    for number, message in enumerate(found, 1):
        if message.get("role") not in ("user", "assistant", "system") or not isinstance(message.get("content"), str):
            raise UserError(f"prefill_messages_file: message {number} of {str(file)!r} needs a role and a content")
    return found
