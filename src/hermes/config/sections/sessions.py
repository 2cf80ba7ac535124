"""How long ended sessions are kept."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """How long ended sessions are kept."""

    auto_prune: Annotated[bool, key("Delete old sessions without being asked.")] = False
    retention_days: Annotated[int, key("Days after its end that a session is old.", ge=1)] = 90
    vacuum_after_prune: Annotated[bool, key("Give the space back to the disk afterwards.")] = True
    min_interval_hours: Annotated[float, key("Hours between two cleanings.", ge=0)] = 24
