"""The registry of tools: every tool file registers here when it is imported.

    from hermes.tools.registry import registry, tool_error, tool_result

    registry.register(
        name="count_lines", toolset="file", schema=schema_of("count_lines", CountLines),
        handler=count_lines, is_async=True,
        traits=Traits(effects=lambda args, ctx: reads_file(str(args["path"]), ctx), read_only=True),
    )

`register` takes the twelve parameters of the contract, and one keyword of ours, `traits`
(`hermes.tools.traits.Traits`): what a call reads and writes, what the tool needs to be available, whether it talks
with a person, where its content comes from. A tool without traits is run as an unknown: alone, with the default
time limit.

A handler is `handler(args, **keywords)`, sync or async, and is handed only the keywords its signature takes:
`ctx` (`ToolContext`), `task_id`, `user_task`, `session_id`, `tool_call_id`, `enabled_tools`. Through `**kw` it gets
`task_id` and `user_task`, and from `registry.dispatch` whatever that was given. It returns a JSON string, or raises
`ToolError` with a sentence the model can act on.
"""

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from hermes.tools.registration.availability import Checks
from hermes.tools.traits import UNKNOWN, Origin, Traits

log = logging.getLogger(__name__)

Check: TypeAlias = Callable[[], object]
DEFAULT_RESULT_CHARS = 100_000


_as_json = json.JSONEncoder(ensure_ascii=False, default=str).encode


def tool_error(message: object, **extra: object) -> str:
    """`{"error": message, …}` as JSON text."""
    return _as_json({"error": str(message), **extra})


def tool_result(data: object = None, **fields: object) -> str:
    """`data`, or the keywords, as JSON text; both together when `data` is an object."""
    if data is None:
        data = fields
    elif fields and isinstance(data, Mapping):
        data = {**data, **fields}
    elif fields:
        raise TypeError("tool_result takes keywords only beside an object")
    return _as_json(data)


class ToolEntry(Struct, eq=False):
    """One registered tool, as the contract names its fields."""

    name: str
    toolset: str
    schema: dict[str, Any]
    handler: Callable[..., Any]
    check_fn: Check | None = None
    requires_env: list[str] = []
    is_async: bool = False
    description: str = ""
    emoji: str = ""
    max_result_size_chars: float | None = None
    dynamic_schema_overrides: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        given: Any = self.requires_env  # a caller may give any names, or one
        self.requires_env = [given] if isinstance(given, str) else list(given or [])
        self.description = self.description or str(self.schema.get("description") or "")

    def __repr__(self) -> str:
        return f"<tool {self.name!r} of {self.toolset!r}>"


class Registered(Struct, frozen=True):
    """An entry with what the contract's fields do not say."""

    entry: ToolEntry
    traits: Traits = UNKNOWN
    origin: Origin = "code"
    source: str = ""  # the file or server it came from
    lazy: bool = False  # its module is not imported yet


class Rejection(Struct, frozen=True):
    """A registration that was refused because the name belongs to another toolset."""

    name: str
    toolset: str
    owner: str
    source: str


class _Loading(Struct, frozen=True):
    """What a tool file that is being executed registers into, and as what."""

    target: "ToolRegistry"
    origin: Origin
    source: str
    may_override: bool = True  # tools of others


_loading: ContextVar[_Loading | None] = ContextVar("hermes_tool_loading", default=None)


