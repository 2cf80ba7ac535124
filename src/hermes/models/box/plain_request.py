"""Requests that plainly ask for a listing, a file or a command: what a very small model is made to call. Pure.

Left to itself such a model tells of files that do not exist. So the grammar leaves it one call, with the words that
stand in the request, and what the call gives is the answer: it is quoted, not told anew.
"""

import re
import shlex
from typing import Any

import msgspec
from msgspec.structs import replace

from hermes.seams import ModelRequest, Unit
from hermes.types import JsonObject, Message, ModelResponse, ToolDefinition, Usage, text_of

MAX_REQUEST = 300  # characters of one paragraph: what is longer is no plain request
MAX_QUOTED = 4_000
CALL_TOKENS = 160

_FILE = r"(?:~|\.{1,2})?/?[\w@+-][\w@+./-]*\.[A-Za-z][\w]{0,7}|(?:~|\.{1,2})?/?(?:[\w@+.-]+/)+[\w@+.-]+"
_QUOTED = re.compile(r"`([^`\n]+)`")
_RUN = re.compile(
    r"^(?:please |now |can you |could you )*(?:run|execute)\b(?: the)?(?: shell)?(?: command)?:? +(.+)$", re.IGNORECASE
)
_NO_PROGRAM = frozenset(
    [
        *("the", "a", "an", "all", "my", "our", "your", "it", "this", "that", "these", "those", "them", "every"),
        *("some", "test", "tests", "again", "once", "until", "for", "in"),
    ]
)
_LISTING = re.compile(r"\b(?:list|show|what|which|see)\b[^.?!]*\b(?:files|folders?|director(?:y|ies))\b", re.IGNORECASE)
_LISTED = re.compile(rf"\b(?:in|of|under|inside)\b(?: the)?(?: folder| directory)? ({_FILE}|\w[\w-]*/)", re.IGNORECASE)
_READING = re.compile(
    r"\b(?:read|open|show|print|cat|display|explain|summari[sz]e|describe|look at|contents? of|what)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"^ *\d+\|", re.MULTILINE)  # of a line, as read_file shows it
_NAMED = re.compile(rf"(?<![\w/.-])({_FILE})(?![\w/-])")


class PlainCall(msgspec.Struct, frozen=True):
    """The one call that a request comes to."""

    tool: str
    arguments: dict[str, str]


def plain_call(text: str, tools: tuple[ToolDefinition, ...]) -> PlainCall | None:
    """What `text` plainly asks for, by means of `tools`; None where it asks for anything else."""
    words = text.strip().partition("\n\n")[0]
    offered = {tool.name for tool in tools}
    if not words or len(words) > MAX_REQUEST:
        return None
    if "terminal" in offered and (command := _command(words)):
        return PlainCall("terminal", {"command": command})
    file = _NAMED.search(words.replace("`", " ").replace('"', " ").replace("'s", " "))
    is_listing = _LISTING.search(words) is not None
    if file and "read_file" in offered and _READING.search(words) and not is_listing:
        return PlainCall("read_file", {"path": file[1]})
    if is_listing and "terminal" in offered:
        folder = _LISTED.search(words)
        return PlainCall("terminal", {"command": f"ls -- {shlex.quote(folder[1])}" if folder else "ls"})
    return None


def _command(words: str) -> str:
    """The command that `words` ask to run; empty where they name none."""
    asked = _RUN.match(words)
    if asked is None:
        return ""
    if quoted := _QUOTED.search(asked[1]):
        return quoted[1].strip()
    rest = re.split(r"(?:,? (?:and|then) (?:tell|show|say|explain|report)\b|[?!]$|\.$)", asked[1], maxsplit=1)[
        0
    ].strip()
    first = rest.split(" ", 1)[0]
    is_program = re.fullmatch(r"[./~]*[A-Za-z][\w./+-]*", first) is not None and first.lower() not in _NO_PROGRAM
    return rest if is_program else ""


def asked_call(request: ModelRequest) -> PlainCall | None:
    """The call that the newest message of `request` comes to, when it is the person's and nothing else is required."""
    said = _newest(request, 1)
    if request.options.tool_choice != "auto" or said is None or said.role != "user":
        return None
    return plain_call(text_of(said.content), request.tools)


def with_one_call(request: ModelRequest, call: PlainCall) -> ModelRequest:
    """`request` with nothing to say but `call`: one tool, whose arguments have one value each."""
    schema: JsonObject = {
        "type": "object",
        "properties": {name: {"type": "string", "enum": [value]} for name, value in call.arguments.items()},
        "required": list(call.arguments),
    }
    tools = tuple(
        ToolDefinition(tool.name, tool.description, schema) for tool in request.tools if tool.name == call.tool
    )
    options = replace(
        request.options, tool_choice="required", max_tokens=CALL_TOKENS + sum(map(len, call.arguments.values()))
    )
    return replace(request, tools=tools, options=options)


def first_call(response: ModelResponse) -> ModelResponse:
    """`response` with its first call alone: the grammar lets the same one follow."""
    calls = response.message.tool_calls
    if len(calls) < 2:
        return response
    message = replace(response.message, tool_calls=calls[:1], finish_reason="tool_calls")
    return replace(response, message=message, finish_reason="tool_calls")


def quoted_answer(request: ModelRequest, name: str) -> ModelResponse | None:
    """The answer where the newest message is the result of a plain call: the result itself, in a model's place."""
    result, called, said = _newest(request, 1), _newest(request, 2), _newest(request, 3)
    if result is None or called is None or said is None or (result.role, said.role) != ("tool", "user"):
        return None
    call = plain_call(text_of(said.content), request.tools)
    if call is None or [one.name for one in called.tool_calls] != [call.tool]:
        return None
    message = Message(role="assistant", content=_words(call, text_of(result.content)), finish_reason="stop")
    return ModelResponse(
        message=message, finish_reason="stop", usage=Usage(input_tokens=0, output_tokens=0), model=name
    )


def _newest(request: ModelRequest, place: int) -> Message | None:
    """The message of the unit at `place` from the end, where it has one."""
    if len(request.units) < place:
        return None
    unit: Unit = request.units[len(request.units) - place]
    return unit.messages[0] if len(unit.messages) == 1 else None


def _words(call: PlainCall, content: str) -> str:
    found = _decoded(content)
    asked = next(iter(call.arguments.values()))
    if found.get("error"):
        return f"`{asked}` could not be {'run' if call.tool == 'terminal' else 'read'}: {found['error']}"
    code = found.get("exit_code")
    if call.tool == "terminal":
        text = str(found.get("output", content)).strip("\n")
    else:
        text = _NUMBER.sub("", str(found.get("content", content))).strip("\n")
    if not text:
        return f"`{asked}` printed nothing{f' and ended with exit code {code}' if code else ''}."
    if len(text) > MAX_QUOTED:
        text = f"{text[:MAX_QUOTED]}\n… ({len(text) - MAX_QUOTED} characters more)"
    told = "printed" if call.tool == "terminal" else "holds"
    ticks = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text)), 3)
    ending = f"\n\nIt ended with exit code {code}." if code else ""
    return f"`{asked}` {told}:\n\n{ticks}\n{text}\n{ticks}{ending}"


def _decoded(content: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
