"""The interactive screen over a session of the server: leaving the screen leaves the session at work."""

import asyncio
import os

from msgspec import Struct

from hermes.config import paths
from hermes.errors import UserError
from hermes.host.logs import logging_as_set
from hermes.host.wire.remote_host import RemoteHost
from hermes.runtime.setup.process import shared
from hermes.surfaces.cli.chat.run_options import Wish
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.interactive.chat import Chat, Start
from hermes.surfaces.cli.interactive.plain import PlainFace
from hermes.surfaces.cli.interactive.start_chat import AnyFace, can_draw, talk
from hermes.surfaces.cli.interactive.terminal import TerminalFace


class AttachWish(Struct, frozen=True):
    """What `hermes attach` was asked for."""

    session: str | None
    is_new: bool
    is_read_only: bool


def attached(cli: Cli, wish: AttachWish) -> int:
    """Talk until the person leaves; the exit code."""
    settings = cli.settings()
    paths.made(cli.home)
    with logging_as_set(settings, cli.out.note):
        return asyncio.run(_attach(cli, wish))


async def _attach(cli: Cli, wish: AttachWish) -> int:
    face: AnyFace = TerminalFace(cli.out) if can_draw(cli) else PlainFace(cli.out)
    here = os.getcwd()  # noqa: PTH109 - as text, for the other side
    try:
        async with RemoteHost(cli, here, is_read_only=wish.is_read_only) as host:
            session_id = await _chosen(host, wish)
            start = Start(cli=cli, wish=Wish(), settings=cli.settings(), folder=here)
            chat = Chat(start, host, face)
            host.begin(_leave_on_failure(host, face), "failure")
            code = await talk(chat, face, start.wish, session_id)
            if chat.is_busy or chat.queue.open_ones or await chat.live.exists():
                chat.say(f"Detached; the session goes on. Attach again:\n  hermes attach {chat.session_id}")
                face.flush()
    finally:
        await shared.close()
    if face.is_gone:
        cli.out.abandon()
    if host.why:
        raise UserError(host.why)
    return code


async def _chosen(host: RemoteHost, wish: AttachWish) -> str | None:
    """The session to attach to; None for a new one. It is checked before anything is drawn."""
    connection = await host.connection()
    if wish.session:
        return str((await connection.ask("session.find", name=wish.session))["session_id"])
    if wish.is_new:
        return None
    known = (await connection.ask("session.active_list"))["sessions"]
    return str(known[-1]["id"]) if known else None


async def _leave_on_failure(host: RemoteHost, face: AnyFace) -> None:
    """Where there is no way back to the server, the screen has nothing more to show."""
    await host.failure.wait()
    if host.why:
        face.leave()
