"""How sessions are kept."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """How sessions are kept."""

    durability: Annotated[
        Literal["full", "normal"],
        key("`full` survives power loss at each step; `normal` only a crash of the process, and is faster."),
    ] = "full"
    dsn: Annotated[str, key("PostgreSQL connection string; empty keeps state.db in the home.", pending=True)] = ""
