"""When a long conversation is summed up, and what is kept word for word."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """When a long conversation is summed up, and what is kept word for word."""

    enabled: Annotated[bool, key("Sum up by itself when the window fills; `/compress` works all the same.")] = True
    threshold: Annotated[float, key("Share of the window that sets it off; never below 64,000 tokens.", gt=0, le=1)] = (
        0.5
    )
    target_ratio: Annotated[
        float, key("Share of the threshold that the newest messages may keep; 0.1 to 0.8.", gt=0, le=1)
    ] = 0.2
    protect_last_n: Annotated[int, key("Newest messages whose tool output is not shortened.", ge=0)] = 20
    protect_first_n: Annotated[int, key("Oldest messages that are not summed up.", ge=0)] = 3
