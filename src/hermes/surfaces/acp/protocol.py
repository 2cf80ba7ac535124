"""Messages of the Agent Client Protocol, version 1: what editors send, and what they are told.

The reference SDK is the oracle for all of it in tests, and is not imported here: that alone costs more than a start.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from hermes.types import JsonObject

VERSION = 1
AUTH_REQUIRED, NOT_FOUND = -32000, -32002

ToolKind: TypeAlias = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
CallStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]
StopReason: TypeAlias = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class _Wire(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Names on the wire are written in camel case; what is not set is left out."""


# -- what editors send ---------------------------------------------------------------------------------------------


class FileAbilities(_Wire, frozen=True):
    read_text_file: bool | None = False
    write_text_file: bool | None = False


class ClientAbilities(_Wire, frozen=True):
    fs: FileAbilities | None = None


class InitializeParams(_Wire, frozen=True):
    protocol_version: int
    client_capabilities: ClientAbilities | None = None
    client_info: JsonObject | None = None


class AuthenticateParams(_Wire, frozen=True):
    method_id: str


class NewParams(_Wire, frozen=True):
    cwd: str
    mcp_servers: list[JsonObject] = field(default_factory=list)


class OpenParams(_Wire, frozen=True):
    """Of load, resume and fork."""

    session_id: str
    cwd: str = ""
    mcp_servers: list[JsonObject] | None = None


class ListParams(_Wire, frozen=True):
    cwd: str | None = None
    cursor: str | None = None


class SessionParams(_Wire, frozen=True):
    """Of cancel and close."""

    session_id: str


class ModeParams(_Wire, frozen=True):
    session_id: str
    mode_id: str


class ModelParams(_Wire, frozen=True):
    session_id: str
    model_id: str


class ConfigParams(_Wire, frozen=True):
    session_id: str
    config_id: str
    value: str | bool


class PromptParams(_Wire, frozen=True):
    session_id: str
    prompt: list[JsonObject]


# -- what they are told --------------------------------------------------------------------------------------------


class TextBlock(Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class TextContent(Struct, frozen=True, tag_field="type", tag="content"):
    """Words of a call."""

    content: TextBlock


class DiffContent(_Wire, frozen=True, tag_field="type", tag="diff"):
    """A file before and after; without `old_text` it is a new one."""

    path: str
    new_text: str
    old_text: str | None = None


CallContent: TypeAlias = TextContent | DiffContent


class Location(_Wire, frozen=True):
    path: str
    line: int | None = None


class _Update(_Wire, frozen=True, tag_field="sessionUpdate"):
    """One `session/update`."""


class UserChunk(_Update, frozen=True, tag="user_message_chunk"):
    content: TextBlock


class AnswerChunk(_Update, frozen=True, tag="agent_message_chunk"):
    content: TextBlock


class ThoughtChunk(_Update, frozen=True, tag="agent_thought_chunk"):
    content: TextBlock


class CallTold(_Update, frozen=True, kw_only=True, tag="tool_call"):
    tool_call_id: str
    title: str
    kind: ToolKind
    status: CallStatus
    locations: tuple[Location, ...] = ()
    content: tuple[CallContent, ...] = ()
    raw_input: Any = None


class CallMoved(_Update, frozen=True, kw_only=True, tag="tool_call_update"):
    """More about a call: words while it runs, or its end."""

    tool_call_id: str
    kind: ToolKind | None = None
    status: CallStatus | None = None
    title: str | None = None
    content: tuple[CallContent, ...] | None = None
    locations: tuple[Location, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None


class PlanEntry(_Wire, frozen=True):
    content: str
    status: Literal["pending", "in_progress", "completed"]
    priority: Literal["high", "medium", "low"]


class PlanTold(_Update, frozen=True, tag="plan"):
    entries: tuple[PlanEntry, ...]


class CommandWords(_Wire, frozen=True):
    hint: str


class CommandOffered(_Wire, frozen=True):
    name: str
    description: str
    input: CommandWords | None = None


class CommandsTold(_Update, frozen=True, tag="available_commands_update"):
    available_commands: tuple[CommandOffered, ...]


class UsageTold(_Update, frozen=True, tag="usage_update"):
    size: int
    used: int
    cost: JsonObject | None = None


class ModeTold(_Update, frozen=True, tag="current_mode_update"):
    current_mode_id: str


class InfoTold(Struct, frozen=True, omit_defaults=True, tag_field="sessionUpdate", tag="session_info_update"):
    title: str | None = None
    updated_at: str | None = field(default=None, name="updatedAt")
    meta: JsonObject | None = field(default=None, name="_meta")


Update: TypeAlias = (
    UserChunk
    | AnswerChunk
    | ThoughtChunk
    | CallTold
    | CallMoved
    | PlanTold
    | CommandsTold
    | UsageTold
    | ModeTold
    | InfoTold
)


class UpdateParams(_Wire, frozen=True):
    session_id: str
    update: Update


class PermissionOption(_Wire, frozen=True):
    option_id: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]
    name: str


class CallAsked(_Wire, frozen=True, kw_only=True):
    """The call that a permission is asked for."""

    tool_call_id: str
    title: str
    kind: ToolKind
    status: CallStatus
    content: tuple[CallContent, ...]
    raw_input: JsonObject
    locations: tuple[Location, ...] = ()


class PermissionParams(_Wire, frozen=True):
    session_id: str
    tool_call: CallAsked
    options: tuple[PermissionOption, ...]


class PermissionOutcome(_Wire, frozen=True):
    outcome: str
    option_id: str = ""


class PermissionReply(_Wire, frozen=True):
    outcome: PermissionOutcome


class TurnUsage(_Wire, frozen=True, omit_defaults=False):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_read_tokens: int
    thought_tokens: int


class PromptReply(_Wire, frozen=True):
    stop_reason: StopReason
    usage: TurnUsage | None = None


class NamedChoice(_Wire, frozen=True):
    """A mode."""

    id: str
    name: str
    description: str = ""


class ModeState(_Wire, frozen=True):
    current_mode_id: str
    available_modes: tuple[NamedChoice, ...]


class ModelOffered(_Wire, frozen=True):
    model_id: str
    name: str
    description: str = ""


class ModelState(_Wire, frozen=True):
    current_model_id: str
    available_models: tuple[ModelOffered, ...]


class SessionListed(_Wire, frozen=True):
    session_id: str
    cwd: str
    updated_at: str
    title: str | None = None


class ListReply(_Wire, frozen=True, omit_defaults=False):
    sessions: tuple[SessionListed, ...]
    next_cursor: str | None = None


class SessionReply(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Of new, load, resume and fork."""

    modes: ModeState
    models: ModelState
    config_options: tuple[JsonObject, ...]
    session_id: str | None = None
    meta: JsonObject | None = field(default=None, name="_meta")
