"""Tools of your own: groups of them, and projects whose own tools may run."""

from typing import Annotated, Literal

from msgspec import field

from hermes.config.section import SectionBase, key


class CustomToolset(SectionBase, frozen=True):
    """A toolset of your own."""

    description: Annotated[str, key("What it is for.")] = ""
    tools: Annotated[tuple[str, ...], key("Tools in it.")] = ()
    includes: Annotated[tuple[str, ...], key("Toolsets it takes along.")] = ()


class ToolSearch(SectionBase, frozen=True):
    """When tools of MCP servers and plugins are found by search instead of being listed to the model."""

    enabled: Annotated[
        Literal["auto", "on", "off"], key("`auto` searches when listing them would take too much of the window.")
    ] = "auto"
    threshold_pct: Annotated[float, key("Share of the window, in percent, that listing them may take.", ge=0)] = 10

    @classmethod
    def fold(cls, plain: object) -> object:
        if isinstance(plain, bool):
            return {"enabled": "on" if plain else "off"}
        if isinstance(plain, dict) and isinstance(plain.get("enabled"), bool):
            return {**plain, "enabled": "on" if plain["enabled"] else "off"}  # YAML reads `on` and `off` so
        return plain


class Section(SectionBase, frozen=True):
    """Tools of your own: groups of them, and projects whose own tools may run."""

    custom_toolsets: Annotated[dict[str, CustomToolset], key("Toolsets of your own, by name.")] = field(
        default_factory=dict
    )
    tool_search: Annotated[ToolSearch, key("When many tools are searched instead of listed.")] = ToolSearch()
    trusted_projects: Annotated[
        tuple[str, ...], key("Folders whose `.hermes/tools` are executed; see: hermes tools trust.")
    ] = ()
