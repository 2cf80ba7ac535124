"""The memory service Honcho, for `memory.provider: honcho`."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """The memory service Honcho, for `memory.provider: honcho`. Its key is HONCHO_API_KEY in .env."""

    base_url: Annotated[str, key("Its address; empty is the service's own.", env="HONCHO_BASE_URL")] = ""
    workspace: Annotated[str, key("The workspace that holds what is kept.")] = "hermes"
    user_peer: Annotated[str, key("The name under which your words are kept.")] = "user"
    agent_peer: Annotated[str, key("The name under which the agent's words are kept.")] = "hermes"
