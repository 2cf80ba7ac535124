"""Editors that do everything at the wrong moment: nothing hangs, nothing is lost, and the session goes on."""

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.config.write import set_key
from hermes.host.installation import Installation
from hermes.surfaces.acp.connection import EditorConnection, EditorPipes, lines_of, write_all
from hermes.surfaces.acp.editor_agent import EditorAgent
from hermes.testing.replies import Reply, calls, says
from hermes.testing.server import ScriptedServer, ServerThread
from tests.surfaces.acp.editor import ALLOW, DENY, PARAMS
from tests.surfaces.cli.interactive.terminal import answering

CASES = 10_000 if os.environ.get("HERMES_TEST_FULL") == "1" else 200
AT_ONCE = 8
STEP_S = 60.0
COMMAND = (sys.executable, "-P", "-m", "hermes.surfaces.acp.main")
COMMANDS, CASES_EACH = 10, 10  # a hundred against the real command
TURNS: dict[str, list[Reply]] = {
    "Edit": [calls("write_file", path="note.txt", content="new\n"), says("Edited.")],
    "Read": [calls("read_file", path="note.txt"), says("Read.")],
    "Twice": [
        calls("write_file", path="a.txt", content="a"),
        calls("write_file", path="b.txt", content="b"),
        says("."),
    ],
    "Talk": [says("Words.")],
}
GARBAGE = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'{"jsonrpc":"2.0"}',
    b'{"id":1,"result":{}}',
    b"\xff\xfe",
    b'{"method":1,"id":1}',
)


class WildEditor:
    """One connection over real pipes; several cases talk through it at once, each with sessions of its own."""

    def __init__(self, chance: random.Random, into: int, out: int) -> None:
        self._chance, self._into, self._out = chance, into, out
        self._number = 0
        self._waiting: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self.updates: dict[str, list[dict[str, Any]]] = {}
        self.asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._stops = False

    async def read(self) -> None:
        async for line in lines_of(self._out):
            frame = json.loads(line)  # every byte is a frame
            assert frame["jsonrpc"] == "2.0"
            if frame.get("method") == "session/update":
                PARAMS["session/update"].model_validate(frame["params"])
                self.updates.setdefault(frame["params"]["sessionId"], []).append(frame["params"]["update"])
            elif "method" in frame:
                self._answer(frame)
            elif (waiting := self._waiting.pop(frame.get("id"), None)) is not None and not waiting.done():
                waiting.set_result(frame)

    def send(self, data: bytes) -> None:
        """Written in pieces, wherever they are cut."""
        line = data + b"\n"
        at = self._chance.randrange(len(line)) if self._chance.random() < 0.3 else 0
        for piece in (line[:at], line[at:]):
            if piece:
                os.write(self._into, piece)

    def begin(self, method: str, **params: Any) -> "asyncio.Future[dict[str, Any]]":
        self._number += 1
        number: Any = self._number if self._chance.random() < 0.8 else f"n{self._number}"
        waiting: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        self.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
        return waiting

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        async with asyncio.timeout(STEP_S):
            return await self.begin(method, **params)

    def _answer(self, frame: dict[str, Any]) -> None:
        said = self._chance.choice(
            [ALLOW, ALLOW, DENY, {"outcome": {"outcome": "cancelled"}}, {"x": 1}, "error", "twice"]
        )
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": frame["id"]}
        reply |= (
            {"error": {"code": -1, "message": "no"}}
            if said == "error"
            else {"result": ALLOW if said == "twice" else said}
        )
        data = json.dumps(reply).encode()
        loop = asyncio.get_running_loop()
        delays = [self._chance.choice([0, 0, 0.005])] + ([0.01] if said == "twice" else [])
        for delay in delays:
            loop.call_later(delay, self.send, data)


@asynccontextmanager
async def wild_editor(home: Path, seed: int) -> AsyncIterator[WildEditor]:
    (server_in, editor_in), (editor_out, server_out) = os.pipe(), os.pipe()
    connection = EditorConnection(EditorPipes(lines_of(server_in), write_all(server_out)))
    agent = EditorAgent(connection, Installation(home, {"PATH": "/usr/bin:/bin"}))
    editor = WildEditor(random.Random(seed), editor_in, editor_out)

    async def serve() -> None:
        try:
            await connection.run(agent.handle)
        finally:
            await agent.close()
            os.close(server_out)

    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve())
        group.create_task(editor.read())
        try:
            yield editor
        finally:
            os.close(editor_in)
            async with asyncio.timeout(STEP_S):
                await serving
    os.close(server_in)
    os.close(editor_out)


@asynccontextmanager
async def wild_command(environ: dict[str, str], folder: Path, seed: int) -> AsyncIterator[WildEditor]:
    """The real command with a wild editor, which goes away at the end, whatever is under way then."""
    (server_in, editor_in), (editor_out, server_out) = os.pipe(), os.pipe()
    process = await asyncio.create_subprocess_exec(
        *COMMAND, env=environ, cwd=folder, stdin=server_in, stdout=server_out, stderr=asyncio.subprocess.DEVNULL
    )
    os.close(server_in)
    os.close(server_out)
    editor = WildEditor(random.Random(seed), editor_in, editor_out)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(editor.read())  # ends when the command has
            try:
                yield editor
            finally:
                os.close(editor_in)
                async with asyncio.timeout(STEP_S):
                    assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(editor_out)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ServerThread(answering(TURNS)) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, server: ScriptedServer) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    set_key(home, "model.default", "scripted")
    set_key(home, "model.base_url", server.base_url)
    return home


