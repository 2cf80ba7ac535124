"""`AIAgent`'s keywords as a type: what an editor completes, a type checker checks and `help` tells. Nothing runs on it.

The sentence below a keyword is its help. `options.py` has the same keywords with their defaults; a test compares them.
"""

import ast
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from msgspec.structs import FieldInfo, fields

from hermes.runtime.guardrails import IterationBudget
from hermes.runtime.options import GROUPS
from hermes.seams import ContextEngine, EventStore, Model, OpenBuffers, Sink
from hermes.state import SessionDB
from hermes.types import JsonObject
from hermes.work_mode import WorkMode, WorkModeName

Wanted: TypeAlias = Mapping[str, Any] | type[Any]  # a JSON Schema, or a class that the answer becomes
SaysText: TypeAlias = str | Awaitable[str | None] | None


SUMMARY = """An agent: a model that works with tools on one session, one turn at a time.

    agent = AIAgent(provider="anthropic", model="claude-sonnet-4-6", cwd="my-project")
    print(agent.chat("Why does the build fail?"))
    agent.close()

`chat` gives the text of the answer, `run_conversation` all that is known about the turn; `achat` and
`arun_conversation` are the same for callers that have a loop. `interrupt` and `steer` may be called from any
thread. What no keyword says, the settings of HERMES_HOME decide. docs/library.md shows all of it at work.
"""


