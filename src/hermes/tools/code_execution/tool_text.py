"""What a model reads about `execute_code`. Loaded whenever tools are offered, so it imports nothing heavy."""

import os
import socket

from hermes.tools.code_execution.script_limits import ScriptLimits
from hermes.tools.code_execution.stubs import callable_among, described, import_example
from hermes.types import JsonObject


def has_unix_sockets() -> bool:
    """Whether a script could reach the runtime here."""
    return os.name == "posix" and hasattr(socket, "AF_UNIX")


def refined(schema: JsonObject, offered: frozenset[str]) -> JsonObject:
    """The schema that names the tools which are really there."""
    tools = callable_among(offered)
    example = f"{import_example(tools)}\n…\nprint(result)" if tools else "print(sum(range(10)))"
    parameters = {
        **schema["parameters"],
        "properties": {"code": {"type": "string", "description": f"The script. Example: {example!r}"}},
    }
    return {**schema, "description": _description(tools), "parameters": parameters}


_PURPOSE = (
    "Run a Python script that calls tools as functions. Only what it prints comes back; what it works through on the "
    "way never enters the conversation."
)
_WHEN = (
    "Use it for three or more calls with logic between them, to filter or join large results, to branch on what a call "
    "gives back, or to loop. Do not use it for a single call, or where you must read a result whole before you can "
    "decide: call the tool itself then."
)


def _description(tools: tuple[str, ...]) -> str:
    limits = ScriptLimits()
    parts = [_PURPOSE, _WHEN]
    if tools:
        parts.append(f"In the script: `{import_example(tools)}`. Available, each returning a dict:\n{described(tools)}")
    else:
        parts.append("No tool of this session can be called from a script; it is plain Python.")
    parts.append("Also: json_parse(text), shell_quote(s), retry(fn, max_attempts=3, delay=2).")
    if "terminal" in tools:
        parts.append("terminal runs in the foreground only.")
    parts.append(
        f"Limits: {limits.timeout_s:g} s, {limits.max_calls} tool calls, 50 KB of stdout (the middle is cut), 10 KB of "
        "stderr; the user may have set others. The script starts in the session's working directory with the project's "
        "Python (mode strict: in an empty folder with the runtime's own). Threads may call tools at once. Print the "
        "final result."
    )
    return "\n\n".join(parts)
