"""Tools of your own: groups of them, and projects whose own tools may run."""

from typing import Annotated

from msgspec import field

from hermes.config.section import SectionBase, key


class CustomToolset(SectionBase, frozen=True):
    """A toolset of your own."""

    description: Annotated[str, key("What it is for.")] = ""
    tools: Annotated[tuple[str, ...], key("Tools in it.")] = ()
    includes: Annotated[tuple[str, ...], key("Toolsets it takes along.")] = ()


class Section(SectionBase, frozen=True):
    """Tools of your own: groups of them, and projects whose own tools may run."""

    custom_toolsets: Annotated[dict[str, CustomToolset], key("Toolsets of your own, by name.")] = field(
        default_factory=dict
    )
    trusted_projects: Annotated[
        tuple[str, ...], key("Folders whose `.hermes/tools` are executed; see: hermes tools trust.")
    ] = ()