class ToolRegistry:
    """Tools by name. Changes happen under one re-entrant lock; readers work on snapshots."""

    def __init__(self, *, is_filled: bool = True) -> None:
        self.is_filled = is_filled  # False: the built-ins come when it is first used
        self._lock = threading.RLock()  # guards every mapping below and the generation
        self._tools: dict[str, Registered] = {}
        self._toolset_checks: dict[str, Check] = {}
        self._aliases: dict[str, str] = {}
        self._generation = 0
        self.recent: Any = None  # what `keep` was last given, for the quickest of callers
        self.checks = Checks()
        self.bring: Callable[[], None] | None = None  # tools from elsewhere, for callers outside an agent
        self.rejections: list[Rejection] = []
        self.files: dict[Path, Any] = {}  # foreign files as they were executed, see `userfiles`

    @property
    def generation(self) -> int:
        """Grows with every visible change."""
        return self._generation

    # -- changing ------------------------------------------------------------------------------------------------

    def register(  # noqa: PLR0913, PLR0917 - the contract's parameters
        self,
        name: str,
        toolset: str,
        schema: dict[str, Any],
        handler: Callable[..., Any],
        check_fn: Check | None = None,
        requires_env: Iterable[str] | None = None,
        is_async: bool = False,
        description: str = "",
        emoji: str = "",
        max_result_size_chars: float | None = None,
        dynamic_schema_overrides: Callable[[], object] | None = None,
        override: bool = False,
        *,
        traits: Traits | None = None,
    ) -> None:
        """Add a tool. A name that another toolset owns is refused and logged, unless `override` gives consent.

        Raises `TypeError` for a name, schema, size or function that is none.
        """
        _check_shape(name, toolset, schema, max_result_size_chars)
        for what, function in (
            ("handler", handler),
            ("check_fn", check_fn or bool),
            ("dynamic_schema_overrides", dynamic_schema_overrides or dict),
        ):
            if not callable(function):
                raise TypeError(f"{what} of tool {name!r} must be callable, not {type(function).__name__}")
        traits = traits or UNKNOWN
        entry = ToolEntry(
            name,
            toolset,
            schema,
            handler,
            check_fn if check_fn is not None else traits.needs,
            requires_env if requires_env is not None else _env_of(traits),  # type: ignore[arg-type]  # see __post_init__
            is_async,
            description,
            emoji,
            max_result_size_chars,
            dynamic_schema_overrides,
        )
        loading = _loading.get()
        ours = str(getattr(handler, "__module__", "")).startswith("hermes.tools.builtin.")
        if loading is None or ours:  # a foreign file may be what has a built-in imported
            self.add(Registered(entry, traits, "builtin" if ours else "code", _module_of(handler)), override=override)
        else:
            if override:
                _refuse_foreign(self.get(name), loading)
            loading.target.add(Registered(entry, traits, loading.origin, loading.source), override=override)

    def add(self, tool: Registered, *, override: bool = False) -> bool:
        """Add a complete registration; False when the name belongs to another toolset."""
        entry = tool.entry
        if tool.origin != "builtin":
            self._all()  # built-ins come first, so that their names are theirs
        with self._lock:
            old = self._tools.get(entry.name)
            if old is not None and old.entry.toolset != entry.toolset:
                if _both_mcp(old.entry, entry):
                    log.debug("MCP tool %r moves from %r to %r", entry.name, old.entry.toolset, entry.toolset)
                elif override:
                    log.info("tool %r of %r replaces that of %r", entry.name, entry.toolset, old.entry.toolset)
                else:
                    self.rejections.append(Rejection(entry.name, entry.toolset, old.entry.toolset, tool.source))
                    log.error(
                        "tool %r of toolset %r is refused: the name belongs to toolset %r; deregister that one first, "
                        "or register with override=True",
                        entry.name,
                        entry.toolset,
                        old.entry.toolset,
                    )
                    return False
            self._tools[entry.name] = tool
            if old is not None and old.entry.toolset != entry.toolset:
                self._drop_toolset_if_empty(old.entry.toolset)
            if entry.check_fn is not None:
                if old is not None and self._toolset_checks.get(entry.toolset) is old.entry.check_fn:
                    self._toolset_checks[entry.toolset] = entry.check_fn
                self._toolset_checks.setdefault(entry.toolset, entry.check_fn)
            if old is None or not old.lazy:  # an import that fills in a lazy entry changes nothing visible
                self._changed()
            return True

    def deregister(self, name: str) -> None:
        """Remove a tool; with the last of a toolset go its check and its aliases. An unknown name is no error."""
        known, loading = self._all().get(name), _loading.get()
        if loading is not None:
            _refuse_foreign(known, loading)
        with self._lock:
            old = self._tools.pop(name, None)
            if old is None:
                return
            self._drop_toolset_if_empty(old.entry.toolset)
            self._changed()

    def register_toolset_alias(self, alias: str, toolset: str) -> None:
        """Let `alias` mean `toolset`; a clash is logged and the new meaning holds."""
        with self._lock:
            old = self._aliases.get(alias)
            if old is not None and old != toolset:
                log.warning("toolset alias %r pointed to %r and now points to %r", alias, old, toolset)
            self._aliases[alias] = toolset
            self._changed()

    @contextlib.contextmanager
    def loading(self, origin: Origin, source: str, *, may_override: bool = True) -> Iterator[None]:
        """While it lasts, in this context, every `registry.register(...)` of any registry lands here.

        Without `may_override`, replacing or removing a tool of somebody else is a `PermissionError`.
        """
        token = _loading.set(_Loading(self, origin, source, may_override))
        try:
            yield
        finally:
            _loading.reset(token)

    def keep(self, generation: int, made: Any) -> None:
        """Remember in `recent` what was made from the tools of `generation`, until they change."""
        with self._lock:
            self.recent = made if generation == self._generation else None

    def _changed(self) -> None:
        self._generation += 1
        self.recent = None

    def _drop_toolset_if_empty(self, toolset: str) -> None:
        if any(tool.entry.toolset == toolset for tool in self._tools.values()):
            return
        self._toolset_checks.pop(toolset, None)
        for alias in [alias for alias, target in self._aliases.items() if target == toolset]:
            del self._aliases[alias]

    # -- asking --------------------------------------------------------------------------------------------------

    def _all(self) -> dict[str, Registered]:
        if not self.is_filled:
            from hermes.tools.registration.manifest import ensure_builtins  # it fills the process's registry

            ensure_builtins()
        return self._tools

    def get(self, name: str) -> Registered | None:
        """The whole registration by name."""
        return self._all().get(name)

    def get_entry(self, name: str) -> ToolEntry | None:
        tool = self.get(name)
        return tool.entry if tool else None

    def snapshot(self) -> dict[str, Registered]:
        """Every registration as of now, by sorted name."""
        tools = self._all()
        with self._lock:
            return dict(sorted(tools.items()))

    def get_definitions(self, tool_names: Iterable[str], quiet: bool = False) -> list[dict[str, Any]]:
        """Available tools among `tool_names` as `{"type": "function", "function": schema}`, sorted by name."""
        definitions: list[dict[str, Any]] = []
        answers: dict[Check | None, bool] = {None: True}
        for name in sorted(set(tool_names)):
            tool = self.get(name)
            if tool is None:
                continue
            check = tool.entry.check_fn
            if check not in answers:  # one run per pass, whatever the cache says meanwhile
                answers[check] = self.checks.ask(check)
            if answers[check]:
                definitions.append({"type": "function", "function": offered_schema(tool.entry)})
            elif not quiet:
                log.info("tool %r is unavailable: %s", name, self.checks.reason(check))
        return definitions

    def dispatch(self, name: str, args: dict[str, Any], **kwargs: Any) -> Any:
        """Call the tool and return its text. Errors are JSON text too; nothing a handler raises leaves here.

        A handler that takes `**kw` is handed every keyword given here.
        """
        from hermes.tools.calling.dispatch import dispatch_now  # the registry stays free of the pipeline

        return dispatch_now(self, name, args, kwargs)

    def is_available(self, name: str) -> bool:
        tool = self.get(name)
        return tool is not None and self.checks.ask(tool.entry.check_fn)

    def is_toolset_available(self, toolset: str) -> bool:
        """What the toolset's first check says; True when it has none."""
        return self.checks.ask(self._toolset_checks.get(toolset))

    def check_toolset_requirements(self) -> dict[str, bool]:
        return {toolset: self.is_toolset_available(toolset) for toolset in self.get_registered_toolset_names()}

    def get_available_toolsets(self) -> dict[str, dict[str, Any]]:
        return {
            toolset: {
                "available": self.is_toolset_available(toolset),
                "tools": [entry.name for entry in entries],
                "description": "",
                "requirements": _requirements(entries),
            }
            for toolset, entries in self._by_toolset().items()
        }

    def get_toolset_requirements(self) -> dict[str, dict[str, Any]]:
        return {
            toolset: {
                "name": toolset,
                "env_vars": _requirements(entries),
                "check_fn": self._toolset_checks.get(toolset),
                "setup_url": None,
                "tools": [entry.name for entry in entries],
            }
            for toolset, entries in self._by_toolset().items()
        }

    def check_tool_availability(self, quiet: bool = False) -> tuple[list[str], list[dict[str, Any]]]:
        """Available toolsets, and the others with what they need."""
        available: list[str] = []
        missing: list[dict[str, Any]] = []
        for toolset, needs in self.get_toolset_requirements().items():
            if self.is_toolset_available(toolset):
                available.append(toolset)
                continue
            missing.append({"name": toolset, "env_vars": needs["env_vars"], "tools": needs["tools"]})
            if not quiet:
                log.info("toolset %r is unavailable: %s", toolset, self.checks.reason(needs["check_fn"]))
        return available, missing

    def get_all_tool_names(self) -> list[str]:
        return sorted(self._all())

    def get_schema(self, name: str) -> dict[str, Any] | None:
        """The schema as registered, available or not."""
        entry = self.get_entry(name)
        return entry.schema if entry else None

    def get_toolset_for_tool(self, name: str) -> str | None:
        entry = self.get_entry(name)
        return entry.toolset if entry else None

    def get_tool_to_toolset_map(self) -> dict[str, str]:
        return {name: tool.entry.toolset for name, tool in self.snapshot().items()}

    def get_tool_names_for_toolset(self, toolset: str) -> list[str]:
        return [name for name, tool in self.snapshot().items() if tool.entry.toolset == toolset]

    def get_registered_toolset_names(self) -> list[str]:
        return sorted({tool.entry.toolset for tool in self.snapshot().values()})

    def get_registered_toolset_aliases(self) -> dict[str, str]:
        with self._lock:
            return dict(self._aliases)

    def get_toolset_alias_target(self, alias: str) -> str | None:
        return self._aliases.get(alias)

    def get_emoji(self, name: str, default: str = "⚡") -> str:
        entry = self.get_entry(name)
        return entry.emoji if entry and entry.emoji else default

    def get_max_result_size(self, name: str, default: float | None = None) -> float:
        entry = self.get_entry(name)
        if entry is not None and entry.max_result_size_chars is not None:
            return entry.max_result_size_chars
        return default if default is not None else DEFAULT_RESULT_CHARS

    def _by_toolset(self) -> dict[str, list[ToolEntry]]:
        grouped: dict[str, list[ToolEntry]] = {name: [] for name in self.get_registered_toolset_names()}
        for tool in self.snapshot().values():
            grouped.setdefault(tool.entry.toolset, []).append(tool.entry)
        return grouped


