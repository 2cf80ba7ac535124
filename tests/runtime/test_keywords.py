"""Keywords of the agent that act beside the turn: what the log tells, and whose session it is."""

import logging
import os
import re
from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config import paths
from hermes.errors import UserError
from hermes.state import SessionDB
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
from hermes.testing.server import ScriptedServer, ServerThread


def test_verbose_logging_tells_each_step_with_its_prefix_and_short_previews(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel(calls("todo", todos=[{"id": "1", "content": "x" * 50, "status": "pending"}]), says("ok"))
    with caplog.at_level(logging.INFO, "hermes.turn"):
        agent = AIAgent(
            model=model, session_db=SessionDB(tmp_path / "s.db"), cwd=str(tmp_path), verbose_logging=True,
            log_prefix="[w3]", log_prefix_chars=8,
        )  # fmt: skip
        agent.run_conversation("go")
        agent.close()
    lines = [record.getMessage() for record in caplog.records if record.name == "hermes.turn"]
    assert lines[0] == "[w3] model call 1"
    assert any(line.startswith("[w3] todo(") and line.endswith("…)") and len(line) < 30 for line in lines)
    assert any(line.startswith("[w3] todo: ok after") for line in lines)


def test_a_quiet_agent_logs_no_steps(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        agent = AIAgent(model=ScriptedModel(says("ok")), session_db=SessionDB(tmp_path / "s.db"), cwd=str(tmp_path))
        agent.run_conversation("go")
        agent.close()
    assert not [record for record in caplog.records if record.name == "hermes.turn"]


def test_quiet_mode_leaves_out_the_steps_that_verbose_logging_tells(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        agent = AIAgent(
            model=ScriptedModel(says("ok")), session_db=SessionDB(tmp_path / "s.db"), cwd=str(tmp_path),
            verbose_logging=True, quiet_mode=True,
        )  # fmt: skip
        agent.run_conversation("go")
        agent.close()
    assert not [record for record in caplog.records if record.name == "hermes.turn"]


async def test_a_keyword_wins_over_the_settings_also_when_it_is_the_usual_value(tmp_path: Path) -> None:
    settings = "checkpoints: {enabled: true, max_snapshots: 3}\n"
    (paths.made(paths.hermes_home()) / "config.yaml").write_text(settings)

    async def checkpoints(**keywords: Any) -> Any:
        agent = AIAgent(model=ScriptedModel(), cwd=str(tmp_path), **keywords)
        made = (await agent._assembled()).services.parts.by_name.get("checkpoints")
        await agent.aclose()
        return made

    assert await checkpoints(checkpoints_enabled=False) is None
    assert (await checkpoints()).calls.checkpoints.limits.max_snapshots == 3
    assert (await checkpoints(checkpoint_max_snapshots=20)).calls.checkpoints.limits.max_snapshots == 20
    assert (await checkpoints(checkpoint_max_snapshots=None)).calls.checkpoints.limits.max_snapshots == 3


def test_none_stands_for_the_usual_value(tmp_path: Path) -> None:
    agent = AIAgent(
        model=ScriptedModel(says("ok")), session_db=SessionDB(tmp_path / "s.db"), cwd=str(tmp_path),
        max_iterations=None, tool_delay=None, log_prefix=None,
    )  # fmt: skip
    assert agent.chat("go") == "ok"
    agent.close()


def test_the_session_keeps_where_in_a_chat_app_it_is(tmp_path: Path) -> None:
    db = SessionDB(tmp_path / "s.db")
    agent = AIAgent(
        model=ScriptedModel(says("hi")), session_db=db, cwd=str(tmp_path), platform="telegram", user_id="7",
        user_name="Ada", chat_id="-100", chat_name="Engines", chat_type="group", thread_id="3",
        gateway_session_key="telegram:-100:3",
    )  # fmt: skip
    agent.run_conversation("hello")
    agent.close()
    row = db.get_session(agent.session_id)
    assert row is not None
    told = {name: row[name] for name in ("source", "user_id", "chat_id", "chat_type", "thread_id", "session_key")}
    assert told == {
        "source": "telegram", "user_id": "7", "chat_id": "-100", "chat_type": "group", "thread_id": "3",
        "session_key": "telegram:-100:3",
    }  # fmt: skip
    assert row["display_name"] == "Engines"
    assert "Ada" in row["origin_json"]


def test_lone_surrogates_in_keywords_and_prompts_are_replaced(tmp_path: Path) -> None:
    with ServerThread([says("hi")]) as server:
        agent = AIAgent(
            model="m", provider="custom", base_url=server.base_url, session_db=SessionDB(tmp_path / "s.db"),
            cwd=str(tmp_path), session_id="s\ud800", user_name="Ada\ud800", ephemeral_system_prompt="Brief\ud800",
        )  # fmt: skip
        assert agent.chat("hello") == "hi"
        agent.close()
        told = server.requests[0].json["messages"][0]["content"]
    assert agent.session_id == "s?"
    assert told.endswith("Brief?")


def test_a_folder_whose_name_is_not_utf8_is_worked_in(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)
    with ServerThread([calls("terminal", command="touch here"), says("done")]) as server:
        agent = AIAgent(
            model="m", provider="custom", base_url=server.base_url, session_db=SessionDB(tmp_path / "s.db"),
            cwd=os.fsdecode(folder), enabled_toolsets=["terminal"],
        )  # fmt: skip
        result = agent.run_conversation("go", system_message="Odd\ud800")
        agent.close()
    assert result["final_response"] == "done"
    assert os.listdir(folder) == [b"here"]


def test_a_text_where_names_are_listed_is_refused() -> None:
    with pytest.raises(UserError, match=r"write \['file'\]"):
        AIAgent(model=ScriptedModel(), enabled_toolsets="file")


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"max_iterations": "x"}, "max_iterations is a whole number, not 'x'"),
        ({"max_tokens": 1.5}, "max_tokens is a whole number, not 1.5"),
        ({"tool_delay": True}, "tool_delay is a number, not True"),
        ({"iteration_budget": 5}, "iteration_budget is an IterationBudget, not 5"),
        ({"step_callback": "print"}, "step_callback is a function, not 'print'"),
    ],
)
def test_a_value_of_another_kind_is_refused_in_one_sentence(keywords: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}$"):
        AIAgent(model=ScriptedModel(), **keywords)


async def test_half_a_character_is_taken_in_pictures_and_in_what_goes_to_the_provider() -> None:
    broken = "caf\ud83d"
    async with ScriptedServer([says("ok")]) as server:
        agent = AIAgent(
            model="m",
            base_url=server.base_url,
            enabled_toolsets=[],
            request_overrides={"metadata": {broken: [broken]}},
        )
        picture = {"type": "image_url", "image_url": {"url": f"https://example.org/{broken}.png"}}
        result = await agent.arun_conversation([{"type": "text", "text": "see"}, picture])
        await agent.aclose()
    assert result["final_response"] == "ok"
