"""`hermes chat -q … --output-schema FILE`: the answer as JSON that fits the schema in the file, and nothing else."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from click import UsageError
from msgspec.structs import replace

from hermes.errors import UserError
from hermes.runtime.output_schema import OutputSchema
from hermes.surfaces.cli.chat import is_terminal
from hermes.surfaces.cli.chat.run_options import Wish
from hermes.surfaces.cli.output import Output

EXAMPLE = '{"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}'


def with_schema(wish: Wish, name: str) -> Wish:
    """`wish` with the schema in the file of that name; one that cannot be used is refused before anything is asked."""
    if wish.question is None and is_terminal(sys.stdin):
        raise UsageError("--output-schema is for a question: hermes chat -q QUESTION --output-schema FILE")
    try:
        schema = msgspec.json.decode(Path(name).expanduser().read_bytes())
    except OSError as error:
        raise UserError(f"the file of --output-schema, {name!r}, cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{name!r} of --output-schema is not JSON ({error}); write an object like {EXAMPLE}") from error
    if not isinstance(schema, dict):
        raise UserError(f"{name!r} of --output-schema is no JSON Schema; write an object like {EXAMPLE}")
    return replace(wish, output_schema=OutputSchema.of(schema))


def printed(out: Output, result: Mapping[str, Any]) -> str:
    """Print what fits the schema; the text that is left to show, which is none."""
    if "output" in result:
        encoded = msgspec.json.encode(result["output"])
        out.line((msgspec.json.format(encoded, indent=2) if out.is_terminal else encoded).decode())
    return ""
