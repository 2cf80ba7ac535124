"""Which service searches the web and fetches pages."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """Which service searches the web and fetches pages; empty takes the first one that has a key."""

    PENDING = True

    backend: Annotated[str, key("Service for both.")] = ""
    search_backend: Annotated[str, key("Service for searches alone.")] = ""
    extract_backend: Annotated[str, key("Service for pages alone.")] = ""
    extract_char_limit: Annotated[int, key("Characters of a page the model is shown.", ge=1)] = 15_000
