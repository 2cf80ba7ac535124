"""Who listens to a session: its plugins, and behind them the programs of `hooks`."""

from collections.abc import Mapping
from pathlib import Path

from hermes.confinement.policy import ConfinedEnvironment, Confinement
from hermes.extensions.plugins.find_plugins import SAFE_MODE, is_on
from hermes.extensions.plugins.hook_faults import keep_faults
from hermes.programs import split_path
from hermes.runtime.parts import Joining
from hermes.runtime.setup.plugin_setup import join_hooks, prepare
from hermes.seams import Environment
from hermes.tools.environments.command_env import scrubbed
from hermes.tools.hooks import Hooks
from hermes.types import StatusChanged


def listen(agent: Joining, bus: Hooks) -> None:
    """Have the hooks of plugins and of config.yaml called by the session's bus; a fault of one is told once."""
    settings, environment, parts = agent.settings, agent.services.environment, agent.services.parts
    if "plugins" in settings.tree:
        join_hooks(bus, settings, prepare(settings, Path(environment.cwd) if environment.kind == "local" else None))
    if "hooks" in settings.tree and not is_on(settings.environ, SAFE_MODE):
        from hermes.extensions.shell_hooks import HookPlace, join  # for who has programs

        # A hook runs outside the sandbox: what it calls by name is not looked for where commands can write.
        search = split_path(settings.environ, environment.cwd)
        env: Mapping[str, str] = {**scrubbed(settings.environ), "PATH": search.own}
        place = HookPlace(
            supervisor=lambda: agent.process.supervisor,
            env=env,
            cwd=lambda: environment.cwd,
            session_id=agent.session_id,
            confinement=lambda: _confinement(environment),
        )
        join(bus, settings, place)
    bus.keep = lambda: keep_faults(settings.home, bus.faults, bus.lost)
    bus.tell = lambda line: (parts.tell or parts.untold.append)(StatusChanged("warning", line))


async def _confinement(environment: Environment) -> Confinement | None:
    return await environment.confinement() if isinstance(environment, ConfinedEnvironment) else None
