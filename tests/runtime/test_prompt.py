"""The system prompt of a session, to the byte."""

import platform
import time
from pathlib import Path

from hermes import AIAgent
from hermes.config import paths
from hermes.runtime.prompt import IDENTITY
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import says


async def prompt_of(folder: Path, **keywords: object) -> str:
    model = ScriptedModel(says("ok"))
    agent = AIAgent(model=model, store=MemoryStore(), cwd=str(folder), session_id="s", **keywords)
    await agent.arun_conversation("Hi", system_message="Speak like a sailor.")
    await agent.aclose()
    return model.full_requests[0].system


async def test_the_prompt_is_these_bytes_and_no_part_of_the_agent_adds_any(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n")
    day = time.strftime("%A, %d %B %Y")
    rest = (
        f"Commands run in the local backend, working directory {tmp_path}. Host system: {platform.system()}.\n\n"
        "Speak like a sailor.\n\n"
        "# Project rules (AGENTS.md)\n\nUse tabs.\n\n"
        f"The session began on {day}. Model: scripted."
    )
    assert await prompt_of(tmp_path) == f"{IDENTITY}\n\n{rest}"
    told = await prompt_of(tmp_path, pass_session_id=True, auto_title=True, checkpoints_enabled=True)
    assert told == f"{IDENTITY}\n\n{rest} Session id: s."
    (paths.made(paths.hermes_home()) / "SOUL.md").write_text("You are a lighthouse.\n")
    assert await prompt_of(tmp_path) == f"You are a lighthouse.\n\n{rest}"
