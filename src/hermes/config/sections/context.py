"""What keeps a conversation within the model's window."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """What keeps a conversation within the model's window."""

    engine: Annotated[
        Literal["compressor", "none"], key("Who shortens a conversation that grew too long; `none` never does.")
    ] = "compressor"
