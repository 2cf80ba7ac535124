"""What is remembered from one session to the next."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """What is remembered from one session to the next."""

    memory_enabled: Annotated[bool, key("Keep notes of the agent's own (MEMORY.md).")] = True
    user_profile_enabled: Annotated[bool, key("Keep what is known about you (USER.md).")] = True
    memory_char_limit: Annotated[int, key("Characters that MEMORY.md may have.", ge=100)] = 2200
    user_char_limit: Annotated[int, key("Characters that USER.md may have.", ge=100)] = 1375
    write_approval: Annotated[bool, key("Let every entry that the agent writes wait for your yes.")] = False
    provider: Annotated[str, key("Who recalls beside the files: local, honcho, a plugin's name; empty is nobody.")] = ""
    nudge_interval: Annotated[int, key("Turns between two reviews of what should be kept; 0 is never.", ge=0)] = 10
    recall_lines: Annotated[int, key("How many recalled lines go beside a message at most.", ge=1, le=20)] = 5
    prefetch_timeout: Annotated[float, key("Seconds that a provider may take before a turn.", gt=0, le=60)] = 8.0
