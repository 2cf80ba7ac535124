"""Answers as data: what fits becomes a value, what does not is sent back once, and then said plainly."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, Field

from hermes import AIAgent
from hermes.errors import OutputError, ProviderError, UserError
from hermes.runtime.output_schema import OutputSchema, Unfit
from hermes.state import SessionDB
from hermes.testing import Reply, ScriptedModel, calls, fault, says
from hermes.testing.fakes import MemorySink
from hermes.testing.memory_store import MemoryStore
from hermes.testing.server import ServerThread
from hermes.types import Event, PrefixBroken, StatusChanged

MakeAgent = Callable[..., AIAgent]
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}


class Person(msgspec.Struct):
    name: str
    age: int


@dataclasses.dataclass
class PersonData:
    name: str
    age: int


class PersonDict(TypedDict):
    name: str
    age: int


class PersonModel(BaseModel):
    name: str
    age: int = Field(ge=0)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeAgent]:
    made: list[AIAgent] = []

    def one(*script: Any, **keywords: Any) -> AIAgent:
        model = script[0] if isinstance(script[:1] and script[0], ScriptedModel) else ScriptedModel(*script)
        usual = {"enabled_toolsets": [], "store": MemoryStore(), "cwd": str(tmp_path)}
        made.append(AIAgent(**{"model": model, **usual, **keywords}))
        return made[-1]

    yield one
    for agent in made:
        agent.close()


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        (PERSON, {"name": "Ada", "age": 36}),
        (Person, Person("Ada", 36)),
        (PersonData, PersonData("Ada", 36)),
        (PersonDict, {"name": "Ada", "age": 36}),
        (PersonModel, PersonModel(name="Ada", age=36)),
    ],
)
def test_an_answer_that_fits_is_a_value_of_what_was_asked_for(make: MakeAgent, wanted: Any, value: object) -> None:
    assert make(says('{"name": "Ada", "age": 36}')).chat("Who?", output_schema=wanted) == value


@pytest.mark.parametrize(
    "text", ['```json\n{"name": "Ada", "age": 36}\n```', 'Here it is:\n```\n{"name": "Ada", "age": 36}\n```\nDone.']
)
def test_one_block_of_code_around_the_value_is_no_matter(make: MakeAgent, text: str) -> None:
    assert make(says(text)).chat("Who?", output_schema=Person) == Person("Ada", 36)


def test_the_result_has_the_value_beside_the_words(make: MakeAgent) -> None:
    result = make(says(' {"name": "Ada", "age": 36}')).run_conversation("Who?", output_schema=PERSON)
    assert (result["output"], result["final_response"]) == ({"name": "Ada", "age": 36}, ' {"name": "Ada", "age": 36}')
    assert result["completed"]


def test_without_a_schema_the_result_has_no_value(make: MakeAgent) -> None:
    assert "output" not in make(says("{}")).run_conversation("Who?")


def test_what_does_not_fit_is_sent_back_once_with_what_is_wrong(make: MakeAgent, tmp_path: Path) -> None:
    model = ScriptedModel(says('{"name": "Ada", "age": -1}'), says('{"name": "Ada", "age": 36}'))
    sink = MemorySink()
    agent = AIAgent(model=model, session_db=SessionDB(tmp_path / "s.db"), enabled_toolsets=[], sink=sink)
    assert agent.chat("Who?", output_schema=PERSON) == {"name": "Ada", "age": 36}

    first, second = (one.units[-1].context for one in model.full_requests)
    assert json.dumps(PERSON, separators=(",", ":")) in first
    assert second.startswith(first)
    assert '{"name": "Ada", "age": -1}' in second
    assert "- age: -1 is less than the minimum of 0" in second
    assert [event.kind for event in sink.events if isinstance(event, StatusChanged)] == ["retry"]
    # The transcript holds the question and the answer that counted, not the schema nor the first try.
    with SessionDB(tmp_path / "s.db") as db:
        stored = [(row["role"], row["content"]) for row in db.get_messages(agent.session_id)]
    assert stored == [("user", "Who?"), ("assistant", '{"name": "Ada", "age": 36}')]
    agent.close()


def test_a_second_misfit_is_an_error_that_keeps_the_answer(make: MakeAgent) -> None:
    with pytest.raises(OutputError, match="does not fit the output schema: it is not JSON alone") as raised:
        make(says("Ada"), says("Ada, 36")).chat("Who?", output_schema=Person)
    assert raised.value.answer == "Ada, 36"
    assert raised.value.result["turn_exit_reason"] == "output_mismatch"


def test_a_misfit_in_a_conversation_is_a_failed_turn_without_a_value(make: MakeAgent) -> None:
    result = make(says("Ada"), says("Ada")).run_conversation("Who?", output_schema=Person)
    assert "output" not in result
    assert (result["failed"], result["completed"], result["api_calls"]) == (True, False, 2)
    assert result["error_reason"] == "output_mismatch"


def test_the_session_goes_on_after_a_misfit(make: MakeAgent) -> None:
    agent = make(says("Ada"), says("Ada"), says("Fine."))
    with pytest.raises(OutputError):
        agent.chat("Who?", output_schema=Person)
    assert agent.chat("Never mind.") == "Fine."


def test_a_turn_without_an_answer_says_why_there_is_no_value(make: MakeAgent) -> None:
    refused = ProviderError("no such key", reason="auth")
    with pytest.raises(OutputError, match="no such key"):
        make(refused).chat("Who?", output_schema=Person)


async def test_an_interrupted_turn_has_no_value(make: MakeAgent) -> None:
    def stop(_request: object) -> Reply:
        agent.interrupt()
        return fault("stall")

    agent = make(stop)
    with pytest.raises(OutputError, match="interrupted_by_user"):
        await agent.achat("Who?", output_schema=Person)


def test_tools_are_called_before_the_value_is_given(make: MakeAgent, tmp_path: Path) -> None:
    (tmp_path / "who.txt").write_text("Ada, 36\n")
    model = ScriptedModel(calls("read_file", path="who.txt"), says('{"name": "Ada", "age": 36}'))
    assert make(model, enabled_toolsets=["file"]).chat("Who?", output_schema=Person) == Person("Ada", 36)


def test_the_last_call_of_a_turn_is_for_the_value(make: MakeAgent, tmp_path: Path) -> None:
    (tmp_path / "who.txt").write_text("Ada, 36\n")
    model = ScriptedModel(calls("read_file", path="who.txt"), says('{"name": "Ada", "age": 36}'))
    agent = make(model, enabled_toolsets=["file"], max_iterations=1)
    assert agent.chat("Who?", output_schema=Person) == Person("Ada", 36)
    assert "give your answer now" in model.full_requests[1].units[-1].context


def test_an_agent_has_a_schema_for_all_its_turns(make: MakeAgent) -> None:
    agent = make(says('{"name": "Ada", "age": 36}'), says("[1]"), says("Ada"), says("Ada"), output_schema=Person)
    assert agent.run_conversation("Who?")["output"] == Person("Ada", 36)
    assert agent.chat("How many?", output_schema=list[int]) == [1]
    with pytest.raises(OutputError):
        agent.chat("Who?")


def test_a_secret_in_the_answer_is_no_part_of_the_value(make: MakeAgent) -> None:
    key = "sk-ant-api03-" + "Ab1" * 30
    value = make(says(json.dumps({"name": key, "age": 1}))).chat("Who?", output_schema=PERSON)
    assert key not in json.dumps(value)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (3, "none of them"),
        ("text", "none of them"),
        (object, "none of them"),
        ({"type": "nonsense"}, "not valid JSON Schema"),
        ({"$ref": "https://example.com/schema.json"}, "outside itself"),
        ({"enum": [{1, 2}]}, "not valid JSON Schema"),
    ],
)
def test_what_is_no_schema_is_refused_before_anything_is_asked(make: MakeAgent, wanted: Any, why: str) -> None:
    agent = make()
    with pytest.raises(UserError, match=why):
        agent.chat("Who?", output_schema=wanted)
    with pytest.raises(UserError, match=why):
        AIAgent(output_schema=wanted)


@pytest.mark.parametrize(
    "text",
    ["", "[" * 100_000, '{"name": "\\ud800", "age": 1}', "NaN", "{'name': 'Ada'}", "```json\n1\n```\n```json\n2\n```"],
)
def test_hostile_answers_are_misfits_and_nothing_worse(text: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        OutputSchema.of(PERSON).read(text)


@pytest.mark.parametrize(
    ("schema", "text", "why"),
    [
        ({"items": {"$ref": "#"}}, "[" * 900 + "]" * 900, "nested too deeply"),
        ({"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "[" + "{}," * 1_000_000 + "1]", "anyOf"),
        ({"type": "string"}, "```\n" + " " * 1_000_000 + "x", "not JSON"),
    ],
    ids=["deep", "a million faults", "a block of blanks without an end"],
)
def test_answers_that_are_laborious_to_check_are_misfits_at_once(schema: Any, text: str, why: str) -> None:
    with pytest.raises(Unfit, match=why):
        OutputSchema.of(schema).read(text)


# -- a provider that holds answers to a schema by itself -------------------------------------------------------------


def asked_formats(*schemas: Any, agent_keywords: dict[str, Any], replies: list[Any]) -> tuple[list[Any], list[Event]]:
    """What each request of a session asks its provider for, a schema or None for each turn; and all events."""
    sink = MemorySink()
    with ServerThread(replies) as server:
        agent = AIAgent(model="m", base_url=server.base_url, store=MemoryStore(), sink=sink, **agent_keywords)
        for schema in schemas:
            agent.run_conversation("Who?", output_schema=schema)
        agent.close()
        return [request.json.get("response_format") for request in server.requests], sink.events


def broken(events: list[Event]) -> list[str]:
    return [event.reason for event in events if isinstance(event, PrefixBroken)]


def test_a_session_that_begins_with_a_schema_asks_the_provider_for_it() -> None:
    answer = says('{"name": "Ada", "age": 36}')
    found, events = asked_formats(
        PERSON, PERSON, None, agent_keywords={"enabled_toolsets": []}, replies=[answer, answer, says("Bye.")]
    )
    first, second, third = found
    assert first == second
    assert first["json_schema"]["strict"] is True
    assert first["json_schema"]["schema"]["additionalProperties"] is False
    assert "minimum" not in json.dumps(first)  # which is checked here
    assert third is None
    assert broken(events) == ["output_schema"]


def test_a_schema_in_the_middle_of_a_session_leaves_what_is_cached_alone() -> None:
    found, events = asked_formats(
        None, PERSON, agent_keywords={"enabled_toolsets": []}, replies=[says("Hi."), says('{"name": "A", "age": 1}')]
    )
    assert (found, broken(events)) == ([None, None], [])


def test_where_a_schema_would_keep_the_model_from_its_tools_it_is_told_in_words() -> None:
    found, _ = asked_formats(PERSON, agent_keywords={}, replies=[says('{"name": "A", "age": 1}')])
    assert found == [None]


def test_a_provider_that_refuses_the_schema_is_asked_in_words() -> None:
    refusal = fault("refused", text="response_format json_schema is not supported by this model")
    found, _ = asked_formats(
        PERSON, agent_keywords={"enabled_toolsets": []}, replies=[refusal, says('{"name": "A", "age": 1}')]
    )
    assert found[0] is not None
    assert found[1] is None
