"""How much of a tool's output the model is shown at once."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """How much of a tool's output the model is shown at once; the rest stays behind a handle."""

    max_bytes: Annotated[int, key("Bytes of one result.", ge=1)] = 50_000
    max_lines: Annotated[int, key("Lines of one result.", ge=1)] = 2000
    max_line_length: Annotated[int, key("Characters of one line.", ge=1)] = 2000
