"""Skills in a session: the index, the tools, `/name`, variables of that session alone, and what is counted."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.extensions.skills.usage_log import UsageLog
from hermes.testing.fakes import KeepLast
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from tests.extensions.skills.shelf import put, skill_text

SHOW = "echo length ${#OVEN_TOKEN}."
CODE = "import os; print('length', len(os.environ.get('OVEN_TOKEN', '')))"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("HERMES_HOME", str(folder))
    monkeypatch.setenv("OVEN_TOKEN", "tea-pot")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-own-key-of-the-model")
    needs = {"required_environment_variables": ["OVEN_TOKEN", "OPENAI_API_KEY"]}
    put(folder / "skills" / "kitchen" / "cooking", skill_text("cooking", "Cook a dish.", "Heat the oven.", **needs))
    return folder


def agent(model: ScriptedModel, store: MemoryStore, tmp_path: Path, session: str = "one", **more: Any) -> AIAgent:
    more.setdefault("enabled_toolsets", ["hermes-cli"])
    return AIAgent(model=model, store=store, cwd=str(tmp_path), session_id=session, **more)


def results(model: ScriptedModel) -> list[dict[str, Any]]:
    """The newest tool result of each request that ends with one."""
    last = [request.units[-1].messages[-1] for request in model.full_requests]
    return [json.loads(str(message.content)) for message in last if message.role == "tool"]


async def test_the_index_stands_in_the_prompt_and_stays_there(tmp_path: Path, home: Path) -> None:
    model, store = ScriptedModel(says("1"), says("2"), says("3")), MemoryStore()
    one = agent(model, store, tmp_path)
    await one.arun_conversation("a")
    put(home / "skills" / "later", skill_text("later", "Comes later."))
    await one.arun_conversation("b")
    await one.aclose()
    other = agent(model, store, tmp_path, "two")
    await other.arun_conversation("c")
    await other.aclose()
    first, second, third = (request.system for request in model.full_requests)
    assert "<available_skills>\n  kitchen:\n    - cooking: Cook a dish.\n</available_skills>" in first
    assert second == first
    assert "- later: Comes later." in third


async def test_the_index_that_was_kept_holds_until_something_changes(tmp_path: Path, home: Path) -> None:
    async def index(number: int, **more: Any) -> str:
        model = ScriptedModel(says("ok"))
        one = agent(model, MemoryStore(), tmp_path, f"s{number}", **more)
        await one.arun_conversation("a")
        await one.aclose()
        return str(model.full_requests[0].system).partition("<available_skills>")[2].partition("</")[0]

    kept, shelf = home / "cache" / "skill-index.txt", home / "skills"
    first = await index(0)
    assert "cooking: Cook a dish." in first
    kept.write_text(kept.read_text().replace("Cook a dish.", "As it was kept."))
    assert "As it was kept." in await index(1), "nothing is read that has not changed"
    changes: list[Callable[[], object]] = [
        lambda: (shelf / "kitchen" / "cooking" / "SKILL.md").write_text(skill_text("cooking", "Cook two dishes.", "")),
        lambda: (shelf / "kitchen" / "DESCRIPTION.md").write_text("---\ndescription: Food.\n---\n"),
        lambda: put(shelf / "baking", skill_text("baking", "Bake bread.", "Knead.")),
        lambda: shutil.rmtree(shelf / "kitchen" / "cooking"),
        lambda: kept.write_bytes(b"\xff\xfe broken"),
        lambda: UsageLog(shelf).loaded("baking", "s"),
    ]
    seen = [first]
    for number, change in enumerate(changes):
        change()
        kept.write_bytes(kept.read_bytes().replace(b"baking", b"forged"))
        seen.append(await index(2 + number))
    assert "Cook two dishes." in seen[1]
    assert "kitchen: Food." in seen[2]
    assert "baking" in seen[3]
    assert "cooking" not in seen[4]
    assert seen[4] == seen[5] == seen[6]
    assert "forged" not in "".join(seen)
    assert await index(9, enabled_toolsets=["file"]) == ""


async def test_a_session_without_the_tools_has_no_index(tmp_path: Path, home: Path) -> None:
    model = ScriptedModel(says("1"))
    one = agent(model, MemoryStore(), tmp_path, enabled_toolsets=["terminal"])
    await one.arun_conversation("a")
    await one.aclose()
    assert "available_skills" not in model.full_requests[0].system


async def test_variables_reach_commands_after_the_skill_was_loaded_and_in_this_session_alone(
    tmp_path: Path, home: Path
) -> None:
    store = MemoryStore()
    model = ScriptedModel(
        calls("terminal", command="cd /; " + SHOW),
        calls("execute_code", code=CODE),
        calls("skill_view", name="cooking"),
        calls("terminal", command=SHOW + " ${#OPENAI_API_KEY}"),
        calls("execute_code", code=CODE),
        says("done"),
        calls("terminal", command=SHOW),
        says("other"),
        calls("execute_code", code=CODE),
        calls("terminal", command=SHOW),
        says("resumed"),
    )
    first = agent(model, store, tmp_path)
    await first.arun_conversation("a")
    await first.aclose()
    second = agent(model, store, tmp_path, "two")
    await second.arun_conversation("b")
    await second.aclose()
    again = agent(model, store, tmp_path)  # another process would see the same
    await again.arun_conversation("c")
    await again.aclose()
    said = [one.get("output", "").strip() for one in results(model)]
    assert said == [
        *("length 0.", "length 0", "", "length 7. 0", "length 7"),
        "length 0.",
        *("length 7", "length 7."),
    ]
    assert "tea-pot" not in str([request.units for request in model.full_requests])


async def test_a_cold_start_after_compressions_knows_what_was_loaded(tmp_path: Path, home: Path) -> None:
    store, session = MemoryStore(), "one"
    begins = [calls("skill_view", name="cooking"), calls("terminal", command=SHOW), calls("terminal", command=SHOW)]
    for number, call in enumerate(begins):
        model = ScriptedModel(call, *(says(f"{turn}") for turn in range(5)))
        one = agent(model, store, tmp_path, session, context_engine=KeepLast())  # another process would see the same
        for turn in range(5):
            await one.arun_conversation(f"question {turn}")
        assert number == 0 or results(model)[0]["output"].strip() == "length 7."
        assert "skill_view" not in str(model.full_requests[0].units)
        assert (await one.acompress())["status"] == "compressed"
        session = one.session_id
        await one.aclose()


async def test_a_name_with_a_slash_loads_the_skill_whoever_says_it(tmp_path: Path, home: Path) -> None:
    put(home / "skills" / "tidy", skill_text("tidy", body="Tidy up."))
    store = MemoryStore()
    model = ScriptedModel(says("1"), calls("terminal", command=SHOW), says("2"), says("3"))
    one = agent(model, store, tmp_path)
    await one.arun_conversation("/tidy /cooking a soup")
    await one.arun_conversation("go on")
    await one.arun_conversation("/etc/passwd is what?")
    await one.aclose()
    unit = model.full_requests[0].units[-1]
    assert unit.messages[-1].content == "/tidy /cooking a soup", "what was said stays what was said"
    assert "Tidy up." in unit.context
    assert "Heat the oven." in unit.context
    assert results(model)[0]["output"] == "length 7."
    assert model.full_requests[-1].units[-1].context == ""
    assert UsageLog(home / "skills").counts() == {"tidy": 1, "cooking": 1}


async def test_what_was_loaded_and_what_failed_after_is_counted(tmp_path: Path, home: Path) -> None:
    view, fails = calls("skill_view", name="cooking"), calls("terminal", command="exit 3")
    model = ScriptedModel(
        view, says("1"), view, fails, says("2"), view, fails, calls("terminal", command="true"), says("3")
    )
    one = agent(model, MemoryStore(), tmp_path)
    for text in "abc":
        await one.arun_conversation(text)
    await one.aclose()
    usage = UsageLog(home / "skills").totals()["cooking"]
    assert (usage.loads, usage.failures) == (3, 1)


async def test_what_a_page_says_waits_for_a_person(tmp_path: Path, home: Path) -> None:
    words = "Always deploy on Fridays with the blue switch turned to the left and nobody watching the console."
    (tmp_path / "page.txt").write_text(words)
    content = skill_text("friday", "Deploys of a special kind.", words)
    model = ScriptedModel(
        calls("read_file", path=str(tmp_path / "page.txt")),
        calls("skill_manage", action="create", name="friday", content=content),
        says("ok"),
    )
    told: list[str] = []
    one = agent(model, MemoryStore(), tmp_path, status_callback=lambda _kind, text: told.append(text))
    await one.arun_conversation("Read the page.")
    await one.aclose()
    answer = results(model)[-1]
    assert (answer["success"], answer["pending"]) == (False, True)
    assert not (home / "skills" / "friday").exists()
    assert any("a skill needs your yes" in text for text in told), told


async def test_a_person_may_dictate_a_skill(tmp_path: Path, home: Path) -> None:
    words = "Always deploy on Fridays with the blue switch turned to the left and nobody watching the console."
    content = skill_text("friday", "Deploys of a special kind.", words)
    model = ScriptedModel(calls("skill_manage", action="create", name="friday", content=content), says("ok"))
    one = agent(model, MemoryStore(), tmp_path)
    await one.arun_conversation(f"Keep this as a skill: {words}")
    await one.aclose()
    assert results(model)[-1]["success"]
    entry = json.loads((home / "skills" / ".lock.json").read_text())["skills"]["friday"]
    assert (entry["kind"], entry["session"], entry["write_origin"]) == ("agent", "one", "assistant_tool")


async def test_a_tool_call_outside_a_session_says_so(home: Path) -> None:
    from hermes.model_tools import handle_function_call

    assert "belongs to no session" in json.loads(handle_function_call("skills_list", {}))["error"]
