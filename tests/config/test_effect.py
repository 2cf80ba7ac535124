"""After a key was set, it is used or it is said that it is not: every key there is."""

import re
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest

import hermes
from hermes.config.audit import every_key, section_names, section_type
from hermes.config.load import load_settings
from hermes.config.section import SectionBase, bare, keys_of, struct_inside
from hermes.config.write import IDLE, NEW_SESSIONS, NEXT_START, is_idle, set_key, unset_key, when_it_acts

SOURCE = Path(hermes.__file__).parent
KEYS = sorted(every_key())
ONE_ANSWER = {"web.extract_backend"}  # it has one value beside none: saying it changes nothing


def type_and_default(key: str) -> tuple[Any, Any]:
    head, *rest = key.split(".")
    in_section = head in section_names()
    kind: type[SectionBase] = section_type(head if in_section else "top")
    annotated: Any = kind
    default: Any = None
    for part in rest if in_section else [head, *rest]:
        found = next(each for each in keys_of(kind) if each.name == part)
        annotated, default = found.type, found.default
        kind = struct_inside(found.type)[0] or kind
    return annotated, default


def another(annotated: Any, default: Any) -> str:
    """A value of this type that is not the default, as a person would type it."""
    plain = bare(annotated)
    origin = get_origin(plain)
    if origin in (Union, types.UnionType):
        return another(next(each for each in get_args(plain) if each is not type(None)), default)
    if origin is Literal:
        return next(str(each) for each in get_args(plain) if each not in (default, ""))
    if struct_inside(annotated)[0] is not None or origin in (list, tuple, dict):
        return collection(annotated)
    if plain is bool:
        return "false" if default else "true"
    if plain in (int, float):
        return number(annotated, default)
    return "something-else"


def collection(annotated: Any) -> str:
    kind, shape = struct_inside(annotated)
    if kind is None:
        plain = bare(annotated)
        if get_origin(plain) is not dict:
            return "1,2" if bare(get_args(plain)[0]) is int else "one,two"
        return f"{{mine: {another(get_args(plain)[1], None)}}}".replace("one,two", "[one, two]")
    needed = {each.name: each for each in keys_of(kind)}
    wanted = ("action", "name", "model", "command", "description", "input", *needed)
    first = next(name for name in wanted if name in needed)
    item = f"{{{first}: {another(needed[first].type, None)}}}"
    return f"[{item}]" if shape == "list" else f"{{mine: {item}}}"


def number(annotated: Any, default: Any) -> str:
    limits: list[Any] = []
    while get_origin(annotated) is Annotated:
        annotated, *notes = get_args(annotated)
        limits += notes
    most = next((note.le for note in limits if getattr(note, "le", None) is not None), None)
    value = (default or 0) + 1
    return str(value if most is None or value <= most else most if default != most else most / 2)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_was_set_is_seen_by_whoever_looks_next(key: str, home: Path) -> None:
    annotated, default = type_and_default(key)
    before = load_settings(home, environ={}).get(key)
    text = another(annotated, default)
    set_key(home, key, text)
    after = load_settings(home, environ={})
    assert after.get(key) != before, text
    idle = {name for warning in after.warnings for name in warning.rpartition(": ")[2].split(", ")}
    told = any(key == name or key.startswith(f"{name}.") for name in idle)
    assert told == is_idle(key), "a key without effect is told of at every start, and no other"
    assert unset_key(home, key)
    assert load_settings(home, environ={}).get(key) == before


@pytest.mark.parametrize("key", KEYS)
def test_it_is_said_when_a_key_acts(key: str) -> None:
    assert when_it_acts(key).endswith(".")
    assert (when_it_acts(key) == IDLE) == is_idle(key)


def test_a_session_keeps_its_tools() -> None:
    assert {when_it_acts(key) for key in ("toolsets", "tools.custom_toolsets")} == {NEW_SESSIONS}


def test_what_is_switched_off_is_off_in_sessions_that_exist_too() -> None:
    assert when_it_acts("agent.disabled_toolsets") == NEXT_START
    assert when_it_acts("platform_toolsets.cli") == NEW_SESSIONS


def test_every_key_that_is_said_to_act_is_read_somewhere() -> None:
    code = "\n".join(
        file.read_text(encoding="utf-8")
        for file in (*SOURCE.rglob("*.py"), *SOURCE.rglob("*.json"))
        if "config/sections" not in str(file) and "testing" not in file.parts
    )
    acting = [key for key in KEYS if not is_idle(key) and key not in ONE_ANSWER]
    unread = [key for key in acting if not is_read(key.rpartition(".")[2], code)]
    assert unread == []


def is_read(name: str, code: str) -> bool:
    if re.search(rf"\.{name}\b|[\"']{name}[\"']", code):
        return True
    # spending.turn_usd is read as f"{what}_{unit}", web.tavily_api_key as f"{name}_api_key"
    first, _, rest = name.partition("_")
    return bool(rest) and re.search(rf"\{{\w+\}}_(\{{\w+\}}|{rest})\"", code) is not None and f'"{first}"' in code
