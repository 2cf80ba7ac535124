"""Start a conversation, keep its parts alive together, and leave nothing behind."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

from hermes.config import paths
from hermes.config.sections.top import Section as Top
from hermes.host.agent_settings import note_unknown_toolsets
from hermes.host.attached_skills import attached_skills
from hermes.host.command import SessionTarget
from hermes.host.host import Host
from hermes.host.logs import logging_as_set
from hermes.host.session_end import prune_if_due
from hermes.host.start_notices import left_running, start_notices
from hermes.runtime.setup.process import shared
from hermes.surfaces.cli.chat.hooks import consent_to_hooks
from hermes.surfaces.cli.chat.resume import resumed_session
from hermes.surfaces.cli.chat.run_options import Wish
from hermes.surfaces.cli.chosen_model import with_model
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.gc_at_start import settle_soon
from hermes.surfaces.cli.interactive.chat import Chat, Start
from hermes.surfaces.cli.interactive.plain import PlainFace
from hermes.surfaces.cli.interactive.terminal import TerminalFace

AnyFace = TerminalFace | PlainFace
THREADS_TAKE_S = 0.001  # how long a thread that works, such as on a command's flood, holds up a key


def converse(cli: Cli, wish: Wish) -> int:
    """Talk until the person leaves; the exit code."""
    settings = cli.settings(wish.flags, ignore_file=wish.ignore_user_config)
    if wish.add_dirs:
        from hermes.host.added_folders import with_added_folders  # rare

        settings = with_added_folders(settings, wish.add_dirs)
    if wish.allow_hosts:
        from hermes.host.added_hosts import with_added_hosts  # rare

        settings = with_added_hosts(settings, wish.allow_hosts)
    session_id = resumed_session(cli, wish)
    loaded, settings = attached_skills(wish.skills, wish.source, settings, cli.out.note)
    paths.made(cli.home)
    settings = with_model(cli, settings, is_quiet=False)
    consent_to_hooks(cli, settings, may_ask=True)
    note_unknown_toolsets(cli.out.note, settings)
    with logging_as_set(settings, cli.out.note):
        code = asyncio.run(_somewhere(Start(cli=cli, wish=wish, settings=settings, loaded=loaded), session_id))
        if pruned := prune_if_due(settings):
            cli.out.note(pruned)
        return code


async def _somewhere(start: Start, session_id: str | None) -> int:
    """Talk in a worktree of its own, if one is asked for."""
    if not start.wish.worktree:
        return await _converse(start, session_id)
    from hermes.tools.worktrees import in_worktree  # rare

    async with in_worktree(start.cli.out.note, start.settings, shared.supervisor) as place:
        there = replace(start, settings=place.settings, folder=str(place.folder))
        return await _converse(there, session_id)


async def _converse(start: Start, session_id: str | None) -> int:
    cli = start.cli
    sys.setswitchinterval(THREADS_TAKE_S)
    settle_soon(asyncio.get_running_loop())
    face: AnyFace = TerminalFace(cli.out) if can_draw(cli) else PlainFace(cli.out)
    async with Host(start.settings.of(Top).max_concurrent_sessions) as host:
        chat = Chat(start, host, face)
        code = await talk(chat, face, start.wish, session_id)
    if await chat.live.exists():
        chat.say(f"Go on with: hermes --resume {chat.session_id}")
        face.flush()
    if face.is_gone:
        cli.out.abandon()
    return code


async def talk(chat: Chat, face: AnyFace, wish: Wish, session_id: str | None) -> int:
    """Talk until the person leaves; the exit code."""
    with _signals(chat, face) as was_hit, face.quiet():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in (_listen(chat, face), face.tick())]
            try:
                await _greet(chat, wish, session_id)
                if isinstance(face, TerminalFace):
                    tasks.append(group.create_task(_tell_level(chat, face.shown)))
                await face.run(chat)
            finally:
                await chat.finish()
                for task in tasks:
                    task.cancel()
    return Exit.CANCELLED if was_hit() else Exit.ANSWERED


async def _greet(chat: Chat, wish: Wish, session_id: str | None) -> None:
    if session_id is not None:
        await chat.go_to(SessionTarget(session_id=session_id))
    else:
        await chat.open()
        chat.say("Ask something, or /help. Esc stops a turn, Ctrl-D leaves.", "dim")
    if "plugins" in chat.live.settings.tree:
        from hermes.host.plugin_care import accept_injections  # for who has plugins

        accept_injections(chat.cli.home, lambda: chat.live)
    for line in (*left_running(chat.cli.home), *(() if wish.ignore_rules else start_notices(chat.cli.home))):
        chat.say(line, "yellow")
    if wish.image is not None:
        chat.face.offer(f'"{wish.image}" ')


async def _tell_level(chat: Chat, shown: asyncio.Event) -> None:
    """Say what confines commands; nothing where they run elsewhere. It is tried after the first prompt."""
    await shown.wait()
    from hermes.host.border_words import border_words  # in a pipe none of this is loaded

    if told := await border_words(chat.live.settings, chat.live.cwd):
        chat.say_between(told if told.endswith(".") else f"{told}; see /sandbox.", "dim")


async def _listen(chat: Chat, face: AnyFace) -> None:
    while True:
        await chat.hear(await face.inbox.get())
        face.inbox.task_done()


def can_draw(cli: Cli) -> bool:
    return cli.out.is_terminal and cli.environ.get("TERM", "") not in ("", "dumb", "unknown")


@contextlib.contextmanager
def _signals(chat: Chat, face: AnyFace) -> Iterator[Callable[[], bool]]:
    """TERM and HUP end the conversation as the person would have; INT stops the turn, and ends it where none runs."""
    loop = asyncio.get_running_loop()
    hits: list[int] = []

    def hit(number: int) -> None:
        hits.append(number)
        face.leave()

    def stop() -> None:
        if not chat.interrupt():
            face.leave()

    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, hit, number)
    if isinstance(face, PlainFace):  # where keys are read one by one, Ctrl-C is one of them
        loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield lambda: bool(hits)
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.remove_signal_handler(number)
