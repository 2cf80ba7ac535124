"""The most that may be spent on models: per turn, session and day."""

from typing import Annotated

from hermes.config.section import Amount, Positive, SectionBase, key


class Section(SectionBase, frozen=True):
    """The most that may be spent on models. Checked before each call, helpers' and children's calls included."""

    turn_usd: Annotated[Amount | None, key("US dollars one turn may cost.")] = None
    turn_tokens: Annotated[Positive | None, key("Tokens one turn may read and write.")] = None
    turn_seconds: Annotated[Amount | None, key("Seconds one turn may spend in model calls.")] = None
    session_usd: Annotated[Amount | None, key("US dollars a session may cost, with its children.")] = None
    session_tokens: Annotated[Positive | None, key("Tokens a session may read and write, with its children.")] = None
    session_seconds: Annotated[Amount | None, key("Seconds a session may spend in model calls.")] = None
    day_usd: Annotated[Amount | None, key("US dollars all sessions of a day may cost.")] = None
    day_tokens: Annotated[Positive | None, key("Tokens all sessions of a day may read and write.")] = None
    day_seconds: Annotated[Amount | None, key("Seconds all sessions of a day may spend in model calls.")] = None
