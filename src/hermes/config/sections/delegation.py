"""Tasks that the agent hands to children of its own."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """Tasks that the agent hands to children of its own."""

    model: Annotated[str, key("Model of the children; empty is the parent's.")] = ""
    provider: Annotated[str, key("Who serves it; empty is the parent's.")] = ""
    base_url: Annotated[str, key("Address, when it is another one.")] = ""
    api_key: Annotated[str, key("Key for that address.")] = ""
    api_mode: Annotated[str, key("Protocol of that address.")] = ""
    reasoning_effort: Annotated[str, key("How long children think; empty is as long as the parent.")] = ""
    max_iterations: Annotated[int, key("Model calls that each child may make.", ge=1)] = 50
    share_iterations: Annotated[
        bool, key("Children draw on the parent's model calls instead; each takes `max_iterations` of them at most.")
    ] = False
    child_timeout_seconds: Annotated[
        float, key("Seconds a child may take; then it gives what it has so far. 0 is no limit but the turn's.", ge=0)
    ] = 600
    max_concurrent_children: Annotated[int, key("Children that run side by side, and tasks of one call.", ge=1)] = 3
    max_spawn_depth: Annotated[int, key("Levels of children; 1 is children that have none, 0 is none.", ge=0)] = 1
    orchestrator_enabled: Annotated[bool, key("Let a child have children, where the depth allows it.")] = True
    inherit_mcp_toolsets: Annotated[bool, key("Children keep MCP tools also when a task names its toolsets.")] = True
    subagent_auto_approve: Annotated[bool, key("Say yes to whatever a child would ask. Nobody looks at it.")] = False
    max_summary_chars: Annotated[
        int, key("Longer answers of a child are cut, and kept in a file; 0 is never.", ge=0)
    ] = 24_000
    isolation: Annotated[
        Literal["none", "worktree"], key("Where children work: beside the parent, or a git worktree.")
    ] = "none"
