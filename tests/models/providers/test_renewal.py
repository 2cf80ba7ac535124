"""Tokens of a sign-in: renewed when they run out or are refused, and kept for other processes."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from hermes.config.load import load_settings
from hermes.errors import ProviderError, UserError
from hermes.models.http.client import HttpClient
from hermes.models.providers.resolve import ModelQuery, resolve_model
from hermes.testing.replies import Reply, fault, says
from hermes.testing.server import RecordedRequest, ScriptedServer
from hermes.testing.server.exchange import Exchange, read_request
from tests.models.rooms import Room, scripted


class TokenServer:
    """A token endpoint on loopback: each refresh token is good once, and gives the next one."""

    def __init__(self) -> None:
        self.forms: list[dict[str, str]] = []
        self.good = "r1"
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (parts := await read_request(reader)) is not None:
            method, path, headers, raw = parts
            form = {name: values[0] for name, values in parse_qs(raw.decode()).items()}
            self.forms.append(form)
            exchange = Exchange(RecordedRequest(method, path, headers, raw, None), reader, writer)
            if form.get("refresh_token") != self.good:
                await exchange.respond(400, b'{"error": "invalid_grant"}')
                continue
            number = int(self.good[1:]) + 1
            self.good = f"r{number}"
            body = {"access_token": f"a{number}", "refresh_token": self.good, "expires_in": 3600}
            await exchange.respond(200, json.dumps(body).encode())
        writer.close()


@pytest.fixture
async def tokens() -> AsyncIterator[TokenServer]:
    made = TokenServer()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
    yield made
    server.close()


def by_token(got: RecordedRequest) -> Reply:
    return says("ok") if got.headers["authorization"] == "Bearer a2" else fault("unauthorized")


def signed_in(home: Path, tokens: TokenServer, address: str, **more: Any) -> Path:
    entry = {"access_token": "a1", "refresh_token": "r1", "token_url": tokens.url, "client_id": "c", **more}
    file = home / "auth.json"
    file.write_text(json.dumps({"providers": {"nous": {"base_url": address, **entry}}}))
    return file


def stored(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())["providers"]["nous"]
    return found


async def test_a_refused_token_is_renewed_and_kept(tmp_path: Path, tokens: TokenServer, http: HttpClient) -> None:
    async with ScriptedServer(by_token) as server:
        file = signed_in(tmp_path, tokens, server.base_url)
        settings = load_settings(tmp_path, environ={})
        room = Room(resolve_model(settings, http, ModelQuery(provider="nous", name="m")))
        assert (await room.ask()).response.message.content == "ok"
        assert (await room.ask()).response.message.content == "ok"
    assert tokens.forms == [{"grant_type": "refresh_token", "refresh_token": "r1", "client_id": "c"}]
    assert (stored(file)["access_token"], stored(file)["refresh_token"]) == ("a2", "r2")
    assert stored(file)["expires_at"] > time.time() + 3000
    assert file.stat().st_mode & 0o077 == 0
    assert room.scope.slept == []
    assert [outcome for *_, outcome in room.rows()] == ["failed", "ok", "ok"]


async def test_a_token_that_has_run_out_is_renewed_before_it_is_sent(
    tmp_path: Path, tokens: TokenServer, http: HttpClient
) -> None:
    async with ScriptedServer(by_token) as server:
        signed_in(tmp_path, tokens, server.base_url, expires_at=time.time() - 5)
        room = Room(resolve_model(load_settings(tmp_path, environ={}), http, ModelQuery(provider="nous", name="m")))
        await room.ask()
        assert len(server.requests) == 1
    assert room.statuses("probe") == ["renewing the sign-in of nous"]


async def test_what_another_process_has_renewed_is_taken(tmp_path: Path, tokens: TokenServer, http: HttpClient) -> None:
    async with ScriptedServer(by_token) as server:
        file = signed_in(tmp_path, tokens, server.base_url)
        model = resolve_model(load_settings(tmp_path, environ={}), http, ModelQuery(provider="nous", name="m"))
        content = json.loads(file.read_text())
        content["providers"]["nous"] |= {"access_token": "a2", "refresh_token": "r2"}
        file.write_text(json.dumps(content))
        await Room(model).ask()
    assert tokens.forms == []


async def test_a_sign_in_that_cannot_be_renewed_hands_over(
    tmp_path: Path, tokens: TokenServer, http: HttpClient
) -> None:
    tokens.good = "r9"
    async with ScriptedServer(by_token) as server:
        signed_in(tmp_path, tokens, server.base_url)
        model = resolve_model(load_settings(tmp_path, environ={}), http, ModelQuery(provider="nous", name="m"))
        with pytest.raises(ProviderError, match="could not be renewed") as error:
            await Room(model).ask()
        assert (await Room(model, scripted("two", says("from two"))).ask()).model == "two"
    assert error.value.reason == "auth"
    assert "r1" not in str(error.value)


def test_without_a_sign_in_one_sentence_says_what_to_do(tmp_path: Path, http: HttpClient) -> None:
    with pytest.raises(UserError, match=r"signs in through a browser.*auth\.json"):
        resolve_model(load_settings(tmp_path, environ={}), http, ModelQuery(provider="nous", name="m"))
