"""What every command is handed: the home, the environment, where words go, and the settings when asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.host.installation import Installation
from hermes.surfaces.cli.output import Output

if TYPE_CHECKING:
    from hermes.config.settings import Settings


class Cli(Installation):
    """One run of the command line."""

    def __init__(self, *, home: Path, environ: Mapping[str, str], out: Output) -> None:
        super().__init__(home, environ)
        self.out = out
        self.chat: Mapping[str, Any] = {}  # options that stood before the subcommand
        self._is_warned = False

    def settings(self, flags: Mapping[str, Any] | None = None, *, ignore_file: bool = False) -> "Settings":
        """The settings, with those of the command line on top; a warning they carry is shown once."""
        settings = super().settings(flags, ignore_file=ignore_file)
        if not self._is_warned:
            for warning in settings.warnings:
                self.out.note(f"warning: {warning}")
        self._is_warned = True
        return settings
