"""Hooks by their kinds: who may refuse fails shut, who looks on is never felt, who changes composes."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from hermes.extensions.plugins.hook_faults import keep_faults, kept_faults
from hermes.hook_points import HOOKS, LazyView
from hermes.host.doctor_checks.plugins import CHECK
from hermes.host.installation import Installation
from hermes.testing.replies import calls, says
from hermes.tools import hook_bus
from hermes.tools.hook_bus import ApprovalWish
from hermes.tools.hooks import Hooks
from hermes.tools.timed_steps import MOST_S
from tests.extensions.plugins.conftest import Room
from tests.extensions.plugins.samples import write_plugin

CALL = {"tool_name": "t", "args": {"path": "a"}, "tool_call_id": "1"}


def raises(**_: Any) -> None:
    raise ValueError("broken guard")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, None),
        ({"note": "no action"}, None),
        ("words", None),
        ({"action": "allow"}, None),
        ({"action": "block", "message": "not today"}, "not today"),
        ({"action": "block"}, "blocked by the policy of 'guard'"),
        ({"action": "blok", "message": "x"}, "asked for 'blok'"),
        ({"action": "approve", "message": "look"}, "nobody can be asked here"),
    ],
)
async def test_what_a_policy_answers(answer: Any, reason: str | None) -> None:
    hooks = Hooks()
    hooks.add("pre_tool_call", lambda **_: answer, owner="guard", kind="policy")
    found = await hooks.allow("pre_tool_call", CALL)
    assert (found is None) if reason is None else (found is not None and reason in found)


async def test_a_policy_that_cannot_answer_denies_by_its_name() -> None:
    hang = threading.Event()

    async def hangs(**_: Any) -> None:
        await asyncio.Event().wait()

    for callback in (raises, hangs, lambda **_: hang.wait(), "no function"):
        hooks = Hooks()
        hooks.add("pre_tool_call", callback, owner="guard", kind="policy", timeout_s=0.05)  # type: ignore[arg-type]  # as a plugin may
        assert "'guard'" in (await hooks.allow("pre_tool_call", CALL) or "")
    hang.set()


async def test_a_policy_that_is_late_or_answers_with_something_broken_says_so() -> None:
    class Broken(Mapping[str, str]):
        def __getitem__(self, key: str) -> str:
            raise OSError("no answer in here")

        def __iter__(self) -> Iterator[str]:
            return iter(("action",))

        def __len__(self) -> int:
            return 1

    async def hangs(**_: Any) -> None:
        await asyncio.Event().wait()

    def gives_up(**_: Any) -> None:
        raise TimeoutError("the server of the guard is slow")

    for callback, told in (
        (lambda **_: Broken(), "OSError: no answer in here"),
        (hangs, "TimeoutError: it took longer than 0.05 s"),
        (gives_up, "TimeoutError: the server of the guard is slow"),
    ):
        hooks = Hooks()
        hooks.add("pre_tool_call", callback, owner="guard", kind="policy", timeout_s=0.05)
        assert await hooks.allow("pre_tool_call", CALL) == f"the policy of 'guard' failed ({told})"


async def test_a_policy_can_have_a_person_asked() -> None:
    asked: list[ApprovalWish] = []

    async def person(wish: ApprovalWish) -> str | None:
        asked.append(wish)
        return None if wish.rule_key == "fine" else "the person said no"

    hooks = Hooks()
    hooks.add(
        "pre_tool_call", lambda args, **_: {"action": "approve", "rule_key": args["path"]}, owner="g", kind="policy"
    )
    assert await hooks.allow("pre_tool_call", {**CALL, "args": {"path": "fine"}}, person) is None
    assert await hooks.allow("pre_tool_call", CALL, person) == "the person said no"
    assert [one.owner for one in asked] == ["g", "g"]


async def test_what_a_callback_does_to_its_keywords_changes_nothing() -> None:
    def spoil(args: dict[str, Any], **_: Any) -> None:
        args["path"] = "spoilt"

    hooks, call = Hooks(), {**CALL, "args": {"path": "a"}}
    hooks.add("pre_tool_call", spoil, owner="g", kind="policy")
    hooks.add("post_tool_call", spoil, owner="g", kind="observer")
    await hooks.allow("pre_tool_call", call)
    await hooks.observe("post_tool_call", call)
    await hooks.close()
    assert call["args"] == {"path": "a"}


async def test_observers_hear_everything_in_order_and_are_not_waited_for() -> None:
    heard: list[int] = []
    go = threading.Event()

    def slow(number: int, **_: Any) -> None:
        go.wait(10)
        heard.append(number)

    hooks = Hooks()
    hooks.add("post_tool_call", slow, owner="watcher", kind="observer")
    for number in range(200):
        await hooks.observe("post_tool_call", {"number": number})
    assert heard == []
    go.set()
    await hooks.close()
    assert heard == list(range(200))
    assert hooks.lost == {}


async def test_what_does_not_fit_the_queue_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_bus, "BACKLOG", 10)
    go = threading.Event()
    hooks = Hooks()
    hooks.add("post_tool_call", lambda **_: go.wait(10), owner="watcher", kind="observer")
    for _ in range(50):
        await hooks.observe("post_tool_call", {})
    assert hooks.lost["watcher"] >= 39
    go.set()
    await hooks.close()


async def test_an_observer_that_hangs_costs_the_event_it_hangs_in() -> None:
    hang, heard = threading.Event(), threading.Event()
    seen: list[int] = []

    def sometimes(number: int, **_: Any) -> None:
        if number == 0:
            hang.wait(30)
        seen.append(number)
        heard.set()

    hooks = Hooks()
    hooks.add("post_tool_call", sometimes, owner="w", kind="observer", timeout_s=0.01)
    await hooks.observe("post_tool_call", {"number": 0})
    while not seen:  # each event that comes looks whether the last one is over its time
        await hooks.observe("post_tool_call", {"number": 1})
        await asyncio.sleep(0)
    assert seen[0] == 1
    assert "left behind" in hooks.faults["w", "post_tool_call"]
    hang.set()


async def test_an_observer_may_leave_with_anything() -> None:
    def leave(**_: Any) -> None:
        raise SystemExit(3)

    hooks = Hooks()
    hooks.add("post_tool_call", leave, owner="w", kind="observer")
    await hooks.observe("post_tool_call", {})
    await hooks.close()
    assert hooks.faults["w", "post_tool_call"].startswith("SystemExit")


async def test_transforms_compose_in_order_and_one_that_fails_is_told_once() -> None:
    hooks, told = Hooks(), list[str]()
    hooks.tell = told.append
    hooks.add("transform_tool_result", lambda result, **_: f"{result}1", owner="a", kind="transform")
    hooks.add("transform_tool_result", raises, owner="b", kind="transform")
    hooks.add("transform_tool_result", lambda result, **_: f"{result}2", owner="c", kind="transform")
    for _ in range(2):
        assert await hooks.transform("transform_tool_result", "x", {"result": "x"}) == "x12"
    assert told == ["the hook transform_tool_result of 'b' failed (ValueError: broken guard)"]


async def test_a_coroutine_that_blocks_the_loop_is_told_by_its_plugin_and_hook() -> None:
    hooks, told = Hooks(), list[str]()
    hooks.tell = told.append

    async def blocks(**_: Any) -> str:
        await asyncio.sleep(0)
        time.sleep(MOST_S + 0.05)  # noqa: ASYNC251 - what is looked at
        return "slept"

    async def waits(**_: Any) -> str:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)
        return "waited"

    hooks.add("pre_llm_call", waits, owner="polite", kind="transform")
    hooks.add("pre_llm_call", blocks, owner="rude", kind="transform")
    assert await hooks.gather("pre_llm_call", {}) == ["waited", "slept"], "what it answers counts"
    (sentence,) = told
    assert sentence.startswith("the hook pre_llm_call of 'rude' failed (LoopBlocked: everything else stood still for")
    assert hooks.faults.keys() == {("rude", "pre_llm_call")}, "which the doctor reads"


def test_a_view_of_a_history_is_made_when_it_is_looked_at() -> None:
    made: list[int] = []
    items = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]

    def make() -> list[dict[str, str]]:
        made.append(1)
        return items

    view = LazyView(2, make)
    assert len(view) == 2
    assert made == []
    view[0]["content"] = "spoilt"
    assert view[0]["content"] == "a"
    assert [one["role"] for one in view[-1:]] == ["assistant"]
    assert list(view) == items == view
    assert made == [1]
    with pytest.raises(TypeError):
        view[0] = {}  # type: ignore[index]  # read-only


WATCHER = """
import json
from hermes.config.paths import hermes_home

