"""What every command is handed: the home, the environment, where words go, and the settings when asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.config import paths
from hermes.surfaces.cli.output import Output

if TYPE_CHECKING:
    from hermes.config.settings import Settings


class Cli:
    """One run of the command line."""

    def __init__(self, *, home: Path, environ: Mapping[str, str], out: Output) -> None:
        self.home = home
        self.environ = environ
        self.out = out
        self.chat: Mapping[str, Any] = {}  # options that stood before the subcommand
        self.may_go_online = False  # whether a check may ask servers that are not on this machine
        self._settings: Settings | None = None

    @property
    def root(self) -> Path:
        """The home of the default profile, under which the others live."""
        return paths.root_home(self.environ)

    @property
    def profile(self) -> str:
        """The name of the profile in use."""
        return paths.DEFAULT_PROFILE if self.home == self.root else self.home.name

    def settings(self, flags: Mapping[str, Any] | None = None, *, ignore_file: bool = False) -> "Settings":
        """The settings, with those of the command line on top; a warning they carry is shown once."""
        from hermes.config.load import load_settings  # many commands need none

        settings = load_settings(self.home, environ=self.environ, flags=flags, ignore_file=ignore_file)
        if self._settings is None:
            for warning in settings.warnings:
                self.out.note(f"warning: {warning}")
        self._settings = settings
        return settings
