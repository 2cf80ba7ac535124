"""An answer as JSON that fits a schema: asked for in words, checked here, and asked for again while it does not fit.

No provider's own form is used: it differs from one to the next, and none of them is held by every model.
"""

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonschema_rs

from hermes.errors import UserError
from hermes.surfaces.cli.chat.turn_words import exit_code
from hermes.surfaces.cli.exit_codes import Exit

MORE_TRIES = 2
MOST_BYTES = 100_000
_SHOWN_CHARS = 300
_ASKED = (
    "Your final answer must be one JSON value and nothing else (no words around it, no code fence). "
    "It must fit this JSON Schema:"
)
_FENCED = re.compile(r"\A```[\w-]*\n(.*)\n```\Z", re.DOTALL)


class OutputSchema:
    """What the answer must look like."""

    def __init__(self, file: str) -> None:
        path = Path(file).expanduser()
        try:
            raw = path.read_bytes()
            schema = json.loads(raw)
        except OSError as error:
            raise UserError(f"--output-schema {file!r} cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"--output-schema {file!r} is no JSON: {error}") from error
        if len(raw) > MOST_BYTES or not isinstance(schema, dict):
            raise UserError(f"--output-schema {file!r} must be an object with a JSON Schema of at most 100 kB")
        try:
            self._validator: Any = jsonschema_rs.validator_for(schema, retriever=_no_network)
        except (ValueError, TypeError, jsonschema_rs.ValidationError) as error:
            raise UserError(f"--output-schema {file!r} is no JSON Schema: {str(error).splitlines()[0]}") from error
        self.words = f"{_ASKED}\n{json.dumps(schema, ensure_ascii=False)}"

    def misfit(self, text: str) -> str:
        """Why `text` is not what was asked for; empty when it is."""
        try:
            value = parsed(text)
        except (ValueError, RecursionError) as error:
            return f"it is no JSON ({error})"
        found = next(iter(self._validator.iter_errors(value)), None)
        if found is None:
            return ""
        place = "/".join(str(part) for part in found.instance_path)
        return f"{f'at {place}: ' if place else ''}{found.message.splitlines()[0][:_SHOWN_CHARS]}"

    async def asked_until_it_fits(
        self, result: dict[str, Any], ask: Callable[[str], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """`result` with the checked value as `output` and in its words, or with `misfit`: why the last try is none."""
        for left in range(MORE_TRIES, -1, -1):
            if exit_code(result) is not Exit.ANSWERED:
                return result
            text = str(result.get("final_response") or "")
            why = self.misfit(text)
            if not why:
                value = parsed(text)
                return {**result, "output": value, "final_response": json.dumps(value, ensure_ascii=False)}
            if left:
                result = await ask(f"That answer does not fit the schema: {why}. Answer again with the JSON alone.")
        return {**result, "misfit": why}


def parsed(text: str) -> Any:
    """The JSON of an answer, also where a fence stands around it."""
    fenced = _FENCED.match(text.strip())
    return json.loads(fenced[1] if fenced else text, parse_constant=_refuse)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _no_network(uri: str) -> Any:
    raise ValueError(f"the schema refers to {uri!r}, outside itself")
