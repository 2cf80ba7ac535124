"""`hermes chat -q --output-schema FILE`: only JSON on stdout, and an exit code that says whether it fits."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.surfaces.cli.exit_codes import Exit
from hermes.testing.replies import says
from hermes.testing.server import ScriptedServer, ServerThread

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture
def schema(tmp_path: Path) -> str:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    return str(file)


def model(server: ScriptedServer) -> list[str]:
    return ["--model", "scripted", "--base-url", server.base_url]


def test_stdout_is_the_json_and_nothing_else(run: Run, schema: str) -> None:
    with ServerThread([says('It is:\n```json\n{"n": 4}\n```')]) as server:
        done = run("chat", "-q", "How many?", "--output-schema", schema, *model(server))
    assert (done.stdout, done.stderr, done.returncode) == ('{"n":4}\n', "", Exit.ANSWERED)
    asked = server.requests[0].json["messages"][-1]["content"]
    assert asked.startswith("How many?\n\n")
    assert json.dumps(SCHEMA, separators=(",", ":")) in asked


def test_what_is_piped_is_a_question_too(run: Run, schema: str) -> None:
    with ServerThread([says('{"n": 4}')]) as server:
        done = run("chat", "--output-schema", schema, *model(server), stdin="How many?")
    assert (done.stdout, done.returncode) == ('{"n":4}\n', Exit.ANSWERED)


def test_an_answer_that_never_fits_prints_nothing_and_fails(run: Run, schema: str) -> None:
    with ServerThread([says('{"n": "four"}'), says("four")]) as server:
        done = run("chat", "-q", "How many?", "--output-schema", schema, *model(server))
    assert (done.stdout, done.returncode) == ("", Exit.MISFIT)
    assert "does not fit the output schema" in done.stderr
    assert "hermes chat --resume" in done.stderr


def test_in_events_the_value_is_in_the_result(run: Run, schema: str) -> None:
    with ServerThread([says('{"n": 4}')]) as server:
        done = run("chat", "-q", "How many?", "--json", "--output-schema", schema, *model(server))
    assert json.loads(done.stdout.splitlines()[-1])["output"] == {"n": 4}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not JSON"),
        ("[]", "is no JSON Schema"),
        ('{"type": "nonsense"}', "not valid JSON Schema"),
    ],
)
def test_a_file_that_is_no_schema_is_refused_before_anything_is_asked(
    run: Run, tmp_path: Path, text: str | None, why: str
) -> None:
    file = tmp_path / "bad.json"
    if text is not None:
        file.write_text(text)
    with ServerThread([]) as server:
        done = run("chat", "-q", "How many?", "--output-schema", str(file), *model(server))
    assert (done.stdout, done.returncode) == ("", Exit.FAILED)
    assert why in done.stderr
    assert server.requests == []