def offered_schema(entry: ToolEntry) -> dict[str, Any]:
    """The schema as a model sees it: dynamic overrides on top, and always the entry's own name."""
    schema = dict(entry.schema)
    if entry.dynamic_schema_overrides is not None:
        try:
            overrides = entry.dynamic_schema_overrides()
        except Exception:  # the border to a tool author's code; the static schema still stands
            log.warning("dynamic schema of tool %r failed; its static one is offered", entry.name, exc_info=True)
            overrides = None
        if isinstance(overrides, dict):
            schema.update(overrides)
    schema["name"] = entry.name
    return schema


def invalidate_check_fn_cache() -> None:
    """Ask every availability check afresh next time."""
    registry.checks.forget()


def _refuse_foreign(tool: Registered | None, loading: _Loading) -> None:
    if tool is not None and tool.source != loading.source and not loading.may_override:
        raise PermissionError(
            f"the tool {tool.entry.name!r} is not of {loading.source}; allow_tool_override of its entry in config.yaml "
            "lets it replace tools of others"
        )


def _check_shape(name: object, toolset: object, schema: object, size: object) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"a tool needs a name, not {name!r}")
    if not isinstance(toolset, str) or not toolset:
        raise TypeError(f"tool {name!r} needs the name of a toolset, not {toolset!r}")
    if not isinstance(schema, dict):
        raise TypeError(f"the schema of tool {name!r} must be a dict, not {type(schema).__name__}")
    if size is not None and not (isinstance(size, int | float) and size > 0):
        raise TypeError(f"max_result_size_chars of tool {name!r} must be a number above 0, not {size!r}")


def _both_mcp(old: ToolEntry, new: ToolEntry) -> bool:
    return old.toolset.startswith("mcp-") and new.toolset.startswith("mcp-")


def _env_of(traits: Traits) -> list[str]:
    return [*traits.needs.env, *traits.needs.any_env] if traits.needs else []


def _requirements(entries: Iterable[ToolEntry]) -> list[str]:
    return list(dict.fromkeys(name for entry in entries for name in entry.requires_env))


def _module_of(handler: Callable[..., Any]) -> str:
    return str(getattr(handler, "__module__", "") or "")


registry = ToolRegistry(is_filled=False)
