"""What a server tells of the tokens of its answer, as far as it is of the form that the protocol has."""

from typing import Any

from hermes.models.wires.answer_values import encode, is_deep, mapping
from hermes.types import JsonObject


def tokens_told(tokens: JsonObject, logprobs: Any, ids: Any) -> int:
    """Add one piece to `tokens`; how many bytes are kept of it."""
    size = 0
    told = mapping(logprobs).get("content")
    if isinstance(told, list) and not is_deep(told):
        found = [mapping(one) for one in told]
        kept = [{"token": one.get("token"), "logprob": one.get("logprob")} for one in found]
        tokens.setdefault("logprobs", []).extend(kept)
        size += len(encode(kept))
    if isinstance(ids, list) and all(type(one) is int for one in ids):
        tokens.setdefault("ids", []).extend(ids)
        size += 8 * len(ids)
    return size
