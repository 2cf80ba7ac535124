"""A conversation as training data: ShareGPT turns, one JSON object a line, for those who fine-tune models."""

import json
import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.dicts import content_from_json
from hermes.disk_trouble import reason_of
from hermes.errors import UserError
from hermes.types import text_of

SAMPLES, FAILED = "trajectory_samples.jsonl", "failed_trajectories.jsonl"
SCRATCHPAD = "<REASONING_SCRATCHPAD>"
PREAMBLE = (
    "You can call functions. Their signatures stand in <tools></tools>, as one JSON list:\n<tools>\n{tools}\n</tools>\n"
    "For each call write a JSON object with its name and arguments inside <tool_call></tool_call> tags:\n"
    '<tool_call>\n{{"name": "<function>", "arguments": {{"<argument>": "<value>"}}}}\n</tool_call>\n'
    "What a call gives back comes in <tool_response></tool_response> tags:\n"
    '<tool_response>\n{{"tool_call_id": "<id>", "name": "<function>", "content": "<result>"}}\n</tool_response>'
)
_SCRATCH_TAG = re.compile(r"<(/?)REASONING_SCRATCHPAD>")


class ModelBriefing(Struct, frozen=True):
    """What the model was told before the conversation: the system prompt, and the tools as JSON that lists them."""

    system: str = ""
    tools: str = "[]"


def saved(folder: Path, result: Mapping[str, Any], told: ModelBriefing, *, alone: bool = False) -> Path:
    """Write the conversation of `result` into `folder`: to the lines of its kind, or to a file of its own."""
    completed = bool(result.get("completed"))
    entry = {
        "conversations": conversations(result["messages"], told),
        "timestamp": timestamp(),
        "model": result.get("model"),
        "completed": completed,
    }
    name = f"sample_{result['session_id']}.json" if alone else SAMPLES if completed else FAILED
    try:
        with (folder / name).open("w" if alone else "a", encoding="utf-8") as file:
            file.write(dumped(entry) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {str(folder / name)!r}: {reason_of(error)}") from error
    return folder / name


def keep_turn(result: Mapping[str, Any], system: str, tools: str) -> None:
    """Write the turn of an agent where it was started. The turn itself is stored, so trouble here only is told."""
    try:
        saved(Path.cwd(), result, ModelBriefing(system, tools))
    except UserError as error:
        logging.getLogger("hermes").error("the trajectory is not saved: %s", error)


def timestamp() -> str:
    """Now, as trajectories are dated."""
    return time.strftime("%Y-%m-%dT%H:%M:%S")


def dumped(value: Any) -> str:
    """JSON in one line, as the files have it: not escaped to ASCII, but for what no file can hold."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def conversations(messages: Sequence[Mapping[str, Any]], told: ModelBriefing) -> list[dict[str, str]]:
    """The turns. Every answer of the model has a think block; results of one round of calls are one turn."""
    names = {call["id"]: call["function"]["name"] for one in messages for call in one.get("tool_calls") or ()}
    turns = [{"from": "system", "value": _system(told)}]
    for role, group in groupby(messages, key=lambda one: one["role"]):
        ones = list(group)
        if role == "tool":
            turns.append({"from": "tool", "value": "\n".join(_response(one, names) for one in ones)})
        elif role == "assistant":
            turns += [{"from": "gpt", "value": _answer(one)} for one in ones]
        else:
            turns += [{"from": "human" if role == "user" else "system", "value": said(one)} for one in ones]
    return turns


def has_reasoning(message: Mapping[str, Any]) -> bool:
    """Whether the model has shown how it came to this answer."""
    thought = str(message.get("reasoning") or message.get("reasoning_content") or "")
    return bool(thought.strip()) or SCRATCHPAD in said(message)


def said(message: Mapping[str, Any]) -> str:
    """The words of a message."""
    content = message.get("content")
    return content if isinstance(content, str) else text_of(content_from_json(content))


@lru_cache(maxsize=64)
def _system(told: ModelBriefing) -> str:
    tools = dumped([_signature(one) for one in tools_of(told.tools)])
    return "\n\n".join(part for part in (told.system.strip(), PREAMBLE.format(tools=tools)) if part)


def tools_of(text: str) -> list[dict[str, Any]]:
    """The tools that a session offers, of its stored definitions."""
    stored = json.loads(text)
    return list(stored["offered"] if isinstance(stored, dict) else stored)


def _signature(tool: Mapping[str, Any]) -> dict[str, Any]:
    inner = tool.get("function") or tool
    return {name: inner.get(name) for name in ("name", "description", "parameters")}


def _answer(message: Mapping[str, Any]) -> str:
    thought = str(message.get("reasoning") or message.get("reasoning_content") or "").strip()
    words = _SCRATCH_TAG.sub(r"<\1think>", said(message))
    words = words if words.strip() else ""
    if thought or not words.startswith("<think>"):
        words = "\n".join(part for part in ("<think>", thought, "</think>", words) if part)
    calls = (
        _tagged("tool_call", {"name": call["function"]["name"], "arguments": _parsed(call["function"]["arguments"])})
        for call in message.get("tool_calls") or ()
    )
    return "\n".join((words, *calls)).rstrip()


def _response(message: Mapping[str, Any], names: Mapping[str, str]) -> str:
    call = str(message.get("tool_call_id") or "")
    content = result_of(said(message))
    return _tagged("tool_response", {"tool_call_id": call, "name": names.get(call, ""), "content": content})


def result_of(text: str) -> Any:
    """What a tool gave: the value, where it is a JSON object or list, else the text."""
    return _parsed(text) if text.lstrip().startswith(("{", "[")) else text


def calls_of(messages: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Each call of the conversation: its id and the tool's name, in order."""
    return [(call["id"], call["function"]["name"]) for one in messages for call in one.get("tool_calls") or ()]


def _tagged(tag: str, value: Mapping[str, Any]) -> str:
    return f"<{tag}>\n{dumped(value)}\n</{tag}>"


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text
