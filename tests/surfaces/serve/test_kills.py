"""SIGKILLs of the server under load: what was acknowledged runs once or is told as unknown, and clients come back."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from hermes.config.load import load_settings
from hermes.host.agent_settings import AgentSettings
from hermes.host.events import LiveEvent, MessageTaken, Notice, TurnEnded
from hermes.host.hosted_session import SessionStart
from hermes.host.installation import Installation
from hermes.host.wire.remote_host import RemoteHost
from hermes.host.wire.remote_session import UNKNOWN, RemoteSession
from hermes.host.wire.serve_folder import ServeFolder, ServerNote
from hermes.runtime.setup.process import shared
from hermes.state import SessionDB
from hermes.testing.replies import Reply, calls, says
from hermes.testing.server import RecordedRequest, ServerThread
from hermes.types import CallFinished, CallStarted, ToolResult, text_of
from tests.surfaces.serve.conftest import WAIT_S

KILLS = 200 if os.environ.get("HERMES_TEST_FULL") else 5
CLIENTS = 3


class Talker:
    """`SessionListener` that says one thing after the other, and keeps what became of each."""

    can_answer = True

    def __init__(self, live: RemoteSession, name: str) -> None:
        self.live, self.name = live, name
        self.said: list[str] = []
        self.ended: dict[str, TurnEnded] = {}  # by what was said
        self.results: dict[str, ToolResult] = {}  # of the call of each turn, as it was told last
        self.unknown = 0
        self.open_calls: Counter[str] = Counter()
        self._outcome = asyncio.Event()
        live.listen(self)

    def emit(self, event: LiveEvent) -> None:
        match event:
            case MessageTaken():
                self._taken = event.text
            case TurnEnded():
                self.ended[self._taken] = event
                self._outcome.set()
            case Notice() if event.text == UNKNOWN:
                self.unknown += 1
                self._outcome.set()
            case CallStarted():
                self.open_calls[event.call.id] += 1
            case CallFinished():
                self.open_calls.pop(event.call.id, None)
                self.results[self._taken] = event.result

    def offer(self, _text: str) -> bool:
        return False

    def lost(self, notes: Collection[str]) -> dict[str, Any]:
        """What was told as done, by its call or by the end of its turn, and was not."""
        lost = {}
        for text in self.ended.keys() | self.results.keys():
            ended, result = self.ended.get(text), self.results.get(text)
            is_told = result is not None and result.status == "ok" and '"exit_code": 0' in text_of(result.content)
            if ended is not None:  # which names what failed
                codes = [one["exit_code"] for one in ended.record.get("commands", ())]
                is_told = is_told or not (ended.record.get("failed_calls") or any(codes) or ended.why)
            if is_told and text.removeprefix("Note ").removesuffix(".") not in notes:
                lost[text] = (ended, result)
        return lost

    async def talk(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            text = f"Note {self.name}{len(self.said)}."
            self._outcome.clear()
            async with asyncio.timeout(WAIT_S):
                await self.live.submit(text)
                self.said.append(text)
                await self._outcome.wait()


def noting(folder: Path) -> Callable[[RecordedRequest], Reply]:
    """A model that writes each word it is given down, once, and says so."""

    def reply(request: RecordedRequest) -> Reply:
        messages = request.json["messages"]
        if "Give a title" in str(messages[0]["content"]):
            return says("A title")
        last = messages[-1]
        if last["role"] == "user":
            word = str(last["content"]).split("Note ", 1)[-1].split(".", 1)[0]
            return calls("terminal", command=f"echo {word} >> {folder}/notes")
        return says("Noted.")

    return reply


async def kill_often(folder: ServeFolder, seen: list[ServerNote], talkers: list[Talker]) -> None:
    """At any moment; every other time as soon as a turn has ended, however slow the machine is.

    A server is told by its whole note: of 200 one may well get the pid of an earlier one.
    """
    for number in range(KILLS):
        async with asyncio.timeout(WAIT_S):
            while (note := folder.note()) is None or note in seen or not folder.is_held:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            ended = sum(len(talker.ended) for talker in talkers)
            while number % 2 and sum(len(talker.ended) for talker in talkers) == ended:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await asyncio.sleep(random.uniform(0.0, 0.8))
        seen.append(note)
        os.kill(note.pid, signal.SIGKILL)


def _stop(environ: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "hermes", "serve", "--stop"], env=environ, timeout=WAIT_S, check=True)


async def test_every_acknowledged_message_runs_once_or_is_told_as_unknown(
    environ: dict[str, str], uses_model: Callable[..., None], home: Path, tmp_path: Path
) -> None:
    random.seed(24)
    killed: list[ServerNote] = []
    with ServerThread(noting(tmp_path)) as model:
        uses_model(model.base_url)
        installation = Installation(home, environ)
        settings = load_settings(home, environ=environ)
        start = SessionStart(settings=settings, asked=AgentSettings(source="cli"), folder=str(tmp_path))
        is_over = asyncio.Event()
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, _stop, environ)
            stack.push_async_callback(shared.close)
            talkers = []
            for name in "abc"[:CLIENTS]:
                host = await stack.enter_async_context(RemoteHost(installation, str(tmp_path)))
                talkers.append(Talker(host.session(start), name))
            async with asyncio.TaskGroup() as group:
                for talker in talkers:
                    await talker.live.open()
                    group.create_task(talker.talk(is_over.is_set))
                await kill_often(ServeFolder(home), killed, talkers)
                is_over.set()
    assert len(killed) == KILLS
    notes = Counter((tmp_path / "notes").read_text().split())
    assert max(notes.values()) == 1, notes
    with SessionDB(home / "state.db") as db:
        for talker in talkers:
            rows = db.get_messages(talker.live.session_id)
            stored = [str(row["content"]) for row in rows if row["role"] == "user"]
            assert stored == talker.said, talker.name
            assert len(talker.ended) + talker.unknown >= len(talker.said)
            assert any(result.status == "ok" for result in talker.results.values())
            assert not talker.lost(notes)
            assert not talker.open_calls
    assert sum(len(talker.said) for talker in talkers) >= KILLS
