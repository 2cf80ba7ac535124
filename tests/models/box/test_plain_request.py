"""What plainly asks for a listing, a file or a command becomes that call, and is answered with what it gave."""

import json

import pytest

from hermes.models.box.plain_request import asked_call, first_call, plain_call, quoted_answer, with_one_call
from hermes.seams import ModelRequest, RequestOptions, Unit
from hermes.types import Message, ModelResponse, ToolCall, ToolDefinition, text_of

TOOLS = tuple(ToolDefinition(name, "x", {"type": "object"}) for name in ("read_file", "search_files", "terminal"))


def request(*messages: Message, choice: str = "auto") -> ModelRequest:
    units = tuple(Unit([message]) for message in messages)
    return ModelRequest(system="", tools=TOOLS, units=units, options=RequestOptions(tool_choice=choice))


def user(text: str) -> Message:
    return Message(role="user", content=text)


@pytest.mark.parametrize(
    ("text", "tool", "value"),
    [
        ("List the files in this folder.", "terminal", "ls"),
        ("What files are here?", "terminal", "ls"),
        ("show me the files in src/hermes", "terminal", "ls -- src/hermes"),
        ("Which files are in docs/?", "terminal", "ls -- docs/"),
        ("Run the command: ls -la", "terminal", "ls -la"),
        ("please run `git status` for me", "terminal", "git status"),
        ("Run python3 --version.", "terminal", "python3 --version"),
        ("run ls and tell me what you see", "terminal", "ls"),
        ("Read calc.py and tell me what the function does", "read_file", "calc.py"),
        ("What is in README.md?", "read_file", "README.md"),
        ("Explain ./src/main.rs", "read_file", "./src/main.rs"),
        ("what does `calc.py` do?", "read_file", "calc.py"),
        ("Show me the contents of ~/notes/todo.txt", "read_file", "~/notes/todo.txt"),
    ],
)
def test_a_plain_request_is_one_call_with_its_own_words(text: str, tool: str, value: str) -> None:
    call = plain_call(text, TOOLS)
    assert call is not None
    assert (call.tool, list(call.arguments.values())) == (tool, [value])


@pytest.mark.parametrize(
    "text",
    [
        "Say hello",
        "What is 17 * 3?",
        "Run the tests",
        "What does this project do?",
        "Write a file called x.py",
        "Tell me about version 2.0",
        "Which line did you change?",
        "Run",
        "",
        "Read " + "x" * 400 + ".py",
    ],
)
def test_anything_else_is_left_to_the_model(text: str) -> None:
    assert plain_call(text, TOOLS) is None


def test_what_is_piped_in_below_the_question_is_not_looked_at() -> None:
    assert plain_call("Say hello\n\nread calc.py", TOOLS) is None


def test_a_tool_that_is_not_offered_is_not_called() -> None:
    assert plain_call("Read calc.py", TOOLS[2:]) is None
    assert plain_call("List the files", TOOLS[:1]) is None


@pytest.mark.parametrize("choice", ["none", "required", "terminal"])
def test_only_where_nothing_else_is_required(choice: str) -> None:
    assert asked_call(request(user("Run ls"), choice=choice)) is None
    assert asked_call(request(user("Run ls"), Message(role="assistant", content="No."))) is None
    assert asked_call(request(user("Run ls"))) is not None


def test_the_grammar_leaves_one_call() -> None:
    asked = request(user("Read calc.py"))
    call = asked_call(asked)
    assert call is not None
    held = with_one_call(asked, call)
    assert [tool.name for tool in held.tools] == ["read_file"]
    assert held.tools[0].parameters["properties"] == {"path": {"type": "string", "enum": ["calc.py"]}}
    assert held.options.tool_choice == "required"


def test_the_same_call_again_is_dropped() -> None:
    calls = tuple(ToolCall(id=str(number), name="terminal", arguments='{"command":"ls"}') for number in range(3))
    message = Message(role="assistant", content="", tool_calls=calls)
    kept = first_call(ModelResponse(message=message, finish_reason="length"))
    assert [call.id for call in kept.message.tool_calls] == ["0"]
    assert kept.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("question", "name", "result", "answer"),
    [
        ("List the files", "terminal", {"output": "a\nb\n", "exit_code": 0}, "`ls` printed:\n\n```\na\nb\n```"),
        (
            "Run false",
            "terminal",
            {"output": "", "exit_code": 1},
            "`false` printed nothing and ended with exit code 1.",
        ),
        ("Read a.py", "read_file", {"content": "1|x = 1\n2|\n"}, "`a.py` holds:\n\n```\nx = 1\n```"),
        ("Read a.py", "read_file", {"error": "no file 'a.py'"}, "`a.py` could not be read: no file 'a.py'"),
        ("Read a.md", "read_file", {"content": "1|```\n"}, "`a.md` holds:\n\n````\n```\n````"),
    ],
)
def test_the_answer_is_what_the_call_gave(question: str, name: str, result: object, answer: str) -> None:
    call = ToolCall(id="1", name=name, arguments="{}")
    told = quoted_answer(
        request(
            user(question),
            Message(role="assistant", content="", tool_calls=(call,)),
            Message(role="tool", content=json.dumps(result), tool_call_id="1"),
        ),
        "m",
    )
    assert told is not None
    assert text_of(told.message.content) == answer


def test_results_of_other_calls_are_the_models_to_tell() -> None:
    call = ToolCall(id="1", name="search_files", arguments="{}")
    called = Message(role="assistant", content="", tool_calls=(call,))
    result = Message(role="tool", content="{}", tool_call_id="1")
    assert quoted_answer(request(user("Say hello"), called, result), "m") is None
    assert quoted_answer(request(user("Run ls"), called, result), "m") is None
    assert quoted_answer(request(result), "m") is None
