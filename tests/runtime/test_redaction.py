"""What leaves the runtime passes one redactor, whole or in pieces."""

import ast
import random
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
from msgspec import Struct

import hermes
from hermes.redact import Redactor, StreamedText
from hermes.runtime.redaction import CleanSink
from hermes.testing.fakes import MemorySink
from hermes.types import (
    CallStarted,
    Commentary,
    Event,
    MinorEvent,
    ReasoningDelta,
    StatusChanged,
    TextDelta,
    TextPart,
    ToolCall,
)

SOURCE = Path(hermes.__file__).parent
SECRETS = ["Zq7hd83kJd92Lq0sXmW1", "p&ss w=rd+Qz81kd", 'pä"ss\\wörd/Zq7x12x']
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEabcd1234abcd1234\nabcdefgh12345678\n-----END RSA PRIVATE KEY-----"
TEXTS = [
    *(f"hello {secret} world, and more" for secret in SECRETS),
    f"the key is sk-{'aB3' * 12} ok",
    "api_key = 'Xy12Zw34Qp56' fine",
    "Authorization: Bearer abcdef0123456789ABCDEF then",
    "a\n" + "\n".join(SECRETS[0][at : at + 5] for at in range(0, 20, 5)) + "\nend",
    f"{KEY} tail",
    "日本語のテキスト and plain words without anything to hide",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_in_pieces_comes_out_as_the_whole_one_would(text: str) -> None:
    whole = Redactor(SECRETS).redact(text)
    for seed in range(100):
        dice, at, out = random.Random(seed), 0, []
        streamed = StreamedText(Redactor(SECRETS))
        while at < len(text):
            size = dice.choice((1, 1, 2, 3, 5, 9))
            out.append(streamed.add(text[at : at + size]))
            at += size
        assert "".join([*out, streamed.rest()]) == whole


def test_a_pause_at_any_place_gives_no_registered_value_away() -> None:
    wrapped = "\n".join(SECRETS[1][at : at + 7] for at in range(0, len(SECRETS[1]), 7))
    text = f"one {wrapped}{SECRETS[0]}\n{SECRETS[1]}{SECRETS[2]} two\n{SECRETS[0][:9]}{SECRETS[1]} end"
    for seed in range(200):
        dice, at, out = random.Random(seed), 0, []
        streamed = StreamedText(Redactor(SECRETS))
        while at < len(text):
            size = dice.choice((1, 2, 5, 17, 40))
            out.append(streamed.add(text[at : at + size]))
            out.append(streamed.pause() if dice.random() < 0.4 else "")
            at += size
        shown = "".join([*out, streamed.rest()]).replace("\n", "")
        assert not [secret for secret in SECRETS if secret in shown], seed


def test_only_the_word_being_written_waits() -> None:
    streamed = StreamedText(Redactor(SECRETS))
    assert [streamed.add(piece) for piece in ("Hel", "lo wor", "ld, ", "it is ")] == ["", "Hello ", "world, ", "it is "]


def test_a_word_without_an_end_does_not_wait_for_ever() -> None:
    streamed = StreamedText(Redactor(SECRETS))
    assert len("".join(streamed.add("=" * 100) for _ in range(100))) > 5000


def _passed(*events: Event) -> list[Event]:
    sink = MemorySink()
    clean = CleanSink(sink, Redactor(SECRETS))
    for event in events:
        clean.emit(event)
    return sink.events


def test_no_surface_sees_a_secret_that_was_split_over_deltas() -> None:
    secret = SECRETS[0]
    events = _passed(
        ReasoningDelta("It is " + secret[:8]),
        ReasoningDelta(secret[8:]),
        TextDelta("The value: " + secret[:5]),
        TextDelta(secret[5:12]),
        TextDelta(secret[12:] + "."),
        Commentary(f"The value: {secret}.", already_streamed=True),
    )
    marker = Redactor(SECRETS).redact(secret)
    said = [event.text for event in events if isinstance(event, TextDelta)]
    thought = [event.text for event in events if isinstance(event, ReasoningDelta)]
    assert ("".join(said), "".join(thought)) == (f"The value: {marker}.", f"It is {marker}")
    assert isinstance(events[-1], Commentary)


def test_the_arguments_of_a_call_are_shown_without_secrets() -> None:
    (event,) = _passed(CallStarted(ToolCall("1", "terminal", f'{{"command": "echo {SECRETS[0]}"}}'), {"x": SECRETS[0]}))
    assert SECRETS[0] not in repr(event)


def _filled(kind: Any) -> Any:
    """A value of `kind` with a secret in every place that can hold a text."""
    if get_origin(kind) in (Union, UnionType):
        kind = get_args(kind)[0]
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind(**{field.name: _filled(field.type) for field in msgspec.structs.fields(kind)})
    if get_origin(kind) is tuple:
        return (_filled(get_args(kind)[0]),)
    if get_origin(kind) is dict:
        return {"deep": [{"down": SECRETS[0]}]}
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    return {str: SECRETS[0], int: 1, float: 1.0, bool: True, Any: SECRETS[0]}[kind]


class Whispered(MinorEvent, frozen=True, gc=False, tag="whispered"):
    """An event that nobody has thought of yet."""

    session_id: str
    words: tuple[str, ...]
    inside: TextPart


@pytest.mark.parametrize("kind", [*get_args(Event), Whispered], ids=lambda kind: kind.__name__)
def test_every_text_field_of_every_event_is_redacted(kind: type[Struct]) -> None:
    shown = _passed(_filled(kind), StatusChanged("warning", "what waits for more words comes out"))
    assert len(shown) == 2
    assert SECRETS[0] not in repr(_without_ids(msgspec.to_builtins(shown)))


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_ids(item) for name, item in value.items() if name != "id" and not name.endswith("_id")}
    return [_without_ids(item) for item in value] if isinstance(value, list | tuple) else value


def test_an_event_without_secrets_is_passed_on_as_it_is() -> None:
    event = CallStarted(ToolCall("1", "terminal", "{}"), {"command": "ls"})
    assert _passed(event)[0] is event


# Where content leaves, and what must stand in the call that makes the sink: the redactor, or a function of it.
SINKS = {
    "RedactingStore": "redactor",
    "CleanSink": "redactor",
    "clean_content": "redactor",
    "FileShelf": "redact",
    "KeptHistory": "redact",
    "_Formatter": "redact",
}


HANDLERS = {"FileHandler", "StreamHandler", "RotatingFileHandler", "SocketHandler", "SysLogHandler", "basicConfig"}


def _calls(wanted: set[str]) -> list[tuple[str, str, str]]:
    """(name, source, file) of every call of the package to one of `wanted`."""
    found = []
    for file in SOURCE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if not any(name in text for name in wanted):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if name in wanted:
                    found.append((name, ast.unparse(node), str(file.relative_to(SOURCE))))
    return found


def test_every_sink_is_given_the_redactor_and_no_other_sink_is_made() -> None:
    calls = _calls({*SINKS, *HANDLERS, "addHandler"})
    for name, must_hold in SINKS.items():
        made = [(source, file) for called, source, file in calls if called == name and not file.startswith("testing/")]
        assert made, f"{name} is not made anywhere; the table is out of date"
        assert [file for source, file in made if must_hold not in source] == []
    assert {file for called, _, file in calls if called in HANDLERS} == set(), "logs are written in host/logs.py"
    assert {file for called, _, file in calls if called == "addHandler"} <= {"host/logs.py"}
