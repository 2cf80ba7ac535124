"""A key is only sent to the address it belongs to, however provider, address and key were given."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import pytest

from hermes.config.settings import Settings
from hermes.errors import HermesError, ProviderError
from hermes.host.agent_settings import agent_keywords
from hermes.models.attempts import ClientOptions
from hermes.models.auxiliary import AuxiliaryClient, AuxiliaryParts, AuxiliaryQuestion
from hermes.models.client import CallPlan, ModelClient
from hermes.models.http.client import HttpClient
from hermes.models.providers.endpoint_check import check_endpoint
from hermes.models.providers.resolve import ModelQuery, resolve, resolve_model
from hermes.runtime.options import AgentOptions, fold
from hermes.runtime.setup.model_setup import model_chain
from hermes.testing.fakes import CountedIds, HandClock
from hermes.testing.memory_store import MemoryStore
from hermes.testing.replies import says
from hermes.testing.server import ScriptedServer
from tests.models.key_worlds import Place, Recorder, World, a_world
from tests.models.providers.test_resolve import home, where
from tests.models.rooms import Room, Sleepless
from tests.models.wire_cases import asked

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
WORLDS = 1_250  # of which 1,000 ask for something that can be reached
HANDFUL = 25


def options_of(world: World, settings: Settings) -> AgentOptions:
    """What an agent is asked for, through the command line or by its keywords."""
    if world.wish is not None:
        return fold(agent_keywords(world.wish.agent, settings))
    return fold(world.keywords)


async def sent_in(world: World, folder: Path) -> Recorder:
    """Every request of a turn, of its fallbacks, of side jobs and of `hermes doctor`, each refused for its key."""
    http, settings, store = Recorder(), world.settings(folder), MemoryStore()
    options = options_of(world, settings)
    chain = model_chain(options, settings, http)
    for key in world.for_the_run:
        world.places[key].append(Place(address=chain[0].base_url))
    client = ModelClient(chain, store, HandClock(), CountedIds(), ClientOptions(jitter=lambda: 0.0))
    parts = AuxiliaryParts(
        settings=settings,
        http=http,
        store=store,
        clock=HandClock(),
        ids=CountedIds(),
        options=ClientOptions(jitter=lambda: 0.0),
        main=lambda: chain[0],
    )
    helper = AuxiliaryClient(parts)
    with pytest.raises(HermesError):
        await client.call(asked(), CallPlan(purpose="turn", session_id=None), Sleepless())
    for task in ("title_generation", "compression", "vision"):
        with pytest.raises(HermesError):
            await helper.ask(AuxiliaryQuestion(task=task, system="s", text="t"), Sleepless())
    if world.wish is not None:
        await check_endpoint(http, resolve(settings, ModelQuery()).endpoint)
    return http


@pytest.mark.parametrize("first", range(0, WORLDS if FULL else WORLDS // 10, HANDFUL))
async def test_no_key_reaches_a_host_it_does_not_belong_to(
    tmp_path: Path, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with_key = tried = 0
    for seed in range(first, first + HANDFUL):
        world = a_world(seed)
        try:
            http = await sent_in(world, tmp_path / str(seed))
        except HermesError:
            continue  # such a world asks for nothing that can be reached
        tried += 1
        for sent in http.sent:
            for key in re.findall(r"key\d+of\d+end", sent.text):
                with_key += 1
                assert any(place.has(sent.url) for place in world.places[key]), (seed, key, sent, world)
            assert not re.search(r"key\d+of\d+end", sent.url)
    assert tried > HANDFUL / 3
    assert with_key > tried


# -- the rule, case by case -----------------------------------------------------------------------------------------

CUSTOM = "http://127.0.0.1:18767/v1"
FILED = {"provider": "custom", "default": "m", "base_url": CUSTOM}


def test_a_variable_is_for_its_provider_or_for_the_address_beside_it(tmp_path: Path) -> None:
    plain = home(tmp_path, {"model": FILED}, OPENAI_API_KEY="sk")
    assert where(plain)[2:] == (CUSTOM, "")
    assert where(plain, provider="openai", name="gpt-5")[2:] == ("https://api.openai.com/v1", "sk")
    beside = home(tmp_path, {"model": "m"}, OPENAI_API_KEY="sk", OPENAI_BASE_URL=CUSTOM)
    assert where(beside)[2:] == (CUSTOM, "sk")
    assert where(beside, provider="openai", name="gpt-5")[3] == ""
    (tmp_path / "home" / ".env").write_text("OPENAI_API_KEY=sk\n")
    apart = home(tmp_path, {"model": "m"}, OPENAI_BASE_URL=CUSTOM)
    assert where(apart)[2:] == (CUSTOM, "")


@pytest.mark.parametrize(
    ("base_url", "is_sent"),
    [
        ("https://api.openai.com/v1", True),
        ("https://API.openai.com:443/v2", True),
        ("https://eu.api.openai.com/v1", True),
        ("http://api.openai.com/v1", False),
        ("https://api.openai.com:8443/v1", False),
        ("https://api.openai.com.other.example/v1", False),
        ("https://notapi.openai.com/v1", False),
        ("https://api.openai.com@other.example/v1", False),
        ("https://other.example\\@api.openai.com/v1", False),
        ("https://api.openai.com\t.other.example/v1", False),
        ("https://api\uff0eopenai.com/v1", False),
        (CUSTOM, False),
    ],
)
def test_the_own_hosts_of_a_provider(tmp_path: Path, base_url: str, is_sent: bool) -> None:
    settings = home(tmp_path, {"model": "m"}, OPENAI_API_KEY="sk")
    assert where(settings, provider="openai", name="m", base_url=base_url)[3] == ("sk" if is_sent else "")
    assert where(settings, provider="custom", name="m", base_url=base_url)[3] == ("sk" if is_sent else "")


def test_a_configured_key_stays_with_its_address(tmp_path: Path) -> None:
    filed = home(tmp_path, {"model": {**FILED, "api_key": "k"}}, OPENROUTER_API_KEY="or")
    assert where(filed)[3] == "k"
    assert where(filed, base_url="http://127.0.0.1:18767/other", name="m")[3] == "k"
    assert where(filed, base_url="http://127.0.0.1:18768/v1", name="m")[3] == ""
    assert where(filed, provider="openrouter", name="m")[2:] == ("https://openrouter.ai/api/v1", "or")
    by_provider = home(tmp_path, {"model": {"provider": "openai", "default": "m", "api_key": "k"}})
    assert where(by_provider)[3] == "k"
    assert where(by_provider, provider="openai", name="m", base_url=CUSTOM)[3] == ""
    alone = home(tmp_path, {"model": {"default": "m", "api_key": "k"}}, OPENAI_BASE_URL=CUSTOM)
    assert where(alone)[2:] == (CUSTOM, "")


def test_who_gives_key_and_address_together_is_obeyed(tmp_path: Path) -> None:
    settings = home(tmp_path, {"model": FILED}, OPENAI_API_KEY="sk")
    assert where(settings, base_url="http://10.0.0.5/v1", name="m", api_key="sk")[3] == "sk"
    assert where(settings, provider="openai", name="m", api_key="mine")[3] == "mine"
    assert where(settings, api_key="mine")[2:] == (CUSTOM, "mine")
    written = home(tmp_path, {"model": {**FILED, "api_key": "${OPENAI_API_KEY}"}}, OPENAI_API_KEY="sk")
    assert where(written)[3] == "sk"
    named = {"lab": {"base_url": "http://10.0.0.5/v1", "key_env": "OPENAI_API_KEY"}}
    assert where(home(tmp_path, {"providers": named}, OPENAI_API_KEY="sk"), provider="lab", name="m")[3] == "sk"


def test_headers_of_a_server_stay_with_its_address(tmp_path: Path) -> None:
    lab = {"base_url": "http://10.0.0.5/v1", "headers": {"authorization": "Bearer k"}}
    settings = home(tmp_path, {"providers": {"lab": lab}})
    assert resolve(settings, ModelQuery(provider="lab", name="m")).endpoint.headers == lab["headers"]
    moved = resolve(settings, ModelQuery(provider="lab", name="m", base_url="http://10.0.0.6/v1")).endpoint
    assert (moved.base_url, moved.headers) == ("http://10.0.0.6/v1", {})


def test_the_address_of_a_plan_within_another_host_is_the_plans(tmp_path: Path) -> None:
    keys = {"DASHSCOPE_API_KEY": "general", "ALIBABA_CODING_PLAN_API_KEY": "plan"}
    settings = home(tmp_path, {}, **keys)
    assert where(settings, provider="alibaba-coding-plan", name="m")[3] == "plan"
    assert where(settings, provider="alibaba", name="m")[3] == "general"
    coding = where(settings, provider="alibaba-coding-plan", name="m")[2]
    assert where(settings, provider="alibaba", name="m", base_url=coding)[3] == ""


async def test_aws_credentials_sign_for_aws_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore", reason="botocore, which signs, is not installed")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "aws-secret")
    http = Recorder()
    for base_url in (CUSTOM, "http://bedrock-runtime.eu-west-1.amazonaws.com"):
        wanted = ModelQuery(provider="bedrock", name="m", base_url=base_url)
        with pytest.raises(ProviderError, match="which is no address of AWS; give it an API key"):
            await Room(resolve_model(home(tmp_path), http, wanted)).ask()
    assert http.sent == []
    named = home(tmp_path, AWS_ENDPOINT_URL_BEDROCK_RUNTIME=CUSTOM)
    with pytest.raises(ProviderError, match="401"):
        await Room(resolve_model(named, http, ModelQuery(provider="bedrock", name="m", base_url=CUSTOM))).ask()
    assert "aws-secret" in http.sent[0].text


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_takes_no_key_along(tmp_path: Path, http: HttpClient, status: int) -> None:
    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = (
            f"HTTP/1.1 {status} Moved\r\nlocation: {other.base_url}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
        writer.write(head.encode())
        await writer.drain()
        writer.close()

    async with ScriptedServer([says("stolen")]) as other, await asyncio.start_server(redirect, "127.0.0.1", 0) as here:
        base_url = f"http://127.0.0.1:{here.sockets[0].getsockname()[1]}/v1"
        wanted = ModelQuery(name="m", base_url=base_url, api_key="k")
        with pytest.raises(ProviderError, match=str(status)):
            await Room(resolve_model(home(tmp_path), http, wanted), max_attempts=1).ask()
        assert other.requests == []


# -- what a person is told ------------------------------------------------------------------------------------------


def withheld(settings: Settings, **wanted: Any) -> str:
    return resolve(settings, ModelQuery(**wanted)).endpoint.withheld


def test_a_key_that_is_kept_back_is_told_with_the_way_to_give_one(tmp_path: Path) -> None:
    settings = home(tmp_path, {"model": FILED}, OPENAI_API_KEY="sk", ANTHROPIC_API_KEY="sk-ant")
    assert withheld(settings) == (
        "OPENAI_API_KEY belongs to OpenAI and is not sent to 127.0.0.1:18767; if 127.0.0.1:18767 needs a key, "
        "set it: hermes config set model.api_key KEY"
    )
    assert withheld(settings, provider="anthropic", name="m", base_url="http://me:secret@10.0.0.5/v1") == (
        "ANTHROPIC_API_KEY belongs to Anthropic and is not sent to 10.0.0.5; if 10.0.0.5 needs a key, "
        "write both down: hermes model NAME --base-url URL --api-key KEY"
    )
    lab = {"base_url": "http://10.0.0.5/v1", "key_env": "LAB_KEY"}
    own = home(tmp_path, {"model": {"provider": "lab", "default": "m"}, "providers": {"lab": lab}}, LAB_KEY="k")
    assert withheld(own) == ""
    assert withheld(own, provider="lab", name="m", base_url="http://10.0.0.6/v1") == (
        "the key of providers.lab belongs to 10.0.0.5 and is not sent to 10.0.0.6; if 10.0.0.6 needs a key, "
        "set providers.lab.key_env to the variable that holds its key"
    )
    other = home(tmp_path, {"model": {**FILED, "api_key": "k"}})
    assert withheld(other, provider="openai", name="m") == (
        "model.api_key belongs to 127.0.0.1:18767 and is not sent to api.openai.com; if api.openai.com needs a key, "
        "set it: hermes config set OPENAI_API_KEY KEY"
    )


async def test_the_word_comes_before_the_first_call_and_with_a_refusal(tmp_path: Path) -> None:
    settings = home(tmp_path, {"model": FILED}, OPENAI_API_KEY="sk")
    room = Room(resolve_model(settings, Recorder()))
    with pytest.raises(ProviderError, match=r"401.*OPENAI_API_KEY belongs to OpenAI.*hermes config set model.api_key"):
        await room.ask()
    assert [one.partition(" belongs")[0] for one in room.statuses("warning")] == ["OPENAI_API_KEY"]
