"""What plugins stand on: quiet streams, names that are taken, trust, and answers that may be awaited."""

import inspect
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hermes.config.sections import auxiliary
from hermes.tools.calling.captured_prints import quiet_prints
from hermes.tools.calling.loops import run_sync
from hermes.tools.registration.user_files import is_trusted

_COMMANDS = {"slash": "hermes.host.commands", "cli": "hermes.surfaces.cli.commands"}
ANSWER_LIMIT_S = 30.0


class PluginGround:
    """`GroundJoint` of this process."""

    @contextmanager
    def quiet(self, name: str) -> Iterator[None]:
        with quiet_prints(name):
            yield

    def taken(self, kind: str) -> frozenset[str]:
        """By the names of their files: nothing is imported, and no surface need be there."""
        if kind == "tasks":
            return frozenset(auxiliary.Section.__struct_fields__)
        spec = find_spec(_COMMANDS[kind])
        folders = spec.submodule_search_locations or () if spec is not None else ()
        files = [file.stem for folder in folders for file in Path(folder).glob("*.py") if file.stem != "__init__"]
        names = {stem.rstrip("_").replace("_", "-") for stem in files}
        return frozenset(
            names | ({alias for name in names for alias in _ALIASES.get(name, ())} if kind == "slash" else set())
        )

    def is_trusted(self, project: Path, settings: Mapping[str, Any]) -> bool:
        return is_trusted(project, settings)

    def bring(self) -> None:
        from hermes.runtime.setup.plugin_setup import prepare_outside  # it is built on the joints

        prepare_outside()

    def finished(self, answer: Any) -> Any:
        return run_sync(_awaited(answer), ANSWER_LIMIT_S) if inspect.isawaitable(answer) else answer


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


# Words that mean one of Hermes' own slash commands; tests/extensions/plugins holds this against the table.
_ALIASES = {
    "agents": ("tasks",),
    "branch": ("fork",),
    "compress": ("compact",),
    "help": ("commands", "?"),
    "new": ("reset",),
    "queue": ("q",),
    "quit": ("exit",),
}

JOINT = PluginGround()
