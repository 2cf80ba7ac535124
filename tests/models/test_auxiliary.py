"""Helper calls: the model that is configured for them, in the ledger under their own purpose, never in the way."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hermes import AIAgent
from hermes.errors import ProviderError, UserError
from hermes.models.auxiliary import AuxiliaryQuestion
from hermes.runtime.parts.titles import Titles, clean_title
from hermes.scope import TurnScope
from hermes.testing.memory_store import MemoryStore
from hermes.testing.replies import fault, says
from hermes.testing.server import RecordedRequest, ScriptedServer
from hermes.types import ImagePart

MakeAgent = Callable[..., AIAgent]


@pytest.fixture
async def make_agent(tmp_path: Path) -> AsyncIterator[MakeAgent]:
    made: list[AIAgent] = []

    def make(server: ScriptedServer, **keywords: Any) -> AIAgent:
        made.append(
            AIAgent(cwd=str(tmp_path), model="main", base_url=server.base_url, **{"store": MemoryStore(), **keywords})
        )
        return made[-1]

    yield make
    for agent in made:
        await agent.aclose()


def is_title(request: RecordedRequest) -> bool:
    text: str = request.json["messages"][0]["content"]
    return text.startswith("Give a title")


def reply(request: RecordedRequest) -> Any:
    return says('"Counting to Three."') if is_title(request) else says("One, two, three.")


async def titled(agent: AIAgent, store: MemoryStore, session_id: str) -> Any:
    """The title, once its making has ended."""
    titles = (await agent._assembled()).services.parts.by_name.get("titles")
    if isinstance(titles, Titles):
        await titles.close(wait_s=10)
    return store.columns(session_id).get("title")


async def test_a_title_is_made_after_the_first_exchange_and_once(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    async with ScriptedServer(reply) as server:
        agent = make_agent(server, store=store, session_id="s", auto_title=True)
        await agent.arun_conversation("Count")
        assert await titled(agent, store, "s") == "Counting to Three"
        await agent.arun_conversation("Again")
    assert [is_title(request) for request in server.requests] == [False, True, False]
    assert [opened.purpose for opened, _ in store.attempts.values()] == ["turn", "title_generation", "turn"]
    assert all(closed is not None for _, closed in store.attempts.values())


async def test_two_sessions_never_share_a_title(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    async with ScriptedServer(reply) as server:
        for session in ("a", "b"):
            agent = make_agent(server, store=store, session_id=session, auto_title=True)
            await agent.arun_conversation("Count")
            await titled(agent, store, session)
    assert [store.columns(one)["title"] for one in ("a", "b")] == ["Counting to Three", "Counting to Three #2"]


async def test_the_answer_does_not_wait_for_a_title_and_none_is_left_behind(make_agent: MakeAgent) -> None:
    """The title never comes; the answer does, and closing the agent drops what is under way."""
    store = MemoryStore()
    stuck = lambda request: fault("stall") if is_title(request) else says("ok")  # noqa: E731
    async with ScriptedServer(stuck) as server, asyncio.timeout(20):
        agent = make_agent(server, store=store, session_id="s", auto_title=True)
        result = await agent.arun_conversation("Hi")
        assert result["final_response"] == "ok"
        await server.wait_for_requests(2)
        await agent.aclose()
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("title")]
    outcomes = [closed.outcome if closed else None for _, closed in store.attempts.values()]
    assert outcomes == ["ok", "cancelled"]


async def test_a_title_that_fails_changes_nothing(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    broken = lambda request: fault("unauthorized") if is_title(request) else says("ok")  # noqa: E731
    async with ScriptedServer(broken) as server, asyncio.timeout(20):
        agent = make_agent(server, store=store, session_id="s", auto_title=True)
        await agent.arun_conversation("Hi")
        await server.wait_for_requests(2)
        assert await titled(agent, store, "s") is None
        assert (await agent.arun_conversation("Hi"))["completed"]


async def test_titles_can_be_switched_off_and_have_a_language(make_agent: MakeAgent, hermes_home: Path) -> None:
    config, store = hermes_home / "config.yaml", MemoryStore()
    async with ScriptedServer(reply) as server:
        config.write_text("auxiliary: {title_generation: {enabled: false}}\n")
        agent = make_agent(server, store=store, session_id="off", auto_title=True)
        await agent.arun_conversation("Count")
        assert await titled(agent, store, "off") is None
        config.write_text("auxiliary: {title_generation: {language: German}}\n")
        agent = make_agent(server, store=store, session_id="on", auto_title=True)
        await agent.arun_conversation("Count")
        await titled(agent, store, "on")
    assert [is_title(request) for request in server.requests] == [False, False, True]
    assert server.requests[2].json["messages"][0]["content"].endswith("The title is in German.")


async def test_a_helper_is_tried_again_as_often_as_is_set(make_agent: MakeAgent, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("auxiliary: {transient_retries: 0}\n")
    async with ScriptedServer([fault("server_error")]) as server:
        helper = (await make_agent(server)._assembled()).auxiliary
        with pytest.raises(ProviderError, match="HTTP 500"):
            await helper.ask(AuxiliaryQuestion(task="approval", system="s", text="t"), TurnScope())
        server.assert_finished()


async def test_a_task_uses_the_model_that_is_configured_for_it(make_agent: MakeAgent, hermes_home: Path) -> None:
    async with ScriptedServer([says("yes")]) as other, ScriptedServer() as server:
        task = f"{{model: small, base_url: '{other.base_url}', reasoning_effort: low, extra_body: {{seed: 3}}}}"
        (hermes_home / "config.yaml").write_text(f"auxiliary: {{title_generation: {task}}}\n")
        helper = (await make_agent(server)._assembled()).auxiliary
        answer = await helper.ask(
            AuxiliaryQuestion(task="title_generation", system="s", text="t", max_tokens=9), TurnScope()
        )
    body = other.requests[0].json
    assert answer == "yes"
    assert (body["model"], body["max_tokens"], body["reasoning_effort"], body["seed"]) == ("small", 9, "low", 3)


async def test_another_model_of_the_main_provider(make_agent: MakeAgent, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("auxiliary: {compression: {model: small}}\n")
    async with ScriptedServer([says("yes"), says("main")]) as server:
        helper = (await make_agent(server)._assembled()).auxiliary
        await helper.ask(AuxiliaryQuestion(task="compression", system="s", text="t"), TurnScope())
        await helper.ask(AuxiliaryQuestion(task="vision", system="s", text="t"), TurnScope())
    assert [request.json["model"] for request in server.requests] == ["small", "main"]


async def test_a_picture_is_sent_whole_or_not_at_all(make_agent: MakeAgent, hermes_home: Path) -> None:
    """A provider with a lower limit: nothing is sent in which the picture would be missing."""
    async with ScriptedServer([says("a dot")]) as server:
        task = f"{{provider: anthropic, model: claude, base_url: '{server.base_url}', api_key: k}}"
        (hermes_home / "config.yaml").write_text(f"auxiliary: {{vision: {task}}}\n")
        helper = (await make_agent(server)._assembled()).auxiliary
        question = AuxiliaryQuestion(
            task="vision", system="s", text="t", images=(ImagePart("data:image/png;base64,AAAA"),)
        )
        assert await helper.ask(question, TurnScope()) == "a dot"
        large = ImagePart("data:image/png;base64," + "A" * (6 << 20))
        with pytest.raises(ProviderError, match=r"has 6\.0 MB as base64, and 'claude' takes 5 MB at most"):
            await helper.ask(replace(question, images=(large,)), TurnScope())
    (sent,) = (request.json["messages"][0]["content"] for request in server.requests)
    assert [part["type"] for part in sent] == ["text", "image"]
    assert sent[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "AAAA"}


async def test_an_unknown_task_is_named(make_agent: MakeAgent) -> None:
    async with ScriptedServer() as server:
        helper = (await make_agent(server)._assembled()).auxiliary
        with pytest.raises(UserError, match="no helper task 'nap'"):
            await helper.ask(AuxiliaryQuestion(task="nap", system="s", text="t"), TurnScope())


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('"Sorting a list."', "Sorting a list"),
        ("\n# Title: **Fix the build**\nmore", "Fix the build"),
        ("Ein   schöner\u200b Titel", "Ein schöner Titel"),
        ("  ", ""),
        ("x" * 200, "x" * 80),
    ],
)
def test_titles_are_cleaned(text: str, title: str) -> None:
    assert clean_title(text) == title
