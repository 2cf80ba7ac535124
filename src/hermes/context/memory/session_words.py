"""Who said what in a session: the person's words, and the texts that tools, rules and skills brought in."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from hermes.context.marks import PREFIX
from hermes.context.origin import ForeignText
from hermes.ops import SessionRecord
from hermes.typed import from_json
from hermes.types import JsonObject, Message, text_of

# Their results only repeat what the model itself has written; where that came from is judged by its source.
ECHOES = frozenset({"memory", "todo", "write_file", "patch", "skill_manage", "cronjob"})
# What references and skills add to a person's message. Up to the last end of the kind: a file may hold an end, too.
_ADDED = re.compile(r"^<(skill|file|folder|page|changes)\b([^>\n]*)>$.*^</\1>$", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r'"([^"]*)"')


class SessionText(Struct, frozen=True, kw_only=True):
    """What a session knows about where words came from."""

    outside: Sequence[ForeignText] = ()
    own: Sequence[str] = ()


def words_of_session(records: Iterable[SessionRecord], *, is_whole: bool = True) -> SessionText:
    """From the records of a session and of those it grew out of; `is_whole` says that none of them is missing.

    A summary is nobody's words as long as the messages that it sums up are there to be compared.
    """
    outside: list[ForeignText] = []
    own: list[str] = []
    for record in records:
        if record.system_prompt:
            outside.append(ForeignText("the rules or skills in the prompt", record.system_prompt))
        outside += [ForeignText("what was recalled", context) for context in record.contexts.values()]
        calls = {call.id: call for message in record.messages for call in message.tool_calls}
        for message in record.messages:
            text = text_of(message.content)
            if message.role == "user" and text.startswith(PREFIX):
                outside += [] if is_whole else [ForeignText("the summary of an earlier part", text)]
            elif message.role == "user":
                outside += [_added(match) for match in _ADDED.finditer(text)]
                own.append(own_words(text))
            elif message.role == "tool" and message.tool_name == "clarify":
                own.append(_answer(text))
            elif message.role == "tool" and message.tool_name not in ECHOES:
                call = calls.get(message.tool_call_id or "")
                outside.append(ForeignText(_source(message, call.arguments if call else ""), _plain(text)))
    return SessionText(outside=outside, own=own)


def own_words(text: str) -> str:
    """What of a user message the person has written: no summary, and nothing that references and skills added."""
    return "" if text.startswith(PREFIX) else _ADDED.sub("", text)


def _added(match: re.Match[str]) -> ForeignText:
    kind, attributes = match.groups()
    name = _NAMED.search(attributes)
    return ForeignText(f"the {kind} {name[1]}" if name else f"the {kind} in the message", match.group())


def _source(message: Message, arguments: str) -> str:
    """The tool, and what it was asked for."""
    try:
        args = from_json(arguments or "{}", JsonObject)
    except msgspec.DecodeError:
        args = {}
    asked = next((str(args[key]) for key in ("path", "url", "urls", "command", "query", "name") if args.get(key)), "")
    short = asked if len(asked) <= 60 else asked[:59] + "…"
    return f"{message.tool_name} {short}".strip()


def _plain(text: str) -> str:
    r"""The texts inside a JSON result: there a line break is `\n`, which would become a part of the next word."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return "\n".join(_texts(from_json(text, Any)))
    except (msgspec.DecodeError, RecursionError):
        return text


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _answer(text: str) -> str:
    try:
        said = from_json(text, JsonObject).get("user_response")
    except msgspec.DecodeError:
        return ""
    return said if isinstance(said, str) else ""