class AgentKeywords(TypedDict, total=False):
    """All of them are optional; None is the same as leaving one out, and then the settings decide."""

    # -- which model ---------------------------------------------------------------------------------------------

    model: str | Model | None
    """The model's name, or a `Model` of your own, such as `hermes.testing.ScriptedModel`."""
    provider: str | None
    """Who serves it: a name of `hermes model`, such as "anthropic" or "ollama"."""
    base_url: str | None
    """The address of the API, for a server of your own."""
    api_key: str | None
    """The key for it; without one, the key of the settings that belongs to this address."""
    api_mode: str | None
    """The protocol: chat_completions, anthropic_messages, codex_responses or bedrock_converse."""
    max_tokens: int | None
    """The longest answer to ask for, in tokens."""
    reasoning_config: Mapping[str, Any] | None
    """How long it thinks: {"effort": "low" | "medium" | "high"}, or {"enabled": False}."""
    service_tier: str | None
    """The provider's class of service."""
    request_overrides: Mapping[str, Any] | None
    """Fields put into each request as they are, such as {"temperature": 0}."""
    output_schema: Wanted | None
    """What each answer has to be: a JSON Schema, or a class. See "Answers as data" in docs/library.md."""
    prefill_messages: Sequence[Mapping[str, Any]] | None
    """Messages that come before the conversation in each request, and are not stored."""
    fallback_model: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    """Who answers when the model cannot: "provider/model", {"provider": …, "model": …}, or several in order."""
    credential_pool: Any
    """Several keys for the same provider, used in turn: a list of texts."""
    providers_allowed: Sequence[str] | None
    """OpenRouter: only these serve the model."""
    providers_ignored: Sequence[str] | None
    """OpenRouter: these do not."""
    providers_order: Sequence[str] | None
    """OpenRouter: these first, in this order."""
    provider_sort: str | None
    """OpenRouter: by price, throughput or latency."""
    provider_require_parameters: bool | None
    """OpenRouter: only who understands every field of the request."""
    provider_data_collection: str | None
    """OpenRouter: "deny" leaves out who keeps what is sent."""
    openrouter_min_coding_score: float | None
    """OpenRouter's own choice of model: how good at code it has to be, from 0 to 1."""
    records_calls: bool | None
    """Keep the digest of each request, as proof of what was sent."""
    acp_command: str | None
    """A program that speaks the Agent Client Protocol and is asked in place of a model."""
    acp_args: Sequence[str] | None
    """Its arguments."""
    command: str | None
    """Another name for `acp_command`."""
    args: Sequence[str] | None
    """Another name for `acp_args`."""

    # -- which tools, and where they work ----------------------------------------------------------------------------

    cwd: str | None
    """The folder to work in; without one, that of the process."""
    enabled_toolsets: Sequence[str] | None
    """The model gets the tools of these toolsets and no others; [] is none at all. See `hermes tools`."""
    disabled_toolsets: Sequence[str] | None
    """It does not get the tools of these."""
    default_toolsets: Sequence[str] | None
    """The toolsets of a session that begins now, where `enabled_toolsets` names none."""
    work_mode: WorkMode | WorkModeName | None
    """How far it goes by itself: "edits", "ask" (before each edit) or "plan" (nothing is changed)."""
    mcp_servers: Mapping[str, Any] | None
    """MCP servers for this agent alone, in the form of `mcp_servers` in config.yaml."""
    open_buffers: OpenBuffers | None
    """An editor whose unsaved files are read in place of those on disk."""
    tool_delay: float | None
    """Seconds to wait between calls of one answer that cannot run side by side."""
    checkpoints_enabled: bool | None
    """Keep what files were before they are changed, so that you can go back."""
    checkpoint_max_snapshots: int | None
    """For how many turns."""
    checkpoint_max_total_size_mb: int | None
    """How much room that may take in all."""
    checkpoint_max_file_size_mb: int | None
    """A larger file is not kept."""

    # -- who is told what, and who is asked ----------------------------------------------------------------------------

    stream_delta_callback: Callable[[str | None], object] | None
    """Called with each piece of the answer as it comes, and with None before tools run."""
    tool_start_callback: Callable[[str, str, JsonObject], object] | None
    """Called with a call's id, the tool's name and its arguments before it runs."""
    tool_complete_callback: Callable[[str, str, JsonObject, str], object] | None
    """Called with the same and the result after it ran."""
    tool_progress_callback: Callable[..., object] | None
    """Called with "tool.started" or "tool.completed", the tool's name, a preview and its arguments."""
    tool_gen_callback: Callable[[str], object] | None
    """Called with a tool's name when the model begins to write a call."""
    thinking_callback: Callable[[str], object] | None
    """Called with a word about what it is doing; "" when that is over."""
    reasoning_callback: Callable[[str], object] | None
    """Called with each piece of the model's reasoning."""
    interim_assistant_callback: Callable[..., object] | None
    """Called with what the model says beside its calls; `already_streamed` says whether it was streamed."""
    step_callback: Callable[[int, list[str]], object] | None
    """Called before each model call with its number and the tools that ran since the last one."""
    status_callback: Callable[[str, str], object] | None
    """Called with a kind (retry, fallback, warning, …) and a sentence."""
    approval_callback: Callable[..., Any] | None
    """Asked with a dangerous command and why; says "once", "session", "always" or "deny". May be async."""
    clarify_callback: Callable[[str, list[str] | None], SaysText] | None
    """Asked what the model wants to know, with choices or None; returns the answer. May be async."""
    sudo_password_callback: Callable[[str], SaysText] | None
    """Asked for the password of sudo; None is no. May be async."""
    sink: Sink | None
    """Its `emit(event)` is given every event of `hermes.types`: all of the above and more."""
    verbose_logging: bool | None
    """Write a line a step to the logger "hermes.turn"."""
    quiet_mode: bool | None
    """Write none, whatever `verbose_logging` says."""
    log_prefix: str | None
    """What those lines begin with."""
    log_prefix_chars: int | None
    """How many characters of arguments and results they show."""
    save_trajectories: bool | None
    """Keep each turn as a sample for training, in trajectory_samples.jsonl of the working folder."""

    # -- whose session -------------------------------------------------------------------------------------------------

    session_id: str | None
    """Go on with this session, or begin it under this id."""
    parent_session_id: str | None
    """The session that this one came out of."""
    session_db: SessionDB | None
    """Where sessions are kept; without one, HERMES_HOME/state.db."""
    store: EventStore | None
    """A store of your own in its place."""
    platform: str | None
    """The way in, such as "cli" or "telegram": the model is told what fits there, and sessions are listed by it."""
    user_id: str | None
    """Whose session it is, for who looks sessions up by it."""
    user_name: str | None
    """That person's name."""
    chat_id: str | None
    """The chat that it belongs to."""
    chat_name: str | None
    """That chat's name."""
    chat_type: str | None
    """What kind of chat it is."""
    thread_id: str | None
    """The thread in it."""
    gateway_session_key: str | None
    """One name for all sessions of the same chat: what is approved for one holds for the next."""
    ephemeral_system_prompt: str | None
    """Words after the system prompt that are sent and never stored."""
    skip_context_files: bool | None
    """Leave out AGENTS.md, SOUL.md and their like."""
    load_soul_identity: bool | None
    """With `skip_context_files`: read SOUL.md all the same."""
    skip_memory: bool | None
    """Leave out what is remembered across sessions."""
    pass_session_id: bool | None
    """Tell the model the id of its session."""
    context_engine: ContextEngine | None
    """What compresses long conversations, in place of the configured one."""
    auto_title: bool | None
    """Ask a model for a title after the first exchange."""
    stores_events: bool | None
    """Keep what listeners are told as rows, for those who come late."""

    # -- how much ------------------------------------------------------------------------------------------------------

    max_iterations: int | None
    """Model calls that a turn may make."""
    iteration_budget: IterationBudget | None
    """The same, shared by several agents."""
    turn_timeout_s: float | None
    """Seconds that a turn may take; 0 is no limit."""


def signature() -> inspect.Signature:
    """`__signature__` of the agent: the keywords with their defaults."""
    return inspect.Signature([_parameter(each) for struct in GROUPS.values() for each in fields(struct)])


def _parameter(each: FieldInfo) -> inspect.Parameter:
    return inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)


def explanation() -> str:
    """`__doc__` of the agent: what it is, and each keyword with its sentence."""
    told = [f"{name}\n    {sentence}" for name, sentence in keyword_help().items()]
    return "\n".join([SUMMARY, "Keywords, all of them optional:\n", *told])


@cache
def keyword_help() -> dict[str, str]:
    """Each keyword in the order above, and the sentence below it: an editor reads them there, and so does this."""
    body = next(
        node.body
        for node in ast.parse(Path(__file__).read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == AgentKeywords.__name__
    )
    found: dict[str, str] = {}
    for named, told in pairwise(body):
        if isinstance(named, ast.AnnAssign) and isinstance(named.target, ast.Name) and isinstance(told, ast.Expr):
            found[named.target.id] = ast.literal_eval(told.value)
    return found