async def one_case(editor: WildEditor, chance: random.Random, folder: Path) -> None:
    opened = await editor.call("session/new", cwd=str(folder), mcpServers=[])
    session = opened["result"]["sessionId"]
    running: list[asyncio.Future[dict[str, Any]]] = []
    for _ in range(chance.randint(1, 4)):
        match chance.randrange(8):
            case 0 | 1 | 2:
                words = chance.choice([*TURNS, "/context", "", "/nonsense here"])
                prompt = [{"type": "text", "text": words}]
                running.append(editor.begin("session/prompt", sessionId=session, prompt=prompt))
            case 3:
                editor.send(
                    json.dumps(
                        {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
                    ).encode()
                )
            case 4:
                await editor.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
            case 5:
                mode = chance.choice(["default", "accept_edits", "dont_ask", "plan", "nonsense"])
                await editor.call("session/set_mode", sessionId=session, modeId=mode)
            case 6:
                editor.send(chance.choice(GARBAGE))
            case _:
                await asyncio.sleep(chance.choice([0, 0.003, 0.02]))
    for turn in running:
        async with asyncio.timeout(STEP_S):
            reply = await turn
        assert reply["result"]["stopReason"] in ("end_turn", "cancelled")
    last = await editor.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Talk"}])
    assert last["result"]["stopReason"] == "end_turn"
    told = editor.updates[session]
    started = {update["toolCallId"] for update in told if update["sessionUpdate"] == "tool_call"}
    ended = {update["toolCallId"] for update in told if update.get("status") in ("completed", "failed")}
    assert started <= ended
    await editor.call("session/close", sessionId=session)


async def test_every_order_of_prompts_cancels_answers_and_garbage_leaves_a_working_session(
    home: Path, tmp_path: Path, server: ScriptedServer
) -> None:
    seeds = iter(range(CASES))

    async def cases(editor: WildEditor) -> None:
        for seed in seeds:
            chance = random.Random(seed)
            folder = tmp_path / f"w{seed % AT_ONCE}"
            folder.mkdir(exist_ok=True)
            (folder / "note.txt").write_text("old\n")
            try:
                await one_case(editor, chance, folder)
            except BaseException as error:
                error.add_note(f"case {seed}")
                raise
            server.requests.clear()  # thousands of them, of which nobody asks

    async with wild_editor(home, 32) as editor, asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(cases(editor))


@pytest.mark.parametrize("seed", range(CASES // 20))
async def test_an_editor_that_goes_away_loses_nothing(home: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    (tmp_path / "note.txt").write_text("old\n")
    async with wild_editor(home, seed) as editor:
        session = (await editor.call("session/new", cwd=str(tmp_path), mcpServers=[]))["result"]["sessionId"]
        await editor.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Talk"}])
        for _ in range(chance.randint(0, 2)):
            words = chance.choice(list(TURNS))
            editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": words}])
        await asyncio.sleep(chance.choice([0, 0.005, 0.03]))
    async with wild_editor(home, seed + 1) as editor:
        loaded = await editor.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert "result" in loaded
        said = [
            one["content"]["text"] for one in editor.updates[session] if one["sessionUpdate"] == "user_message_chunk"
        ]
        assert said[0] == "Talk"
        last = await editor.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Talk"}])
        assert last["result"]["stopReason"] == "end_turn"


@pytest.mark.full
@pytest.mark.parametrize("number", range(COMMANDS))
async def test_the_real_command_takes_all_of_it_and_an_editor_that_goes_away(
    home: Path, tmp_path: Path, number: int
) -> None:
    keep = {name: os.environ[name] for name in ("PATH", "LANG", "HERMES_CHECK_RUN") if name in os.environ}
    environ = keep | {
        "HERMES_HOME": str(home),
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path(__file__).parents[3] / "src"),
    }
    chance = random.Random(number)
    seeds = iter(range(number * CASES_EACH, (number + 1) * CASES_EACH))
    (tmp_path / "note.txt").write_text("old\n")

    async def cases(editor: WildEditor) -> None:
        for seed in seeds:
            folder = tmp_path / f"w{seed}"
            folder.mkdir()
            (folder / "note.txt").write_text("old\n")
            await one_case(editor, random.Random(seed), folder)

    async with wild_command(environ, tmp_path, number) as editor:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(cases(editor))
        session = (await editor.call("session/new", cwd=str(tmp_path), mcpServers=[]))["result"]["sessionId"]
        await editor.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Talk"}])
        for _ in range(chance.randint(1, 3)):
            words = chance.choice(list(TURNS))
            editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": words}])
        await asyncio.sleep(chance.choice([0, 0.01, 0.1, 0.5]))
    async with wild_command(environ, tmp_path, number) as editor:
        assert "result" in await editor.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        said = [one["content"]["text"] for one in editor.updates[session] if "user" in one["sessionUpdate"]]
        assert said[0] == "Talk"
        last = await editor.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Talk"}])
        assert last["result"]["stopReason"] == "end_turn"
