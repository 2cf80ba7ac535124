"""What keeps a conversation within the model's window."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """What keeps a conversation within the model's window."""

    engine: Annotated[
        str,
        key("Who shortens a conversation that grew too long: `compressor`, or a plugin's engine; `none` never does."),
    ] = "compressor"
    assumed_window: Annotated[
        int, key("Tokens a model is taken to read where neither the settings nor its server nor the tables say.", ge=1)
    ] = 128_000
