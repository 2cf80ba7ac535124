"""What was typed before, kept in the home for the next time; secrets are not."""

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory

from hermes.config import paths
from hermes.config.paths import write_private
from hermes.errors import UserError

MOST_BYTES = 1_000_000
log = logging.getLogger(__name__)


class KeptHistory(FileHistory):
    """The history file of a home, readable by its owner alone and bounded in size."""

    def __init__(self, home: Path, hide: Callable[[str], str]) -> None:
        self._file = paths.made(home) / "cli_history"
        self._hide = hide
        try:
            os.close(os.open(self._file, os.O_CREAT | os.O_WRONLY, 0o600))
            if self._file.stat().st_size > MOST_BYTES:
                kept = self._file.read_bytes()[-MOST_BYTES // 2 :]
                write_private(self._file, kept[kept.find(b"\n#") + 1 :].decode("utf-8", "replace"))
        except (OSError, UserError) as error:
            log.warning("what is typed is not kept: %s", error)
        super().__init__(str(self._file))

    def load_history_strings(self) -> Iterable[str]:
        return super().load_history_strings()

    def store_string(self, string: str) -> None:
        try:
            super().store_string(self._hide(string))
        except OSError as error:  # a full disk does not keep anybody from typing
            log.warning("what is typed is not kept: %s", error)
