"""Answers the calls of one script: who may ask, for what, and how often. How requests travel is another's matter."""

import hmac
import logging
import secrets
from typing import Any

import msgspec

from hermes.errors import ToolError
from hermes.scope import TurnScope
from hermes.seams import NestedCalls
from hermes.tools.code_execution.stubs import FOREGROUND_ONLY
from hermes.tools.registry import tool_error
from hermes.tools.results import sanitise_error
from hermes.tools.validation import CallRefused
from hermes.types import text_of

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 8 << 20


class Desk:
    """One script's calls, in whatever order and however many at once they come. `made` counts those that ran."""

    def __init__(self, calls: NestedCalls, tools: tuple[str, ...], limit: int, scope: TurnScope) -> None:
        self.token = secrets.token_urlsafe(32)
        self.made = 0
        self.used: set[str] = set()
        self._calls = calls
        self._tools = tools
        self._limit = limit
        self._scope = scope  # the script's own: its calls have what it has left

    async def answer(self, request: bytes) -> bytes:
        """The result as one line: the text that the tool gave, as a JSON string. Bad requests get an error object."""
        return msgspec.json.encode(await self._answer(request))

    async def _answer(self, request: bytes) -> str:
        try:
            asked = msgspec.json.decode(request)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return tool_error(f"the request is not JSON: {error}")
        if not isinstance(asked, dict):
            return tool_error("a request is an object with tool and args")
        if not hmac.compare_digest(str(asked.get("token", "")).encode("utf-8", "replace"), self.token.encode()):
            return tool_error("the request does not carry this run's token")
        name, args = asked.get("tool"), asked.get("args", {})
        if not isinstance(name, str) or name not in self._tools:
            known = ", ".join(self._tools) or "none"
            return tool_error(f"tool {name!r} cannot be called from a script; available: {known}")
        if not isinstance(args, dict):
            return tool_error("args must be an object")
        return await self._call(name, args)

    async def _call(self, name: str, args: dict[str, Any]) -> str:
        if name == "terminal":
            args = {key: value for key, value in args.items() if key not in FOREGROUND_ONLY}
        try:
            checked = self._calls.check(name, args)
        except CallRefused as refused:
            return refused.as_json()
        except ToolError as error:
            return tool_error(sanitise_error(str(error)))
        if self.made >= self._limit:
            return tool_error(
                f"the limit of {self._limit} tool calls per script is reached; print what you have, "
                "and go on in another script"
            )
        self.made += 1
        self.used.add(name)
        return text_of(await self._calls.call(name, checked, self._scope))


def too_large() -> bytes:
    """The answer to a request beyond `MAX_REQUEST_BYTES`."""
    return msgspec.json.encode(
        tool_error(f"the request is larger than {MAX_REQUEST_BYTES} bytes; write large content in parts")
    )
