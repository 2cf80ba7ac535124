"""One installation of Hermes: its home, the environment it was started in, and its settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.config import paths

if TYPE_CHECKING:
    from hermes.config.settings import Settings


class Installation:
    """What commands and checks look at."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self.home = home
        self.environ = environ
        self.may_go_online = False  # whether a check may ask servers that are not on this machine

    @property
    def root(self) -> Path:
        """The home of the default profile, under which the others live."""
        return paths.root_home(self.environ)

    @property
    def profile(self) -> str:
        """The name of the profile in use."""
        return paths.DEFAULT_PROFILE if self.home == self.root else self.home.name

    def settings(self, flags: Mapping[str, Any] | None = None, *, ignore_file: bool = False) -> "Settings":
        """The settings, with those of the command line on top."""
        from hermes.config.load import load_settings  # many commands need none

        return load_settings(self.home, environ=self.environ, flags=flags, ignore_file=ignore_file)


def is_model_chosen(settings: "Settings") -> bool:
    """Whether flags, config.yaml or an address in the environment say which model to use."""
    from hermes.config.sections import model as model_section  # as above

    section = settings.of(model_section.Section)
    named = bool(section.default or section.base_url) or section.provider not in ("", "auto")
    return named or any(settings.lookup(name) for name in ("OPENAI_BASE_URL", "OPENROUTER_BASE_URL"))
