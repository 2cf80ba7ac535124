"""The lean profile, without a model: what is left of tools and prompts."""

from hermes.models.box.lean import (
    MAX_STRING,
    SYSTEM,
    lean_request,
    lean_tools,
    with_call_opened,
    with_readable_calls,
    without_cut_call,
)
from hermes.seams import ModelRequest, RequestOptions, Unit
from hermes.types import FinishReason, Message, ModelResponse, ToolCall, ToolDefinition, Usage

READ = ToolDefinition(
    "read_file",
    "Read a text file of the workspace. Large files are cut; go on with offset.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Relative to the workspace."},
            "offset": {"type": "integer", "description": "First line."},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


def tool(name: str) -> ToolDefinition:
    return ToolDefinition(name, "Does something.", {"type": "object", "properties": {}})


def request(**options: object) -> ModelRequest:
    units = (Unit([Message(role="user", content="hi")]),)
    return ModelRequest(system="long " * 500, tools=(READ,), units=units, options=RequestOptions(**options))  # type: ignore[arg-type]  # by name


def test_a_tool_keeps_what_it_must_be_given_and_every_string_a_bound() -> None:
    assert lean_tools((READ,)) == (
        ToolDefinition(
            "read_file",
            "Read a text file of the workspace.",
            {
                "type": "object",
                "properties": {"path": {"type": "string", "maxLength": MAX_STRING}},
                "required": ["path"],
            },
        ),
    )


def test_the_three_most_useful_tools_are_offered() -> None:
    offered = tuple(tool(name) for name in ("todo", "terminal", "patch", "search_files", "web", "read_file"))
    assert [one.name for one in lean_tools(offered)] == ["read_file", "search_files", "terminal"]
    assert [one.name for one in lean_tools((tool("a"), tool("terminal")))] == ["terminal", "a"]


def test_strings_deep_inside_are_bounded_too() -> None:
    schema = {
        "type": "object",
        "properties": {
            "edits": {
                "type": "array",
                "items": {"type": "object", "properties": {"old": {"type": "string"}, "kind": {"enum": ["a"]}}},
            }
        },
        "required": ["edits"],
    }
    (lean,) = lean_tools((ToolDefinition("edit", "Edit.", schema),))
    edits = lean.parameters["properties"]["edits"]
    assert edits["maxItems"] == 4
    assert edits["items"]["properties"] == {"old": {"type": "string", "maxLength": MAX_STRING}, "kind": {"enum": ["a"]}}


def test_the_request_gets_a_short_prompt_and_a_bounded_answer() -> None:
    lean = lean_request(request(), lean_tools((READ,)))
    assert lean.system == SYSTEM
    assert lean.options.max_tokens == 256
    assert lean_request(request(max_tokens=40), ()).options.max_tokens == 40


def test_a_required_call_is_begun_and_a_named_one_is_offered_alone() -> None:
    plain = request()
    assert with_call_opened(plain) is plain
    opened = with_call_opened(request(tool_choice="read_file"))
    assert opened.options.tool_choice == "required"
    assert opened.tools == (READ,)
    assert opened.units[-1].messages[0].content == "<tool_call>\n"


def answer(finish: FinishReason, *arguments: str) -> ModelResponse:
    calls = tuple(ToolCall(f"c{place}", "read_file", text) for place, text in enumerate(arguments))
    message = Message(role="assistant", content="", tool_calls=calls, finish_reason=finish)
    return ModelResponse(message=message, finish_reason=finish, usage=Usage(), model="m")


def test_a_call_cut_off_behind_whole_ones_is_dropped() -> None:
    whole, cut = '{"path": "a"}', '{"path": "b'
    assert without_cut_call(answer("length", whole, cut)) == answer("tool_calls", whole)
    for unchanged in (
        answer("length", cut),
        answer("length", whole, whole),
        answer("tool_calls", whole),
        answer("stop"),
    ):
        assert without_cut_call(unchanged) is unchanged


def test_a_past_call_that_cannot_be_read_loses_its_arguments_and_no_other_does() -> None:
    past = tuple(Unit([answer("stop", text).message]) for text in ('{"path": "a"}', '{"path": "b'))
    sound, broken = (ModelRequest(system="", tools=(), units=units) for units in (past[:1], past))
    assert with_readable_calls(sound) is sound
    mended = with_readable_calls(broken)
    assert mended.units[0] is past[0]
    assert [call.arguments for call in mended.units[1].messages[0].tool_calls] == ["{}"]
