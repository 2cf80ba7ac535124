"""What a model's answer means for the turn: a pure function, tested without any I/O."""

from typing import TypeAlias

from msgspec import Struct

from hermes.types import ModelResponse, ToolCall, text_of

MAX_CONTINUATIONS = 3
MAX_EMPTY_RETRIES = 3
NUDGE = "Your last answer was empty. Go on from the tool results above: either call a tool or give your answer."
CUT_CALL = (
    "Your last answer reached the output limit inside a tool call, so nothing of it was run. "
    "Write less at once: split large content over several calls."
)
CUT_CALLS = (
    "The model's tool calls were cut off by its output limit, twice. Raise max_tokens, or ask for smaller steps."
)
HOUSEKEEPING = frozenset({"memory", "todo", "skill_manage", "session_search"})


class RunTools(Struct, frozen=True):
    """Store the message, run its calls, go round again."""

    calls: tuple[ToolCall, ...]


class Finish(Struct, frozen=True):
    """Store the message and end the turn with this text."""

    text: str
    reason: str
    partial: bool = False
    broken_by: str = ""  # why it is


class Continue(Struct, frozen=True):
    """Store what came and ask for the rest: the output limit cut it."""


class Nudge(Struct, frozen=True):
    """Ask again with a word beside the last result; the empty answer is not stored."""


class Retry(Struct, frozen=True):
    """Ask again, unchanged; the empty answer is not stored."""


class Retell(Struct, frozen=True):
    """Ask again with a word beside the last message; the cut call is neither stored nor run."""

    text: str


class GiveUp(Struct, frozen=True):
    """End the turn without an answer from the model."""

    reason: str
    text: str = ""
    partial: bool = False


Next: TypeAlias = RunTools | Finish | Continue | Nudge | Retry | Retell | GiveUp


class TurnProgress(Struct):
    """What this turn has been through, as far as the next step depends on it."""

    continuations: int = 0
    empty_retries: int = 0
    nudged: bool = False
    cut_calls: int = 0  # answers in a row whose calls the output limit cut
    invented: int = 0  # rounds in a row that called only tools that do not exist
    after_tools: bool = False
    prefix: str = ""  # text of answers that the output limit cut
    aside: str = ""  # text beside the last calls, when those were housekeeping only


def after_response(response: ModelResponse, progress: TurnProgress) -> Next:
    """The next step of the turn."""
    message = response.message
    if message.tool_calls:
        if response.finish_reason != "length":
            return RunTools(message.tool_calls)
        if progress.cut_calls == 0:
            return Retell(CUT_CALL)
        return GiveUp("truncated_tool_call", CUT_CALLS, partial=True)
    text = text_of(message.content)
    if response.partial and text.strip():
        return Finish(progress.prefix + text, "partial_stream_recovery", partial=True, broken_by=response.broken_by)
    if response.finish_reason in ("length", "incomplete") and (text.strip() or response.finish_reason == "incomplete"):
        if progress.continuations < MAX_CONTINUATIONS:
            return Continue()
        return Finish(progress.prefix + text, "text_response(finish_reason=length)", partial=True)
    if text.strip():
        return Finish(progress.prefix + text, f"text_response(finish_reason={response.finish_reason})")
    return _after_nothing(response, progress)


def _after_nothing(response: ModelResponse, progress: TurnProgress) -> Next:
    if response.finish_reason == "content_filter":
        return GiveUp("text_response(finish_reason=content_filter)")
    if progress.prefix.strip():
        return Finish(progress.prefix, f"text_response(finish_reason={response.finish_reason})")
    if progress.aside.strip():
        return Finish(progress.aside, "fallback_prior_turn_content")
    if progress.after_tools and not progress.nudged:
        return Nudge()
    if progress.empty_retries < MAX_EMPTY_RETRIES:
        return Retry()
    return GiveUp("empty_response_exhausted", "(empty)")
