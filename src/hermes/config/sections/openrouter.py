"""Settings of OpenRouter alone."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """Settings of OpenRouter alone."""

    min_coding_score: Annotated[
        Annotated[float, key("", ge=0, le=1)] | None,
        key("How good at code the model must be that `openrouter/pareto-code` chooses, from 0 to 1."),
    ] = None
    response_cache: Annotated[bool, key("Let it answer from its cache what it has just answered.")] = False
    response_cache_ttl: Annotated[int, key("Seconds for which it does.", ge=1)] = 300