NAMES = {names!r}


def listener(name):
    def listen(**kw):
        with open(hermes_home() / "events.jsonl", "a") as file:
            plain = dict((key, value if isinstance(value, (str, int, float, bool, dict)) else repr(type(value)))
                         for key, value in kw.items())
            file.write(json.dumps([name, plain], default=str) + "\\n")
    return listen


def register(ctx):
    for name in NAMES:
        ctx.register_hook(name, listener(name))
"""


def test_every_hook_that_is_fired_carries_its_keywords_in_the_order_of_a_turn(room: Room) -> None:
    fired = [
        name
        for name, one in HOOKS.items()
        if one.is_fired and not name.startswith("subagent") and "approval" not in name and name != "on_session_reset"
    ]
    write_plugin(room.home / "plugins" / "watch", WATCHER.format(names=[*fired, "no_such_hook"]))
    room.config("plugins: {enabled: [watch]}\n")
    room.run(calls("terminal", command="echo hi"), says("Done."))
    events = [json.loads(line) for line in (room.home / "events.jsonl").read_text().splitlines()]
    waited = {name for name, one in HOOKS.items() if one.kind != "observer"}
    order = [name for name, _ in events if name not in waited]
    assert order == [
        *("on_session_start", "pre_api_request", "post_api_request", "post_tool_call", "pre_api_request"),
        *("post_api_request", "post_llm_call", "on_session_end", "on_session_finalize"),
    ]
    assert {name for name, _ in events} == set(fired) - {"api_request_error"}
    for name, keywords in events:
        assert set(HOOKS[name].keywords) <= keywords.keys(), name
        assert keywords["telemetry_schema_version"] == 1
        assert None not in keywords.values()


def test_a_plugin_hears_of_children_in_their_parents_session(room: Room) -> None:
    write_plugin(room.home / "plugins" / "watch", WATCHER.format(names=["subagent_start", "subagent_stop"]))
    room.config("plugins: {enabled: [watch]}\n")
    agent = room.agent(calls("delegate_task", goal="Dig."), says("Dug."), says("Done."))
    child = json.loads(agent.run_conversation("Go.")["messages"][2]["content"])["results"][0]
    agent.close()
    (first, began), (last, ended) = [json.loads(line) for line in (room.home / "events.jsonl").read_text().splitlines()]
    assert (first, last) == ("subagent_start", "subagent_stop")
    for name, keywords in ((first, began), (last, ended)):
        assert set(HOOKS[name].keywords) <= keywords.keys(), name
        assert keywords["session_id"] == keywords["parent_session_id"] == agent.session_id
        assert keywords["child_session_id"] == child["child_session_id"]
        assert (keywords["child_subagent_id"], keywords["parent_subagent_id"]) == (child["subagent_id"], "")
        assert keywords["parent_turn_id"] == began["parent_turn_id"] != ""
    assert began["child_goal"] == "Dig."
    assert (ended["child_status"], ended["child_summary"], ended["child_role"]) == ("completed", "Dug.", "leaf")


def test_what_went_wrong_with_a_hook_is_seen_by_the_doctor_until_a_session_is_sound(room: Room) -> None:
    folder = room.home / "plugins" / "moody"
    code = "def after(**kw): {body}\ndef register(ctx): ctx.register_hook('post_tool_call', after)\n"
    write_plugin(folder, code.format(body="raise OSError('disk full')"))
    room.config("plugins: {enabled: [moody]}\n")
    room.run(calls("terminal", command="echo hi"), says("Done."))
    told = [finding.text for finding in CHECK.run(Installation(room.home, {}))]
    assert "the hook post_tool_call of 'moody' failed in the last session (OSError: disk full)" in told
    keep_faults(room.home, {}, {"moody": 3})
    assert any("3 events did not fit" in finding.text for finding in CHECK.run(Installation(room.home, {})))
    keep_faults(room.home, {}, {})
    assert kept_faults(room.home) == []
