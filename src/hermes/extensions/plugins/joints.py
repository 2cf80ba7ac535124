"""Where plugins meet the other capabilities: one module of `hermes.runtime.plugin_joints` each, found by this table.

Extensions know no tools, models or engines; the runtime introduces them to each other.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from hermes.tables import Table
from hermes.types import JsonObject

if TYPE_CHECKING:
    from hermes.extensions.plugins.offers import ToolOffer
    from hermes.extensions.plugins.plugin import Plugin
    from hermes.extensions.plugins.plugin_models import PluginAnswer, PluginQuestion

JOINTS: Final[Table[Any]] = Table("hermes.runtime.plugin_joints", "JOINT")


class ToolJoint(Protocol):
    """Tools of plugins in the registry."""

    def add(self, plugin: "Plugin", offer: "ToolOffer") -> str:
        """Have the tool known; the reason when it is not, else empty. `PermissionError` for an override not allowed."""

    def capture(self, plugin: "Plugin") -> AbstractContextManager[None]:
        """While it lasts, `registry.register(...)` of the plugin's code counts as its own offer."""

    def captured(self, plugin: "Plugin") -> Sequence["ToolOffer"]:
        """What the plugin's code has registered by itself."""

    def forget(self, plugin: "Plugin") -> None:
        """Remove its tools."""


class ProviderJoint(Protocol):
    """Engines, memories, models and search services of plugins."""

    def is_engine(self, value: Any) -> bool: ...
    def is_memory(self, value: Any) -> bool: ...
    def add_model_provider(self, plugin: "Plugin", data: JsonObject) -> str:
        """Have settings able to name it; the reason when they are not, else empty."""

    def add_search(self, plugin: "Plugin", name: str) -> str:
        """The same for a search service."""


class CallJoint(Protocol):
    """What plugins ask of the runtime."""

    def dispatch(self, name: str, args: Mapping[str, Any], keywords: Mapping[str, Any]) -> str: ...
    def complete(self, asked: "PluginQuestion") -> "PluginAnswer": ...
    async def acomplete(self, asked: "PluginQuestion") -> "PluginAnswer": ...


class GroundJoint(Protocol):
    """What plugins stand on: quiet streams, names that are taken, trust, and answers that may be awaited."""

    def quiet(self, name: str) -> AbstractContextManager[None]: ...
    def taken(self, kind: str) -> frozenset[str]:
        """Names of Hermes' own: `slash` and `cli` commands, helper `tasks`."""

    def is_trusted(self, project: Path, settings: Mapping[str, Any]) -> bool: ...
    def bring(self) -> None:
        """Have the plugins of the home known to callers outside an agent."""

    def finished(self, answer: Any) -> Any:
        """The value, also of something to be awaited."""


def tools() -> ToolJoint:
    found: ToolJoint = JOINTS.load("tools")
    return found


def providers() -> ProviderJoint:
    found: ProviderJoint = JOINTS.load("providers")
    return found


def calls() -> CallJoint:
    found: CallJoint = JOINTS.load("calls")
    return found


def ground() -> GroundJoint:
    found: GroundJoint = JOINTS.load("ground")
    return found
