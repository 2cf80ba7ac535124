"""A chat platform in one file: people write to a room, the host does the rest, and buttons answer its questions."""

import asyncio
from pathlib import Path

from hermes.config.load import load_settings
from hermes.errors import HermesError
from hermes.host.agent_settings import AgentSettings
from hermes.host.command import SurfaceFacts, is_command, run_command
from hermes.host.events import LiveEvent, QuestionAsked, TurnEnded
from hermes.host.host import Host
from hermes.host.hosted_session import SessionStart
from hermes.host.live_session import LiveSession
from hermes.runtime.setup.process import shared
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread
from tests.surfaces.cli.interactive.terminal import answering

CHAT = SurfaceFacts(kind="chat")


class Room:
    """`SessionListener` of one room: what is posted there, and the session that its people talk to."""

    can_answer = True

    def __init__(self, live: LiveSession) -> None:
        self.live = live
        self.posted: asyncio.Queue[str] = asyncio.Queue()
        self.buttons: dict[str, tuple[str, ...]] = {}
        live.listen(self)

    def emit(self, event: LiveEvent) -> None:
        if isinstance(event, TurnEnded):
            self.posted.put_nowait(event.answer or event.why)
        elif isinstance(event, QuestionAsked):
            self.buttons[event.question.id] = event.question.choices
            self.posted.put_nowait(f"May I? {event.question.details['command']}")

    def offer(self, _text: str) -> bool:
        return False


class Platform:
    """Rooms by name. A message has an id, so that one which the network brings twice is heard once."""

    def __init__(self, host: Host, start: SessionStart) -> None:
        self._host = host
        self._start = start
        self.rooms: dict[str, Room] = {}

    async def received(self, room: str, message_id: str, text: str) -> Room:
        found = self.rooms.get(room) or self.rooms.setdefault(room, Room(self._host.session(self._start)))
        try:
            if is_command(text):
                result = await run_command(found.live, text[1:], CHAT)
                found.posted.put_nowait(result.text or result.note)
            else:
                await found.live.submit(text, key=message_id)
        except HermesError as error:
            found.posted.put_nowait(str(error))
        return found


async def post(room: Room) -> str:
    async with asyncio.timeout(60):
        return await room.posted.get()


async def test_rooms_talk_command_and_press_buttons(tmp_path: Path) -> None:
    risky = answering({"Clean": [calls("terminal", command="rm -rf gone"), says("Not done, then.")]})
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "file").write_text("words")
    with ServerThread(risky) as server:
        flags = {"model.default": "scripted", "model.base_url": server.base_url}
        settings = load_settings(tmp_path / "home", environ={"PATH": "/usr/bin:/bin"}, flags=flags)
        start = SessionStart(
            settings=settings, asked=AgentSettings(source="room"), folder=str(tmp_path), is_reached_later=True
        )
        async with Host() as host:
            platform = Platform(host, start)
            one = await platform.received("one", "m1", "Hello")
            await platform.received("one", "m1", "Hello")
            assert await post(one) == "I was asked: Hello"
            other = await platform.received("other", "m1", "Hello there")
            assert await post(other) == "I was asked: Hello there"
            await platform.received("one", "m2", "/context")
            assert "in 2 messages" in await post(one)
            await platform.received("one", "m3", "/nonsense")
            assert "there is no command /nonsense" in await post(one)
            await platform.received("one", "m4", "Clean up")
            assert await post(one) == "May I? rm -rf gone"
            ((question, choices),) = one.buttons.items()
            assert choices[-1] == "deny"
            one.live.answer(question, "deny", "Ann")
            assert await post(one) == "Not done, then."
        await shared.close()
