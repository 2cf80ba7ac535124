"""Test the tool alone, inside an agent, and over HTTP. No model is needed, and no network."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from word_count import count_words  # importing it registers the tool

from hermes import AIAgent
from hermes.errors import ToolError
from hermes.testing import ScriptedModel, calls, fault, says
from hermes.testing.server import ScriptedServer
from hermes.testing.workplace import FakeContext, MemoryEnvironment


def test_the_tool_alone() -> None:
    workplace = MemoryEnvironment()
    workplace.files["/work/poem.txt"] = b"so much depends upon a red wheel barrow"
    ctx = FakeContext(environment=workplace)

    counted = asyncio.run(count_words("poem.txt", longest=2, ctx=ctx))

    assert counted == {"words": 8, "longest": ["depends", "barrow"]}
    with pytest.raises(ToolError, match=r"there is no file 'gone\.txt'"):
        asyncio.run(count_words("gone.txt", ctx=ctx))


def test_an_agent_counts_the_words_of_a_file(
    hermes_workspace: Path,
    scripted_model: Callable[..., ScriptedModel],
    hermes_agent: Callable[..., AIAgent],
) -> None:
    (hermes_workspace / "poem.txt").write_text("so much depends upon a red wheel barrow", encoding="utf-8")
    model = scripted_model(calls("count_words", path="poem.txt", longest=1), says("Eight words, one of them long."))

    answer = hermes_agent(model, enabled_toolsets=["words"]).chat("How long is poem.txt?")

    assert answer == "Eight words, one of them long."
    told = model.requests[1][-1].content  # what the model was told about its call
    assert json.loads(str(told)) == {"words": 8, "longest": ["depends"]}


def test_a_mistake_of_the_model_is_told_to_it_and_the_turn_goes_on(
    scripted_model: Callable[..., ScriptedModel],
    hermes_agent: Callable[..., AIAgent],
) -> None:
    model = scripted_model(calls("count_words", path="gone.txt"), says("There is no such file."))
    assert hermes_agent(model, enabled_toolsets=["words"]).chat("How long is gone.txt?") == "There is no such file."
    assert "there is no file 'gone.txt'" in str(model.requests[1][-1].content)


def test_a_provider_that_stumbles_is_asked_again(
    scripted_server: Callable[..., ScriptedServer], hermes_agent: Callable[..., AIAgent]
) -> None:
    server = scripted_server(fault("rate_limit", retry_after=0), says("Here."))
    agent = hermes_agent("scripted", base_url=server.base_url, provider="custom", enabled_toolsets=["words"])
    assert agent.chat("Are you there?") == "Here."
    assert len(server.requests) == 2
