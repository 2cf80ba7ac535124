"""A conversation as training data: ShareGPT turns, one JSON object a line, for those who fine-tune models."""

import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from hermes.disk_trouble import reason_of
from hermes.errors import UserError
from hermes.host.session_text import said

SAMPLES, FAILED = "trajectory_samples.jsonl", "failed_trajectories.jsonl"


def saved(folder: Path, result: Mapping[str, Any], system: str, *, alone: bool) -> Path:
    """Write the conversation of `result` into `folder`: to the lines of its kind, or to a file of its own."""
    completed = bool(result.get("completed"))
    entry = {
        "conversations": conversations(result["messages"], system),
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "model": result.get("model"),
        "completed": completed,
    }
    name = f"sample_{result['session_id']}.json" if alone else SAMPLES if completed else FAILED
    try:
        with (folder / name).open("w" if alone else "a", encoding="utf-8") as file:
            file.write(msgspec.json.encode(entry).decode() + "\n")
    except OSError as error:
        raise UserError(f"cannot write {str(folder / name)!r}: {reason_of(error)}") from error
    return folder / name


def conversations(messages: Sequence[Mapping[str, Any]], system: str) -> list[dict[str, str]]:
    """The turns. Every answer of the model has a think block; results of one round of calls are one turn."""
    names = {call["id"]: call["function"]["name"] for one in messages for call in one.get("tool_calls") or ()}
    turns = [{"from": "system", "value": system}] if system else []
    for role, group in groupby(messages, key=lambda one: one["role"]):
        ones = list(group)
        if role == "tool":
            turns.append({"from": "tool", "value": "\n".join(_response(one, names) for one in ones)})
        elif role == "assistant":
            turns += [{"from": "gpt", "value": _answer(one)} for one in ones]
        else:
            turns += [{"from": "human" if role == "user" else "system", "value": said(one)} for one in ones]
    return turns


def _answer(message: Mapping[str, Any]) -> str:
    thought = str(message.get("reasoning") or message.get("reasoning_content") or "").strip()
    calls = [
        _tagged("tool_call", {"name": call["function"]["name"], "arguments": _parsed(call["function"]["arguments"])})
        for call in message.get("tool_calls") or ()
    ]
    return "\n".join(part for part in (f"<think>\n{thought}\n</think>", said(message), *calls) if part)


def _response(message: Mapping[str, Any], names: Mapping[str, str]) -> str:
    call = str(message.get("tool_call_id") or "")
    return _tagged("tool_response", {"tool_call_id": call, "name": names.get(call, ""), "content": said(message)})


def _tagged(tag: str, value: Mapping[str, Any]) -> str:
    return f"<{tag}>\n{msgspec.json.encode(value).decode()}\n</{tag}>"


def _parsed(arguments: Any) -> Any:
    try:
        return msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments
    except (msgspec.DecodeError, RecursionError):
        return arguments
