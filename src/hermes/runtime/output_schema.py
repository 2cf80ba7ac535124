"""Answers as data: an answer is checked against a schema, the model is told once what does not fit, then it stands.

What is wanted is said to the model beside the question, as the context of that one turn: the system prompt, the tools
and all messages before it stay as they are. Providers that hold a model to a schema by themselves are asked to do so
only where nothing they have cached would be lost by it (`want_data`); the check here is the same in any case.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.errors import UserError
from hermes.runtime.outcome import Ending
from hermes.tools.calling.validation import CallRefused, compile_schema, misfits
from hermes.types import JsonObject, PrefixBroken, StatusChanged

if TYPE_CHECKING:
    from hermes.runtime.turn import Turn

MISMATCH = "output_mismatch"  # the exit reason of a turn whose answer does not fit
MAX_SCHEMA_CHARS = 200_000
_SHOWN_PROBLEMS = 10
_SHOWN_ANSWER = 4_000
_FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)  # JSON takes blanks at its end
KINDS = "a JSON Schema (a dict), or a class: a msgspec Struct, a dataclass, a TypedDict or a pydantic model"


class Unfit(ValueError):
    """A text that is not what was wanted; each problem is a sentence for the model."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class OutputSchema:
    """What an answer has to be, and what one that fits becomes."""

    def __init__(self, schema: JsonObject, kind: Any = None) -> None:
        self.schema = schema
        self._kind = kind  # None leaves the answer as plain JSON values
        try:
            self.text = msgspec.json.encode(schema).decode()
            self._validator = compile_schema(schema)
        except (CallRefused, TypeError, ValueError, RecursionError) as error:
            raise UserError(f"the output schema is not valid JSON Schema: {error}") from error
        if len(self.text) > MAX_SCHEMA_CHARS:
            raise UserError(f"the output schema has {len(self.text)} characters; {MAX_SCHEMA_CHARS} are the most")

    @classmethod
    def of(cls, wanted: Any) -> "OutputSchema":
        """`wanted` as whoever calls gave it; `UserError` when it is nothing that an answer can be checked against."""
        if isinstance(wanted, OutputSchema):
            return wanted
        if isinstance(wanted, Mapping):
            return cls(dict(wanted))
        if callable(getattr(wanted, "model_json_schema", None)):
            return cls(wanted.model_json_schema(), wanted)
        try:
            schema = msgspec.json.schema(wanted)
        except (TypeError, msgspec.ValidationError, RecursionError) as error:
            raise UserError(f"output_schema is {KINDS}; {wanted!r} is none of them") from error
        return cls(_flat_root(schema), wanted)

    def read(self, text: str) -> Any:
        """What `text` says, as an instance of the class where one was given; `Unfit` tells what is wrong."""
        value = _json_in(text)
        if found := misfits(self._validator, value, _SHOWN_PROBLEMS):
            raise Unfit(*found)
        if self._kind is None:
            return value
        try:
            if hasattr(self._kind, "model_validate"):
                return self._kind.model_validate(value)
            from hermes.typed import convert

            return convert(value, self._kind)
        except ValueError as error:  # msgspec's and pydantic's are both
            raise Unfit(str(error)) from error

    @property
    def request(self) -> str:
        """What the model is told beside the question."""
        return (
            "[Your last message in this turn is read by a program. It has to be one JSON value and nothing else, no "
            f"words before or after it, that fits this JSON Schema: {self.text}]"
        )


class OutputCheck:
    """The check of one turn's answer."""

    def __init__(self, wanted: OutputSchema) -> None:
        self.wanted = wanted
        self.is_told = False
        self._is_repaired = False

    def tell(self, turn: "Turn") -> None:
        """Say what is wanted, before the first request."""
        self.is_told = True
        turn.tell(self.wanted.request)

    def ending(self, turn: "Turn", answer: Ending, *, is_last: bool = False) -> Ending | None:
        """How the turn ends with `answer`; None when the model is asked for a better one, which happens once."""
        text = turn.ctx.services.redactor.redact(answer.text)  # of what is handed out, nothing is secret
        try:
            return msgspec.structs.replace(answer, output=self.wanted.read(text))
        except Unfit as error:
            unfit = error
        if is_last or self._is_repaired:
            why = f"the model's answer does not fit the output schema: {unfit}"
            return Ending(MISMATCH, answer.text, error=why, failed=True, error_reason=MISMATCH)
        self._is_repaired = True
        turn.ctx.sink.emit(StatusChanged("retry", f"the answer does not fit the output schema ({unfit}); asking again"))
        turn.tell(self._repair(text, unfit))
        return None

    def _repair(self, text: str, unfit: Unfit) -> str:
        """The answer is not stored, so its words are told again, with what is wrong with them."""
        shown = text if len(text) <= _SHOWN_ANSWER else f"{text[:_SHOWN_ANSWER]}… ({len(text)} characters in all)"
        problems = "\n".join(f"- {one}" for one in unfit.problems)
        schema = "" if self.is_told else f"\n{self.wanted.request}"
        return (
            f"[You answered:\n{shown}\nA program could not use that:\n{problems}\n"
            f"Answer again with the whole JSON value, corrected, and nothing else.]{schema}"
        )


def want_data(turn: "Turn", wanted: OutputSchema | None, asked_before: JsonObject | None) -> JsonObject | None:
    """Have the turn's answer checked; the schema that its provider is asked for, too, if any.

    Providers read a schema before everything else, so one more or less makes their cache of the rest void. So it is
    asked for from the first request of a session on, as long as it stays the same, and never in the middle.
    """
    endpoint, schema = turn.client.endpoint, None
    if wanted is not None:
        turn.output = OutputCheck(wanted)
        if endpoint is not None and (endpoint.quirks.output_format == "beside_tools" or not turn.tools):
            schema = wanted.schema
    if asked_before is not None and asked_before != schema:
        turn.untold.append(PrefixBroken("output_schema"))
    asked = schema if turn.is_new or asked_before == schema else None
    turn.options = msgspec.structs.replace(turn.options, output_schema=asked)
    return asked


def _json_in(text: str) -> Any:
    """The JSON value that is the text, or the only block of code in it."""
    plain = text.strip().removeprefix("\ufeff")
    blocks = _FENCED.findall(plain)
    for one in [plain, *(blocks if len(blocks) == 1 else ())]:
        try:
            return msgspec.json.decode(one.encode())
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            why = str(error) or type(error).__name__
    raise Unfit(f"it is not JSON alone: {why}")


def _flat_root(schema: JsonObject) -> JsonObject:
    """msgspec names the class at the root by a reference; providers want the object itself there."""
    reference, named = schema.get("$ref", ""), schema.get("$defs", {})
    found = named.get(reference.removeprefix("#/$defs/"))
    return {**found, "$defs": named} if found is not None else schema
