"""Scripts that the model writes to call tools."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """Scripts that the model writes to call tools."""

    mode: Annotated[Literal["project", "strict"], key("Where a script runs: in the project, or in a bare folder.")] = (
        "project"
    )
    timeout: Annotated[float, key("Seconds a script may run.", gt=0)] = 300
    max_tool_calls: Annotated[int, key("Tool calls a script may make.", ge=0)] = 50
