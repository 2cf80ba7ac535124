"""What was typed before, kept in the home for the next time; secrets are not."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory

from hermes.config import paths

MOST_BYTES = 1_000_000


class KeptHistory(FileHistory):
    """The history file of a home, readable by its owner alone and bounded in size."""

    def __init__(self, home: Path, hide: Callable[[str], str]) -> None:
        self._file = paths.made(home) / "cli_history"
        self._hide = hide
        os.close(os.open(self._file, os.O_CREAT | os.O_WRONLY, 0o600))
        if self._file.stat().st_size > MOST_BYTES:
            kept = self._file.read_bytes()[-MOST_BYTES // 2 :]
            self._file.write_bytes(kept[kept.find(b"\n#") + 1 :])
        super().__init__(str(self._file))

    def load_history_strings(self) -> Iterable[str]:
        return super().load_history_strings()

    def store_string(self, string: str) -> None:
        super().store_string(self._hide(string))
