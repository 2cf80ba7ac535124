"""What a memory provider is: somebody who recalls beside the files, one at a time, chosen by `memory.provider`.

Methods are plain functions that may block; they are called in a thread, with a deadline, and whatever they raise costs
their own contribution and nothing else.
"""

# ruff: noqa: B027 - a provider overrides what it needs of the empty methods

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar


class MemoryProvider(ABC):
    """The base of every provider. A subclass needs the abstract members; the rest does nothing until overridden."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that `memory.provider` chooses it by."""

    @abstractmethod
    def is_available(self) -> bool:
        """Whether all it needs is here. No network."""

    @abstractmethod
    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Make ready for a session: `hermes_home`, `platform`, `agent_context`, `agent_identity`, `agent_workspace`."""

    @abstractmethod
    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Its own tools; their calls come to `handle_tool_call`."""

    def system_prompt_block(self) -> str:
        """Words for the system prompt of a session that begins."""
        return ""

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """What it remembers about a question, before the turn; a line each, with its day in front."""
        return ""

    def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        """After a turn: get ready for the next question."""

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "") -> None:
        """After a turn: learn from it."""

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """The JSON result of a call of one of its tools."""
        raise NotImplementedError(f"{self.name} has no tool {tool_name!r}")

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        """A turn begins; user turns are counted from 1."""

    def on_session_end(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """The session is over."""

    def on_session_switch(
        self, new_session_id: str, *, parent_session_id: str = "", reset: bool = False, **kwargs: Any
    ) -> None:
        """The session goes on under another id."""

    def on_pre_compress(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """A session is about to be summed up; words that the summary should keep."""
        return ""

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **kwargs: Any) -> None:
        """A child has finished a task."""

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """The memory tool has written."""

    def shutdown(self) -> None:
        """The agent goes."""

    def get_config_schema(self) -> list[dict[str, Any]]:
        """What `hermes memory setup` asks for: key, description, secret, required, default, choices, url, env_var."""
        return []

    def save_config(self, values: Mapping[str, Any], hermes_home: str) -> None:
        """Keep what was asked for."""

    def backup_paths(self) -> list[str]:
        """Paths outside the home that a backup should hold."""
        return []


class ProviderHome:
    """What a provider of the box is made from: the home, and its own settings."""

    __slots__ = ("home", "root", "settings", "store")

    def __init__(self, home: Path, root: Path, settings: Mapping[str, Any], store: Any = None) -> None:
        self.home = home
        self.root = root  # of all profiles, where weights are
        self.settings = settings
        self.store = store  # the session store, where the caller has one open

    def lookup(self, name: str) -> str | None:
        """A secret by its name; providers of the box are handed one that reads the environment and .env."""
        found = self.settings.get(name)
        return found if isinstance(found, str) else None


class Providers:
    """Who can be chosen: two of the box, and whoever was added, such as a plugin's."""

    BOX: ClassVar[dict[str, str]] = {
        "local": "hermes.context.memory.local.local_provider:LocalProvider",
        "honcho": "hermes.context.memory.honcho_provider:HonchoProvider",
    }

    def __init__(self) -> None:
        self._added: dict[str, Callable[[ProviderHome], MemoryProvider]] = {}

    def names(self) -> list[str]:
        return sorted({*self.BOX, *self._added})

    def add(self, name: str, make: Callable[[ProviderHome], MemoryProvider]) -> None:
        """Add one that does not live here; a name that is taken is an error."""
        if name in self.names():
            raise ValueError(f"there is a memory provider {name!r} already")
        self._added[name] = make

    def remove(self, name: str) -> None:
        del self._added[name]

    def make(self, name: str, home: ProviderHome) -> MemoryProvider:
        """The provider of this name; `KeyError` when there is none."""
        if name in self._added:
            return self._added[name](home)
        module, _, kind = self.BOX[name].partition(":")
        from importlib import import_module

        made: MemoryProvider = getattr(import_module(module), kind)(home)
        return made


PROVIDERS = Providers()
