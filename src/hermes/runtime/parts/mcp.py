"""MCP: the tools of servers; `SessionServers` joins agents that have some."""

from hermes.config.sections.top import Section as Top
from hermes.runtime.parts import Joining, Part

MEMO = "mcp"  # where commands of the host find what has joined


class McpPart(Part):
    """Joins nobody itself."""

    @classmethod
    def join(cls, agent: Joining) -> Part | None:
        is_safe = agent.settings.environ.get("HERMES_SAFE_MODE", "") not in ("", "0")
        link = agent.options.parent
        if link is not None and link.servers is not None:
            from hermes.runtime.session.session_servers import LentServers

            agent.services.memo[MEMO] = link.servers  # for the children of this child
            return LentServers(link.servers)
        if is_safe or link is not None or not (agent.settings.of(Top).mcp_servers or agent.options.tools.mcp_servers):
            return None
        from hermes.runtime.session.session_servers import SessionServers  # paid by who has servers

        part = agent.services.memo[MEMO] = SessionServers(agent)
        return part


part = McpPart
