"""What a session begins with."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key

LEAN_WINDOW = 8_192  # tokens: a model that reads no more gets the lean profile by itself


class Section(SectionBase, frozen=True):
    """What a session begins with."""

    profile: Annotated[
        Literal["auto", "full", "lean"],
        key(
            "`lean` offers file, terminal and todo tools only, in few words; `auto` does so for models that are known "
            "to read 8192 tokens or less."
        ),
    ] = "auto"

    def is_lean(self, window_tokens: int | None) -> bool:
        """Whether a session with a model that reads so much gets the lean profile."""
        if self.profile == "auto":
            return window_tokens is not None and window_tokens <= LEAN_WINDOW
        return self.profile == "lean"
