"""Calls made from outside an agent: one context per task, made on first use and kept until the process ends."""

import logging
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from hermes.config import paths
from hermes.errors import ToolError
from hermes.schemas import tidy
from hermes.scope import TurnScope
from hermes.seams import Environment, EventStore, Gate, NestedCalls, ResultShelf, Route, Supervisor, ToolRules
from hermes.state.stores import open_store, place_of
from hermes.tools.calling.dispatch import awaited, call_now, fitting, is_coroutine, resolved, takes_context
from hermes.tools.calling.loops import depth_here, run_sync
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.calling.validation import CallRefused, Validator
from hermes.tools.hooks import AROUND, Hooks, nobody_listens
from hermes.tools.registration.definitions import load_home
from hermes.tools.registry import Registered, offered_schema, registry, tool_error
from hermes.tools.results.shelf import FileShelf
from hermes.tools.results.tool_result import error_content, normalise, sanitise_error
from hermes.tools.view import rules_of
from hermes.types import Event, JsonObject, text_of

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.redact import Redactor
    from hermes.tools.approval.gate import ApprovalGate, DiskView

log = logging.getLogger(__name__)

Result = TypeVar("Result")
_TOLD = frozenset({"task_id", "tool_call_id", "session_id", "user_task", "enabled_tools"})  # as in `DirectCall`
AGENT_LOOP_TOOLS = frozenset({"todo", "memory", "session_search", "delegate_task"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectCall:
    """A call as `handle_function_call` is given it."""

    name: str
    args: Any
    task_id: str | None = None
    tool_call_id: str | None = None
    session_id: str | None = None
    user_task: str | None = None
    enabled_tools: list[str] | None = None
    skip_pre_hook: bool = False


class HookedCall(NamedTuple):
    """A call that hooks are told of, and how changed arguments are checked."""

    call: DirectCall
    args: JsonObject
    rules: ToolRules
    check: Callable[[Any], JsonObject]


class DirectCalls:
    """What calls from outside an agent share: hooks of the process, and a workplace per task."""

    def __init__(self) -> None:
        self.hooks = Hooks()
        self.hooks_of: tuple[Any, ...] = ()  # which plugins' hooks these are, and their owners
        self.pool = DaemonPool()
        self._lock = threading.RLock()  # guards the mappings below
        self._places: dict[tuple[str, int], _CallPlace] = {}
        self._validators: dict[str, tuple[object, Validator]] = {}
        self._stores: dict[Path, EventStore] = {}  # by home: decisions are recorded there

    def call(self, call: DirectCall) -> str:
        """The result text; every error is JSON text too."""
        try:
            return self._call(call)
        except Exception as error:  # the outer border: a fault of ours, told like any other
            log.exception("call of tool %r failed", call.name)
            return tool_error(sanitise_error(f"Error executing {call.name}: {error}"))

    def _call(self, call: DirectCall) -> str:
        if registry.bring is not None:
            registry.bring()
        tool = registry.get(call.name)
        if call.name in AGENT_LOOP_TOOLS or (tool is not None and tool.traits.agent_loop):
            return _of_the_loop(call.name)
        if tool is None:
            load_home(paths.hermes_home())
            tool = registry.get(call.name)
        if tool is None:
            return tool_error(f"Unknown tool: {call.name}")
        try:
            args = self.checked(tool, call.args)
        except CallRefused as refused:
            return refused.as_json()
        if nobody_listens(self.hooks, AROUND):
            return self._run(tool, args, call)
        from hermes.tools.calling.hooked_call import run_hooked  # for who has hooks

        def run(wanted: JsonObject) -> str:
            return self._run(tool, wanted, call)

        return run_hooked(
            self, HookedCall(call, args, rules_of(tool), lambda changed: self.checked(tool, changed)), run
        )

    def dispatch(self, tool: Registered, args: JsonObject, given: Mapping[str, Any]) -> str:
        """`registry.dispatch` of a handler that works with a context: no hooks, no check of the arguments."""
        if tool.traits.agent_loop:
            return _of_the_loop(tool.entry.name)
        known = {key: value for key, value in given.items() if key in _TOLD}
        return self._run(tool, args, DirectCall(name=tool.entry.name, args=args, **known))

    def _run(self, tool: Registered, args: JsonObject, call: DirectCall) -> str:
        keywords: JsonObject = {
            "task_id": call.task_id,
            "user_task": call.user_task,
            "session_id": call.session_id,
            "tool_call_id": call.tool_call_id,
            "enabled_tools": call.enabled_tools,
        }
        try:
            handler = resolved(tool)
            if takes_context(handler) and is_coroutine(tool, handler):
                value = run_sync(self._with_context(tool, handler, args, keywords), tool.traits.timeout_s)
            else:
                if takes_context(handler):
                    keywords["ctx"] = run_sync(self._context(keywords))
                value = call_now(tool, args, fitting(tool, handler, keywords))
        except ToolError as error:
            return tool_error(sanitise_error(str(error)))
        except Exception as error:  # the tool border
            log.exception("tool %r failed", call.name)
            return error_content("Tool execution failed", error)
        return text_of(normalise(value, call.name))

    async def _with_context(
        self, tool: Registered, handler: Callable[..., Any], args: JsonObject, keywords: JsonObject
    ) -> Any:
        ctx = await self._context(keywords)
        async with ctx.scope:
            return await awaited(handler, args, fitting(tool, handler, {**keywords, "ctx": ctx}))

    async def _context(self, keywords: JsonObject) -> "OutsideContext":
        """What a handler works with: the task's own parts, on the loop they were made on."""
        return OutsideContext(
            place=self._place(str(keywords["task_id"] or "default")),
            scope=TurnScope("direct call"),
            call_id=str(keywords["tool_call_id"] or secrets.token_hex(8)),
            outside=self,
            user_task=keywords["user_task"],
        )

    def checked(self, tool: Registered, args: Any) -> JsonObject:
        """`args` as the tool's schema wants them; `CallRefused` when they do not fit it."""
        if not isinstance(args, dict):
            raise CallRefused("the arguments must be a JSON object; nothing was run.", "malformed_arguments")
        entry, closed = tool.entry, tool.origin == "builtin"
        schema = entry.schema if entry.dynamic_schema_overrides is None else offered_schema(entry)
        key, known = (schema, closed), self._validators.get(entry.name)
        if known is None or known[0] != key:  # the same object, in all but a few cases
            known = (key, Validator(tidy(schema.get("parameters")), closed=closed))
            self._validators[entry.name] = known
        return known[1].check(args)

    def _place(self, task_id: str) -> "_CallPlace":
        key = (task_id, depth_here())
        with self._lock:
            if key not in self._places:
                self._places[key] = _make_place(task_id, self)
            return self._places[key]

    def gate(self, settings: "Settings", sight: "DiskView", redactor: "Redactor") -> "ApprovalGate":
        """The gate of `settings`: nobody is here to be asked, and the store of the home keeps its decisions."""
        from hermes.tools.approval.gate_setup import make_gate

        with self._lock:
            store = self._store(settings.home)
        return make_gate(settings.home, settings.mapping, sight, store, self.pool.run, redactor.redact)

    def _store(self, home: Path) -> EventStore:
        if home not in self._stores:
            paths.made(home)
            self._stores[home] = open_store(place_of(home))
        return self._stores[home]

    def close_task(self, task_id: str) -> None:
        """Close what a task holds: its shell and its children."""
        with self._lock:
            gone = [self._places.pop(key) for key in list(self._places) if key[0] == task_id]
        for place in gone:
            run_sync(place.close())


outside = DirectCalls()  # a cache of workplaces by task, for calls that belong to no agent


def _of_the_loop(name: str) -> str:
    return tool_error(f"{name} must be handled by the agent loop")


@dataclass(frozen=True, slots=True, kw_only=True)
class _CallPlace:
    task_id: str
    environment: Environment
    supervisor: Supervisor
    gate: Gate
    shelf: ResultShelf
    settings: Mapping[str, Any]
    pool: DaemonPool
    kept: "TemporaryDirectory[str]"  # the folder of the shelf
    memo: dict[str, Any] = field(default_factory=dict)

    async def close(self) -> None:
        await self.environment.close()
        await self.supervisor.close()
        await self.pool.run(self.kept.cleanup)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideContext:
    """`ToolContext` of a call from outside an agent: nobody to ask, nobody watching."""

    place: _CallPlace
    scope: TurnScope
    call_id: str
    outside: DirectCalls
    user_task: str | None = None
    route: Route = "foreground"

    def nested(self) -> NestedCalls:
        """For calls that this call makes itself."""
        from hermes.tools.code_execution.nested_outside_agent import OutsideCalls  # it is built on this module

        return OutsideCalls(self)

    @property
    def session_id(self) -> str:
        return self.place.task_id

    @property
    def task_id(self) -> str:
        return self.place.task_id

    @property
    def environment(self) -> Environment:
        return self.place.environment

    @property
    def gate(self) -> Gate:
        return self.place.gate

    @property
    def supervisor(self) -> Supervisor:
        return self.place.supervisor

    @property
    def shelf(self) -> ResultShelf:
        return self.place.shelf

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.place.settings

    @property
    def memo(self) -> dict[str, Any]:
        return self.place.memo

    async def in_thread(self, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        return await self.place.pool.run(function, *args, **kwargs)

    def emit(self, event: Event) -> None:
        log.debug("event outside a turn: %r", event)

    async def note(self, key: str, value: Any) -> None:
        log.debug("note outside a turn: %s=%r", key, value)


def _make_place(task_id: str, outside: DirectCalls) -> _CallPlace:
    from hermes.config.load import load_settings  # only built-ins need any of this
    from hermes.config.sections import terminal
    from hermes.tools.approval.gate_setup import border_of, disk_view, makings_of, on_call_of, with_remotes
    from hermes.tools.environments.command_env import redactor_of
    from hermes.tools.environments.factory import EnvironmentRequest, create_environment
    from hermes.tools.files.file_memory import REDACTOR
    from hermes.tools.supervisor.supervisor import ProcessSupervisor

    settings = load_settings()
    redactor, pool, here = redactor_of(settings), outside.pool, str(Path.cwd())
    supervisor = ProcessSupervisor()
    making = EnvironmentRequest(
        settings=settings.of(terminal.Section),
        supervisor=supervisor,
        home=settings.home,
        environ=os.environ,
        secrets=settings.secrets,
        approvals=settings.mapping.get("approvals") or {},
        launch_folder=here,
        task_id=task_id,
        run_blocking=pool.run,
        redactor=redactor,
    )
    environment = create_environment(making)
    folder = here if environment.kind == "local" else environment.cwd
    sight = disk_view(settings.home, settings.mapping, environment.kind, folder)
    results = paths.made(paths.cache_dir(settings.home) / "results")
    kept = TemporaryDirectory(prefix="direct-", dir=results)  # gone with the task, or with the process
    return _CallPlace(
        task_id=task_id,
        environment=environment,
        supervisor=supervisor,
        gate=replace(
            outside.gate(settings, with_remotes(sight, environment), redactor),
            border=border_of(environment),
            makings=makings_of(environment),
            on_call=on_call_of(environment),
        ),
        shelf=FileShelf(Path(kept.name), pool.run, clean=redactor.redact_bytes),
        kept=kept,
        memo={REDACTOR: redactor},
        settings=settings.mapping,
        pool=pool,
    )
