"""When a long conversation is summed up, and what is kept word for word."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """When a long conversation is summed up, and what is kept word for word."""

    PENDING = True

    enabled: Annotated[bool, key("Sum up when the window fills.")] = True
    threshold: Annotated[float, key("Share of the window that sets it off.", gt=0, le=1)] = 0.5
    target_ratio: Annotated[float, key("Share of the threshold that recent messages may keep.", gt=0, le=1)] = 0.2
    protect_last_n: Annotated[int, key("Newest messages kept word for word.", ge=0)] = 20
    protect_first_n: Annotated[int, key("Oldest messages kept word for word.", ge=0)] = 3
