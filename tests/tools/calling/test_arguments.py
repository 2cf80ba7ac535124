"""A struct of arguments is the schema a model sees."""

from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct

from hermes.errors import ToolError
from hermes.tools.calling.arguments import parse_args, schema_of


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing."""

    id: str
    title: str = ""
    state: Literal["open", "done"] = "open"


class Save(Struct, frozen=True, forbid_unknown_fields=True):
    """Save things.

    All of them.
    """

    path: Annotated[str, Meta(description="Where.")]
    items: list[Item] = []
    limit: Annotated[int, Meta(ge=1, le=9)] = 5


def test_schema_is_inlined_titleless_and_in_field_order() -> None:
    assert schema_of("save", Save) == {
        "name": "save",
        "description": "Save things.\n\nAll of them.",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where."},
                "items": {
                    "type": "array",
                    "items": {
                        "description": "One thing.",
                        "type": "object",
                        "properties": {
                            "id": {"type": "string"},
                            "title": {"type": "string", "default": ""},
                            "state": {"type": "string", "enum": ["done", "open"], "default": "open"},
                        },
                        "required": ["id"],
                        "additionalProperties": False,
                    },
                    "default": [],
                },
                "limit": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    }


def test_bad_arguments_name_the_field() -> None:
    assert parse_args({"path": "x"}, Save) == Save(path="x")
    with pytest.raises(ToolError, match=r"\$\.limit"):
        parse_args({"path": "x", "limit": 99}, Save)
