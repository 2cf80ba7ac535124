"""A request that a provider refused, without what it refused."""

from hermes.errors import ProviderError
from hermes.ops import SessionChanged
from hermes.runtime.repairs import (
    QUARANTINED_IMAGES,
    definitions_json,
    is_foreign_reasoning,
    suspects,
    without_pictures,
    without_reasoning,
    without_tool,
)
from hermes.runtime.turn import Turn
from hermes.seams import ModelRequest
from hermes.types import PrefixBroken, StatusChanged, ToolDefinition


def mended(turn: Turn, request: ModelRequest, error: ProviderError) -> ModelRequest | None:
    """The request without what the provider refused; it stays out of the session, too."""
    if error.reason == "tool_rejected" and (found := without_tool(request.tools, error.subject)) is not None:
        name, turn.tools = found
        turn.pending.append(SessionChanged(turn.session_id, {"tool_definitions": definitions_json(turn.tools)}))
        return _quarantined(turn, f"the tool {name!r} is left out, because the provider refuses it", turn.tools)
    if error.reason == "image_rejected" and (refused := suspects(request.units)):
        known = turn.model_config.get(QUARANTINED_IMAGES, ())
        turn.model_config = {**turn.model_config, QUARANTINED_IMAGES: [*known, *refused]}
        turn.pending.append(SessionChanged(turn.session_id, {"model_config": turn.model_config}))
        turn.history.builder.mend(without_pictures(frozenset(refused)))
        return _quarantined(turn, "a picture is left out, because the provider refuses it", request.tools)
    if is_foreign_reasoning(error):
        turn.history.builder.mend(without_reasoning)
        return _quarantined(turn, "stored reasoning is left out, because another model wrote it", request.tools)
    return None


def _quarantined(turn: Turn, what: str, tools: tuple[ToolDefinition, ...]) -> ModelRequest:
    turn.ctx.sink.emit(StatusChanged("quarantine", what))
    turn.ctx.sink.emit(PrefixBroken("quarantine", turn.outcome.last_prompt_tokens or None))
    return turn.request(tools)
