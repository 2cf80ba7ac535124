"""Which model is found when nobody has chosen one, and what is offered to who chooses."""

import asyncio
from pathlib import Path

import pytest

from hermes.config.load import load_settings
from hermes.errors import UserError
from hermes.host.installation import Installation, is_model_chosen
from hermes.host.model_choice import ModelChoice, adopt_choice, offered_providers, provider_meant
from hermes.host.model_discovery import ServerPlace, by_key, by_server, usual_places
from hermes.testing.server import ScriptedServer


def test_a_known_key_names_provider_and_model_and_says_why(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, environ={"ANTHROPIC_API_KEY": "k"})
    assert not is_model_chosen(settings)
    pick = by_key(settings)
    assert pick is not None
    assert pick.flags == {"model.provider": "anthropic", "model.default": "claude-sonnet-4-5"}
    assert "because ANTHROPIC_API_KEY is set" in pick.why


def test_a_key_without_a_usual_model_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="NOVITA_API_KEY is set, but no model of Novita is chosen"):
        by_key(load_settings(tmp_path, environ={"NOVITA_API_KEY": "k"}))


@pytest.mark.parametrize("key", ["model.default", "model.base_url", "model.provider"])
def test_flags_and_config_come_before_everything(tmp_path: Path, key: str) -> None:
    assert is_model_chosen(load_settings(tmp_path, environ={"ANTHROPIC_API_KEY": "k"}, flags={key: "ollama"}))
    assert not is_model_chosen(load_settings(tmp_path, environ={}, flags={"model.provider": "auto"}))


async def test_of_the_places_that_answer_the_first_one_with_a_model_is_taken() -> None:
    async def web_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not await reader.readline():  # a knock: somebody looked whether anything listens here
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    other = await asyncio.start_server(web_page, "127.0.0.1", 0)
    async with other, ScriptedServer(models=("small", "large")) as server:
        ports = [other.sockets[0].getsockname()[1], int(server.url.rpartition(":")[2])]
        places = [ServerPlace("llamacpp", "127.0.0.1", 1), *(ServerPlace("vllm", "127.0.0.1", port) for port in ports)]
        pick = await by_server(places)
    assert pick is not None
    assert pick.flags == {"model.provider": "vllm", "model.base_url": places[2].base_url, "model.default": "small"}
    assert "of 2 there" in pick.why


async def test_nothing_listening_finds_nothing() -> None:
    assert await by_server([ServerPlace("ollama", "127.0.0.1", 1), ServerPlace("vllm", "127.0.0.1", 2)]) is None


def test_the_usual_ports_are_tried_and_ollamas_own_first(tmp_path: Path) -> None:
    places = usual_places(load_settings(tmp_path, environ={"OLLAMA_HOST": "127.0.0.1:4711"}))
    assert [place.port for place in places] == [4711, 11434, 1234, 8080, 8000]


class Watcher:
    """`SetupWatcher` that keeps what it hears."""

    draws_over = False

    def __init__(self) -> None:
        self.heard: list[str] = []

    def note(self, text: str) -> None:
        self.heard.append(text)

    def progress(self, text: str) -> None:
        self.heard.append(text)


async def test_a_choice_is_tried_and_written_down_without_any_terminal(tmp_path: Path) -> None:
    installation, watcher = Installation(tmp_path, {"HERMES_HOME": str(tmp_path)}), Watcher()
    async with ScriptedServer(models=("small", "large")) as server:
        choice = ModelChoice(base_url=server.base_url, model="small", api_key="the-key-of-this-server")
        written = await adopt_choice(installation, watcher, choice, is_tried=True)
        with pytest.raises(UserError, match="nothing was changed"):
            await adopt_choice(installation, watcher, ModelChoice(model="smal"), is_tried=True)
    assert "model.default = small" in written
    assert "the key is right" in watcher.heard[0]
    assert installation.settings().get("model.default") == "small"


def test_providers_whose_key_is_set_are_offered_first_and_found_by_a_part_of_their_name(tmp_path: Path) -> None:
    offered = offered_providers(load_settings(tmp_path, environ={"DEEPSEEK_API_KEY": "k"}))
    assert (offered[0].entry.id, offered[0].has_key) == ("deepseek", True)
    assert [one.entry.id for one in offered[1:3]] == ["openrouter", "anthropic"]
    meant = provider_meant("deepse", offered)
    assert meant is not None
    assert meant.id == "deepseek"
    assert provider_meant("e", offered) is None
