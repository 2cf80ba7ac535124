"""How much of a tool's output the model is shown at once."""

from typing import Annotated

from msgspec import field

from hermes.config.section import Positive, SectionBase, key


class Section(SectionBase, frozen=True):
    """How much of a tool's output the model is shown at once; the rest stays behind a handle."""

    max_result_chars: Annotated[
        dict[str, Positive], key("Characters of one result, by the name of the tool; others keep their own limit.")
    ] = field(default_factory=dict)
    max_bytes: Annotated[int, key("Bytes of one result.", ge=1, pending=True)] = 50_000
    max_lines: Annotated[int, key("Lines of one result.", ge=1, pending=True)] = 2000
    max_line_length: Annotated[int, key("Characters of one line.", ge=1, pending=True)] = 2000
