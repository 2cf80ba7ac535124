"""A session's own row: created with the prompt and tools that it keeps, or opened again."""

from typing import Any

from msgspec import json

from hermes.ops import SessionChanged, SessionCreated, SessionRecord, StoreOp
from hermes.runtime.options import AgentOptions
from hermes.runtime.prompt import SYSTEM_MESSAGE
from hermes.runtime.setup.assembly import Assembly
from hermes.tools.view import SessionView

PROMPT_OPTIONS = "prompt_options"  # the key of a session's model_config: keywords that its prompt was made with
_OF_PROMPT = ("skip_context_files", "load_soul_identity", "skip_memory", "pass_session_id")


def created(
    assembly: Assembly, session_id: str, system: str, view: SessionView, config: dict[str, Any]
) -> list[StoreOp]:
    """The rows of a session that begins."""
    asked = assembly.options.session
    return [
        SessionCreated(
            session_id=session_id,
            source=asked.platform or "cli",
            model=assembly.client.model.name,
            model_config=config,
            system_prompt=system,
            tool_definitions=view.to_json(),
            user_id=asked.user_id,
            parent_session_id=asked.parent_session_id,
            cwd=assembly.services.environment.cwd,
            started_at=assembly.services.clock.now(),
        ),
        *_origin(assembly.options, session_id),
    ]


def reopened(record: SessionRecord, system: str, view: SessionView) -> list[StoreOp]:
    """What changes in the row of a session that goes on."""
    changes: dict[str, Any] = {"ended_at": None, "end_reason": None} if record.ended else {}
    if not record.system_prompt:
        changes["system_prompt"] = system
    if not record.tool_definitions:
        changes["tool_definitions"] = view.to_json()
    return [SessionChanged(record.session_id, changes)] if changes else []


def new_config(options: AgentOptions, system_message: str | None) -> dict[str, Any]:
    """What a session remembers of how it was begun."""
    config: dict[str, Any] = {
        "max_iterations": options.limits.max_iterations,
        "reasoning_config": options.model.reasoning_config,
        "max_tokens": options.model.max_tokens,
    }
    if asked := _asked_of_prompt(options):
        config[PROMPT_OPTIONS] = asked
    return {**config, SYSTEM_MESSAGE: system_message} if system_message else config


def prompt_options(config: dict[str, Any]) -> frozenset[str]:
    """The keywords that a session's prompt was made with, and is made with again."""
    return frozenset(config.get(PROMPT_OPTIONS) or ())


def unheeded(options: AgentOptions, system_message: str | None, kept: dict[str, Any]) -> str:
    """What is asked of the prompt of a session that has one already, in a sentence; empty when it was made so."""
    asked = [name for name in _asked_of_prompt(options) if name not in kept.get(PROMPT_OPTIONS, ())]
    if system_message and system_message != kept.get(SYSTEM_MESSAGE):
        asked.append(SYSTEM_MESSAGE)
    if not asked:
        return ""
    return f"this session keeps the system prompt it began with, so {' and '.join(asked)} changes nothing in it"


def _asked_of_prompt(options: AgentOptions) -> list[str]:
    return [name for name in _OF_PROMPT if getattr(options.session, name)]


def _origin(options: AgentOptions, session_id: str) -> list[StoreOp]:
    """Whom and where in a chat app the session is with, for those who look sessions up by it."""
    asked = options.session
    columns = {
        "session_key": asked.gateway_session_key,
        "chat_id": asked.chat_id,
        "chat_type": asked.chat_type,
        "thread_id": asked.thread_id,
        "display_name": asked.chat_name or asked.user_name,
    }
    told = {name: value for name, value in columns.items() if value is not None}
    if asked.user_name is not None or asked.chat_name is not None:
        told["origin_json"] = json.encode({"user_name": asked.user_name, "chat_name": asked.chat_name}).decode()
    return [SessionChanged(session_id, told)] if told else []
