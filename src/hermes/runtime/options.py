"""The agent's keywords, folded into five frozen structs; nothing below the agent ever sees the keywords."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import fields

from hermes.dicts import storable
from hermes.errors import UserError
from hermes.runtime.guardrails import IterationBudget
from hermes.seams import ContextEngine, EventStore, Model, OpenBuffers, Sink
from hermes.work_mode import WorkMode

if TYPE_CHECKING:
    from hermes.runtime.delegation.parent_link import ParentLink

Callback: TypeAlias = Callable[..., Any]


class ModelOptions(Struct, frozen=True, kw_only=True):
    """Which model, and how it is asked."""

    base_url: str | None = None
    api_key: str | None = None
    provider: str | None = None
    api_mode: str | None = None
    model: str | Model = ""
    max_tokens: int | None = None
    reasoning_config: dict[str, Any] | None = None
    service_tier: str | None = None
    request_overrides: dict[str, Any] | None = None
    output_schema: Any = None  # an `OutputSchema`, made of the JSON Schema or the class that was given
    prefill_messages: Sequence[Mapping[str, Any]] | None = None
    fallback_model: Any = None
    credential_pool: Any = None
    providers_allowed: Sequence[str] | None = None
    providers_ignored: Sequence[str] | None = None
    providers_order: Sequence[str] | None = None
    provider_sort: str | None = None
    provider_require_parameters: bool = False
    provider_data_collection: str | None = None
    openrouter_min_coding_score: float | None = None
    records_calls: bool = False  # keep the digest of each request
    acp_command: str | None = None
    acp_args: Sequence[str] | None = None
    command: str | None = None
    args: Sequence[str] | None = None


class ToolOptions(Struct, frozen=True, kw_only=True):
    """Which tools, and how they behave."""

    enabled_toolsets: Sequence[str] | None = None
    disabled_toolsets: Sequence[str] | None = None
    default_toolsets: Sequence[str] | None = None  # for a session that begins where `enabled_toolsets` names none
    tool_delay: float = 0.0
    checkpoints_enabled: bool = True
    checkpoint_max_snapshots: int = 200  # turns
    checkpoint_max_total_size_mb: int = 500
    checkpoint_max_file_size_mb: int = 10
    cwd: str | None = None
    open_buffers: OpenBuffers | None = None  # an editor whose unsaved words file tools read
    work_mode: WorkMode = field(default_factory=WorkMode)  # a name of one, too: edits, ask, plan
    mcp_servers: Mapping[str, Any] | None = None  # for this session alone


class CallbackOptions(Struct, frozen=True, kw_only=True):
    """Who is told what. All are called in the thread that called `run_conversation`."""

    tool_progress_callback: Callback | None = None
    tool_start_callback: Callback | None = None
    tool_complete_callback: Callback | None = None
    thinking_callback: Callback | None = None
    reasoning_callback: Callback | None = None
    clarify_callback: Callback | None = None  # given a question and choices or None, returns the answer, or None
    step_callback: Callback | None = None
    stream_delta_callback: Callback | None = None
    interim_assistant_callback: Callback | None = None
    tool_gen_callback: Callback | None = None
    status_callback: Callback | None = None
    approval_callback: Callback | None = None
    sudo_password_callback: Callback | None = None  # given a prompt, returns what was typed, or None
    sink: Sink | None = None
    verbose_logging: bool = False
    quiet_mode: bool = (
        False  # no step lines in the log, whatever `verbose_logging` says; an agent prints nothing anyway
    )
    log_prefix_chars: int = 100
    log_prefix: str = ""
    save_trajectories: bool = False


class SessionOptions(Struct, frozen=True, kw_only=True):
    """Whose session, where it is kept, and what its prompt is made of."""

    session_id: str | None = None
    parent_session_id: str | None = None
    session_db: Any = None
    store: EventStore | None = None
    platform: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    chat_id: str | None = None
    chat_name: str | None = None
    chat_type: str | None = None
    thread_id: str | None = None
    gateway_session_key: str | None = None
    ephemeral_system_prompt: str | None = None
    skip_context_files: bool = False
    load_soul_identity: bool = False
    skip_memory: bool = False
    pass_session_id: bool = False
    context_engine: ContextEngine | None = None  # compresses in place of the configured one
    auto_title: bool = False  # ask a model for a title after the first exchange
    stores_events: bool = False  # keep what listeners are told as rows, for those who come late or from elsewhere


class LimitOptions(Struct, frozen=True, kw_only=True):
    """How much a turn may take."""

    max_iterations: int = 90
    iteration_budget: IterationBudget | None = None
    turn_timeout_s: float | None = None  # of the settings; 0 is no limit


class AgentOptions(Struct, frozen=True, kw_only=True):
    """Everything an agent was asked for."""

    model: ModelOptions
    tools: ToolOptions
    callbacks: CallbackOptions
    session: SessionOptions
    limits: LimitOptions
    parent: "ParentLink | None" = None  # of an agent that another one has made for a task
    given: frozenset[str] = frozenset()  # the keywords that the caller wrote: their values win over the settings, too


GROUPS: dict[str, type[Struct]] = {
    "model": ModelOptions,
    "tools": ToolOptions,
    "callbacks": CallbackOptions,
    "session": SessionOptions,
    "limits": LimitOptions,
}
_OWNER = {field.name: group for group, struct in GROUPS.items() for field in fields(struct)}

# A text is a sequence of texts, too: of its letters.
_LISTS = {
    "enabled_toolsets",
    "disabled_toolsets",
    "default_toolsets",
    "providers_allowed",
    "providers_ignored",
    "providers_order",
}

_HINTS: dict[str, Any] = {name: hint for struct in GROUPS.values() for name, hint in struct.__annotations__.items()}
_WHOLE = frozenset(name for name, hint in _HINTS.items() if hint in (int, int | None))
_NUMBERS = frozenset(name for name, hint in _HINTS.items() if hint in (float, float | None)) | _WHOLE
_FUNCTIONS = frozenset(name for name in _HINTS if name.endswith("_callback")) | {"stream_callback"}
_ANSWERING = frozenset(
    {"approval_callback", "clarify_callback", "sudo_password_callback"}
)  # waited for, so they may be async


def fold(keywords: Mapping[str, Any]) -> AgentOptions:
    """The five structs; an unknown keyword is a `TypeError` that names the nearest one."""
    grouped: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    for name, value in keywords.items():
        if name not in _OWNER:
            from difflib import get_close_matches  # only when something is wrong

            near = get_close_matches(name, _OWNER, n=1)
            raise TypeError(f"AIAgent has no keyword {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        refuse_unlike(name, value)
        if value is not None:
            grouped[_OWNER[name]][name] = _usable(name, value)
    return AgentOptions(
        model=ModelOptions(**grouped["model"]),
        tools=ToolOptions(**grouped["tools"]),
        callbacks=CallbackOptions(**grouped["callbacks"]),
        session=SessionOptions(**grouped["session"]),
        limits=LimitOptions(**grouped["limits"]),
        given=frozenset(name for group in grouped.values() for name in group),
    )


def refuse_unlike(name: str, value: object) -> None:
    """`UserError` for a value that is nothing of the kind that the keyword wants."""
    if value is not None and (wanted := _unlike(name, value)):
        raise UserError(f"{name} is {wanted}, not {value!r}")


def _unlike(name: str, value: object) -> str:
    """What the keyword is, when `value` is nothing of the kind."""
    if name in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int if name in _WHOLE else int | float)):
        return "a whole number" if name in _WHOLE else "a number"
    if name in _FUNCTIONS and not callable(value):
        return "a function"
    if name in _FUNCTIONS - _ANSWERING and inspect.iscoroutinefunction(value):
        return "a plain function, since nothing waits for it"
    if name == "iteration_budget" and not isinstance(value, IterationBudget):
        return "an IterationBudget"
    if name == "work_mode" and not isinstance(value, str | WorkMode):
        return "edits, ask or plan"
    return ""


def _usable(name: str, value: Any) -> Any:
    """The value without lone surrogates, wherever they stand in it."""
    if name == "output_schema":
        from hermes.runtime.output_schema import OutputSchema  # for who wants one

        return OutputSchema.of(value)
    if isinstance(value, str):
        if name == "work_mode":
            return WorkMode(value)
        if name in _LISTS:
            raise UserError(f"{name} is a list of names, not a text; write [{value!r}]")
        return value if name == "cwd" else storable(value)  # the name of a folder may be any bytes
    if isinstance(value, dict):
        return {_usable("", key): _usable("", item) for key, item in value.items()}
    return [_usable("", item) for item in value] if isinstance(value, list) else value


class Explained:
    """An attribute of the agent's class that is made when `help` or an editor asks."""

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute

    def __get__(self, _instance: object, _owner: type) -> Any:
        from hermes.runtime import agent_keywords  # for who reads

        return getattr(agent_keywords, self._attribute)()
