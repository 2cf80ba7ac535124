"""How sessions are kept."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """How sessions are kept."""

    durability: Annotated[
        Literal["power", "process"],
        key("What every step survives: loss of `power`, or only a crash of the `process`, which is faster."),
    ] = "power"
    dsn: Annotated[str, key("PostgreSQL connection string; empty keeps state.db in the home.", pending=True)] = ""
