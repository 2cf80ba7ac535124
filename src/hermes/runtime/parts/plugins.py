"""Plugins: where some are switched on, `PluginTurns` joins."""

from hermes.runtime.parts import Joining, Part


class PluginsPart(Part):
    """Nothing, for who has no plugins."""

    @classmethod
    def join(cls, agent: Joining) -> Part | None:
        if "plugins" not in agent.settings.tree:
            return None
        from hermes.runtime.plugin_part import PluginTurns

        return PluginTurns.join(agent)


part = PluginsPart
