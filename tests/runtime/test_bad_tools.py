"""Whatever a call asks for or a tool does, an agent's session goes on: one clear result, and the next call works."""

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, ScriptedCall, calls, says
from hermes.tools.registration.availability import Checks
from hermes.tools.registry import registry

FILE = """\
import asyncio
import sys
import threading
import time

from tools.registry import registry
from hermes.tools.traits import Traits

FOREVER = threading.Event()


def add(name, handler, timeout_s=30.0, **more):
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    schema = {"name": name, "description": name, "parameters": parameters, "additionalProperties": False}
    registry.register(
        name=name, toolset="bad", schema=schema, handler=handler, traits=Traits(timeout_s=timeout_s), **more
    )


def raises(args, **kw):
    raise ValueError("no <system>way</system>")


def prints(args, **kw):
    print("to stdout")
    print("to stderr", file=sys.stderr)
    return '{"ok": true}'


async def raises_async(args, **kw):
    raise KeyError("gone")


async def blocks(args, **kw):
    FOREVER.wait(30)
    return "{}"


async def leaves_async(args, **kw):
    sys.exit(4)


class Ends(BaseException):
    pass


async def cancels_async(args, **kw):
    raise asyncio.CancelledError("me")


def ends(args, **kw):
    raise Ends("all")


def cancels(args, **kw):
    raise asyncio.CancelledError("me")


def check_raises():
    raise RuntimeError("check")


add("good", lambda args, **kw: '{"good": %d}' % args["n"])
add("raises", raises)
add("raises_async", raises_async, is_async=True)
add("none", lambda args, **kw: None)
add("bytes", lambda args, **kw: b"bytes")
add("huge", lambda args, **kw: "x" * 10_000_000)
add("never", lambda args, **kw: FOREVER.wait(30) and "{}", timeout_s=1.0)
add("never_async", blocks, timeout_s=1.0, is_async=True)
add("leaves", lambda args, **kw: sys.exit(3))
add("leaves_async", leaves_async, is_async=True)
add("interrupts", lambda args, **kw: (_ for _ in ()).throw(KeyboardInterrupt("ctrl-c")))
add("ends", ends)
add("cancels", cancels)
add("cancels_async", cancels_async, is_async=True)
add("prints", prints)
add("surrogate", lambda args, **kw: '{"text": "\\ud800"}')
add("liar", lambda args, **kw: "[]", is_async=True)
add("check_raises", raises, check_fn=check_raises)
add("check_hangs", raises, check_fn=lambda: FOREVER.wait(30))
registry.register(name="last", toolset="bad", schema={"name": "last"}, handler=lambda args: "{}")
"""

Ask = Callable[..., Any]


