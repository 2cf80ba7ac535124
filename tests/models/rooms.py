"""A client in a room of its own: its store, its clock, and what it told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import field

from hermes.errors import ProviderError
from hermes.models.attempts import ClientOptions
from hermes.models.client import CallPlan, ModelClient
from hermes.scope import TurnScope
from hermes.seams import HttpLimits, Model, ModelRequest
from hermes.testing.fakes import CountedIds, HandClock
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.types import StatusChanged
from tests.models.wire_cases import asked

QUICK = HttpLimits(connect_s=5.0, first_byte_s=1.0, idle_s=1.0)


class Sleepless(TurnScope):
    """A scope whose waits are noted instead of waited."""

    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Room:
    """A client, its store, and what it told."""

    def __init__(self, *chain: Model, store: Any = None, **options: Any) -> None:
        self.store = store or MemoryStore()
        self.clock = options.pop("clock", None) or HandClock()
        self.told: list[Any] = []
        self.scope: Any = options.pop("scope", None) or Sleepless()
        options.setdefault("jitter", lambda: 0.0)
        ids = options.pop("ids", None) or CountedIds()
        self.client = ModelClient(chain, self.store, self.clock, ids, ClientOptions(**options))

    async def ask(self, request: ModelRequest | None = None, **plan: Any) -> Any:
        plan.setdefault("purpose", "turn")
        plan.setdefault("session_id", None)
        answer = await self.client.call(request or asked(), CallPlan(on_status=self.told.append, **plan), self.scope)
        await self.store.commit(answer.closing)
        return answer

    def rows(self) -> list[tuple[str, str, str]]:
        """(model, provider, outcome) of each attempt, in order."""
        return [
            (opened.model, opened.provider, closed.outcome if closed else "open")
            for opened, closed in self.store.attempts.values()
        ]

    def statuses(self, kind: str) -> list[str]:
        return [one.message for one in self.told if isinstance(one, StatusChanged) and one.kind == kind]


def scripted(name: str, *script: Any) -> ScriptedModel:
    model = ScriptedModel(*script)
    model.name, model.provider = name, f"{name}-provider"
    return model


def failing(reason: Any, **more: Any) -> ProviderError:
    return ProviderError(f"it is {reason}", reason=reason, **more)


@asynccontextmanager
async def answering(seen: list[str] | None = None, **pages: Any) -> AsyncIterator[str]:
    """A server that answers with JSON by path (`/` is `__`), with 404 else, and never where the page is `...`.

    Its address; `seen` becomes a list of what it was asked for.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        if seen is not None:
            seen.append(path)
        found = {f"/{name.replace('__', '/')}": page for name, page in pages.items()}.get(path)
        if found is ...:
            await reader.read()
            writer.close()
            return
        body = msgspec.json.encode(found)
        status = b"404 Not Found" if found is None else b"200 OK"
        writer.write(b"HTTP/1.1 %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
