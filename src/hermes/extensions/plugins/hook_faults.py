"""What went wrong with hooks in the last session that had some, kept in the home's cache for `hermes doctor`."""

import logging
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from hermes.config import paths
from hermes.errors import UserError
from hermes.typed import from_json

log = logging.getLogger("hermes.plugins")


class HookFault(Struct, frozen=True, kw_only=True):
    """A hook that failed, or events that did not fit the queue of a plugin's observers."""

    owner: str
    hook: str = ""
    words: str = ""
    lost: int = 0
    at: float = 0.0


def keep_faults(home: Path, faults: Mapping[tuple[str, str], str], lost: Mapping[str, int]) -> None:
    """Write them down in place of the last ones; where there are none, forget those."""
    file, now = paths.cache_dir(home) / "hook-faults.json", time.time()
    found = [HookFault(owner=owner, hook=hook, words=words, at=now) for (owner, hook), words in faults.items()]
    found += [HookFault(owner=owner, lost=count, at=now) for owner, count in lost.items()]
    try:
        if found:
            paths.write_private(file, msgspec.json.encode(found).decode())
        else:
            file.unlink(missing_ok=True)
    except (UserError, OSError) as error:  # it costs a line of the doctor's
        log.info("the faults of hooks were not written down: %s", error)


def kept_faults(home: Path) -> list[HookFault]:
    """Those of the last session that had hooks."""
    try:
        return from_json((paths.cache_dir(home) / "hook-faults.json").read_bytes(), list[HookFault])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        log.info("the faults of hooks cannot be read: %s", error)
        return []
