"""How long providers keep the beginning of a conversation ready."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """How long providers keep the beginning of a conversation ready."""

    cache_ttl: Annotated[Literal["5m", "1h"], key("Time asked of providers that offer a choice.")] = "5m"
