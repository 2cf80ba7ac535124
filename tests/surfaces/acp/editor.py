"""An editor in this process: a server over pipes, and every frame of both sides checked by the reference SDK."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import schema
from pydantic import BaseModel

from hermes.host.installation import Installation
from hermes.surfaces.acp.connection import EditorConnection, EditorPipes
from hermes.surfaces.acp.editor_agent import EditorAgent

WAIT_S = 60.0
RESULTS: dict[str, type[BaseModel]] = {
    "initialize": schema.InitializeResponse,
    "authenticate": schema.AuthenticateResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
    "session/close": schema.CloseSessionResponse,
}
PARAMS: dict[str, type[BaseModel]] = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
    "fs/read_text_file": schema.ReadTextFileRequest,
}
ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
DENY = {"outcome": {"outcome": "selected", "optionId": "deny"}}
Answer = Callable[[str, dict[str, Any]], Any]


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]
        self.data = error.get("data")


class Editor:
    """What an editor keeps: the updates of each session, and what it was asked. `answer` says what it answers."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer: Answer = answer or (lambda _method, _params: DENY)
        self.into: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.updates: list[dict[str, Any]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.strays: list[dict[str, Any]] = []
        self.news = asyncio.Event()
        self._waiting: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._number = 0
        self._loop = asyncio.get_running_loop()

    async def lines(self) -> AsyncIterator[bytes]:
        while (line := await self.into.get()) is not None:
            yield line

    def write(self, frames: bytes) -> None:
        for line in frames.splitlines():
            self._loop.call_soon_threadsafe(self._read, line)

    def send(self, frame: Any) -> None:
        self.into.put_nowait(frame if isinstance(frame, bytes) else json.dumps(frame).encode())

    def begin(self, method: str, **params: Any) -> "asyncio.Future[Any]":
        self._number += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = (method, future)
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return future

    async def call(self, method: str, **params: Any) -> Any:
        async with asyncio.timeout(WAIT_S):
            return await self.begin(method, **params)

    async def prompt(self, session: str, text: str) -> Any:
        return await self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def new(self, cwd: Path) -> str:
        found = await self.call("session/new", cwd=str(cwd), mcpServers=[])
        return str(found["sessionId"])

    def cancel(self, session: str) -> None:
        self.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})

    async def until(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first update that fits, which may still have to come."""
        async with asyncio.timeout(WAIT_S):
            while True:
                if found := next((update for update in self.updates if fits(update)), None):
                    return found
                self.news.clear()
                await self.news.wait()

    async def stray(self) -> dict[str, Any]:
        """The first frame that answers nothing it asked."""
        async with asyncio.timeout(WAIT_S):
            while not self.strays:
                self.news.clear()
                await self.news.wait()
        return self.strays[0]

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    @property
    def text(self) -> str:
        return "".join(update["content"]["text"] for update in self.told("agent_message_chunk"))

    def _read(self, line: bytes) -> None:
        frame = json.loads(line)
        assert frame["jsonrpc"] == "2.0"
        if "method" in frame:
            PARAMS[frame["method"]].model_validate(frame["params"])
            if frame["method"] == "session/update":
                self.updates.append(frame["params"]["update"])
            else:
                self.asked.append((frame["method"], frame["params"]))
                said = self.answer(frame["method"], frame["params"])
                if said is not None:
                    key = "error" if "code" in said else "result"
                    self.send({"jsonrpc": "2.0", "id": frame["id"], key: said})
        elif (waiting := self._waiting.pop(frame["id"], None)) is not None:
            method, future = waiting
            if "error" in frame:
                future.set_exception(Refused(frame["error"]))
            else:
                if method in RESULTS:
                    RESULTS[method].model_validate(frame["result"])
                future.set_result(frame["result"])
        else:
            self.strays.append(frame)
        self.news.set()


@asynccontextmanager
async def editor_at(home: Path, environ: dict[str, str], answer: Answer | None = None) -> AsyncIterator[Editor]:
    """An editor with a server of its own; leaving it closes the editor's end."""
    editor = Editor(answer)
    connection = EditorConnection(EditorPipes(editor.lines(), editor.write))
    agent = EditorAgent(connection, Installation(home, environ))

    async def serve() -> None:
        try:
            await connection.run(agent.handle)
        finally:
            await agent.close()

    async with asyncio.TaskGroup() as group:
        group.create_task(serve())
        try:
            yield editor
        finally:
            editor.into.put_nowait(None)