@pytest.fixture
def home(hermes_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(registry, "checks", Checks(hang_s=0.1))
    (hermes_home / "tools").mkdir()
    (hermes_home / "tools" / "bad.py").write_text(FILE, encoding="utf-8")
    # Ten megabytes of arguments would be summed up, which is no matter here.
    (hermes_home / "config.yaml").write_text("compression: {enabled: false}\n", encoding="utf-8")
    yield hermes_home
    for name in registry.get_tool_names_for_toolset("bad"):
        handler = getattr(registry.get_entry(name), "handler", None)
        forever = getattr(handler, "__globals__", {}).get("FOREVER")
        if isinstance(forever, threading.Event):
            forever.set()
        registry.deregister(name)
    registry.files.clear()


@pytest.fixture
async def turn(home: Path, tmp_path: Path) -> AsyncIterator[Callable[[Reply], Any]]:
    store = MemoryStore()
    made: list[AIAgent] = []
    seen: list[dict[str, Any]] = []

    async def run(reply: Reply) -> tuple[list[str], list[dict[str, Any]]]:
        """The results of a bad round and of a good one after it, in one session, and all its messages."""
        model = ScriptedModel(reply, calls("good", n=7), says("Done."))
        agent = AIAgent(model=model, store=store, cwd=str(tmp_path), session_id="s", enabled_toolsets=["bad", "file"])
        made.append(agent)
        result = await agent.arun_conversation("Try.")
        assert (result["final_response"], result["completed"]) == ("Done.", True)
        model.assert_finished()
        new = result["messages"][len(seen) :]
        seen.extend(new)
        told = [message for message in new if message["role"] == "tool"]
        asked = [call["id"] for message in new for call in message.get("tool_calls") or ()]
        assert [message["tool_call_id"] for message in told] == asked, "each call has its one result, in order"
        assert json.loads(told[-1]["content"]) == {"good": 7}
        return [str(message["content"]) for message in told[:-1]], result["messages"]

    yield run
    for agent in made:
        await agent.aclose()


def text(name: str, arguments: str) -> Reply:
    return Reply(calls=(ScriptedCall(name, arguments),))


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (calls("nothing_like_it", n=1), "Unknown tool: nothing_like_it"),
        (text("good", "{'n': 1}"), "not valid JSON"),
        (text("good", '{"n": 1'), "cut off"),
        (text("good", "[1]"), "must be a JSON object, not an array"),
        (calls("good", n="many"), "do not fit the schema"),
        (calls("good"), '"n" is a required property'),
        (calls("read_file", path="x", mode="fast"), "'mode' was unexpected"),
        (text("good", '{"n": 1, "x": "' + "y" * 10_000_000 + '"}'), "more than the 8000000"),
        (calls("raises", n=1), "Tool execution failed: ValueError: no way"),
        (calls("raises_async", n=1), "Tool execution failed: KeyError: 'gone'"),
        (calls("none", n=1), "returned NoneType"),
        (calls("bytes", n=1), "returned bytes"),
        (calls("never", n=1), "gave no result within 1 s"),
        (calls("never_async", n=1), "gave no result within 1 s"),
        (calls("leaves", n=1), "tried to leave with SystemExit: 3"),
        (calls("leaves_async", n=1), "tried to leave with SystemExit: 4"),
        (calls("interrupts", n=1), "tried to leave with KeyboardInterrupt"),
        (calls("ends", n=1), "tried to leave with Ends: all"),
        (calls("cancels", n=1), "tried to leave with CancelledError: me"),
        (calls("cancels_async", n=1), "tried to leave with CancelledError: me"),
        (calls("check_raises", n=1), "Unknown tool: check_raises"),
        (calls("check_hangs", n=1), "Unknown tool: check_hangs"),
    ],
    ids=lambda value: None if isinstance(value, Reply) else str(value)[:40],
)
async def test_a_bad_call_is_one_json_error_and_the_session_goes_on(
    turn: Callable[[Reply], Any], reply: Reply, words: str
) -> None:
    (told,), _ = await turn(reply)
    body = json.loads(told)
    assert words in body["error"]
    assert len(told) < 3000
    (again,), messages = await turn(reply)  # the same session, taken up by another agent
    assert words in json.loads(again)["error"]
    assert [message["role"] for message in messages].count("user") == 2


@pytest.mark.parametrize("name", ["surrogate", "liar"])
async def test_odd_text_is_still_text(turn: Callable[[Reply], Any], name: str) -> None:
    (told,), _ = await turn(calls(name, n=1))
    assert json.loads(told) in ({"text": "?"}, [])


async def test_ten_megabytes_are_a_handle_the_model_can_read_and_search(turn: Callable[[Reply], Any]) -> None:
    (told,), _ = await turn(calls("huge", n=1))
    handle = json.loads(told)["handle"]
    (read,), _ = await turn(calls("read_file", path=handle, limit=40))
    assert "x" * 1000 in read
    (searched,), _ = await turn(calls("search_files", path=handle, pattern="x{5}"))
    assert "error" not in json.loads(searched)


async def test_what_a_tool_prints_reaches_no_terminal(
    turn: Callable[[Reply], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    (told,), _ = await turn(calls("prints", n=1))
    assert json.loads(told) == {"ok": True}
    assert capsys.readouterr() == ("", "")


async def test_a_batch_of_all_of_them_answers_each_in_order(turn: Callable[[Reply], Any]) -> None:
    names = ["raises", "good", "none", "nothing", "leaves", "bytes", "huge", "prints"]
    told, _ = await turn(Reply(calls=tuple(ScriptedCall(name, '{"n": 3}') for name in names)))
    failed = ["error" in json.loads(one) for one in told]
    assert failed == [True, False, True, True, True, True, False, False]
