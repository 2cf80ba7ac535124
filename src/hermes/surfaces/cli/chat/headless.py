"""Ask one question without a screen: the answer goes to stdout, everything else to stderr."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from click import UsageError

from hermes import AIAgent
from hermes.config.load import bound_settings
from hermes.config.sections import approvals, logging_, security
from hermes.config.settings import Settings
from hermes.seams import Sink
from hermes.surfaces.cli.chat.ending import close_session, prune_if_due
from hermes.surfaces.cli.chat.events import JsonLines, Progress, Unproven
from hermes.surfaces.cli.chat.keywords import agent_keywords
from hermes.surfaces.cli.chat.question import full_question, with_image
from hermes.surfaces.cli.chat.resume import resumed_session
from hermes.surfaces.cli.chat.verdict import EMPTY, exit_code, words_for
from hermes.surfaces.cli.chat.wish import Wish
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.first_run import with_model
from hermes.surfaces.logs import redactor, session_tag, start_logging, stop_logging

if TYPE_CHECKING:
    from hermes.surfaces.cli.approval_prompt import TerminalPrompt

REMINDED = 2  # exchanges shown when a session goes on


def answer(cli: Cli, wish: Wish) -> int:
    """Run the turn that `wish` asks for; the exit code."""
    settings = cli.settings(wish.flags, ignore_file=wish.ignore_user_config)
    session_id = resumed_session(cli, resume=wish.resume, continue_=wish.continue_, source=wish.source)
    question = full_question(wish.question, cli.out)
    if not question:
        raise UsageError('Nothing was asked. Ask with: hermes chat -q "QUESTION"')
    settings = with_model(cli, settings, is_quiet=wish.quiet or wish.as_json)
    handlers = _logging(cli, settings)
    try:
        with bound_settings(settings):
            _remind(cli, wish, session_id)
            code = asyncio.run(_somewhere(cli, wish, settings, session_id, with_image(question, wish.image)))
        if (pruned := prune_if_due(settings)) and not wish.quiet:
            cli.out.note(pruned)
        return code
    finally:
        stop_logging(handlers)


async def _somewhere(cli: Cli, wish: Wish, settings: Settings, session_id: str | None, question: Any) -> int:
    """Run the turn in a worktree of its own, if one is asked for."""
    if not wish.worktree:
        return await _turn(cli, wish, settings, session_id, question)
    from hermes.runtime.shared import shared  # noqa: PLC0415 - only here: the agent brings its own parts
    from hermes.surfaces.cli.worktrees import in_worktree  # noqa: PLC0415

    async with in_worktree(cli.out, settings, shared.supervisor, is_quiet=wish.quiet) as place:
        with bound_settings(place.settings):
            return await _turn(cli, wish, place.settings, session_id, question, str(place.folder))


async def _turn(
    cli: Cli, wish: Wish, settings: Settings, session_id: str | None, question: Any, cwd: str | None = None
) -> int:
    approval = _approval(cli, settings)
    listener = _Listener(cli, wish)
    agent = AIAgent(
        **agent_keywords(wish, settings),
        session_id=session_id,
        cwd=cwd,
        sink=listener.sink,
        approval_callback=approval,
    )
    session_tag.set(agent.session_id)
    if wish.yolo:
        from hermes.tools.approval.contract import enable_session_yolo  # noqa: PLC0415 - rare, and brings the gate

        enable_session_yolo(agent.session_id)

    def stop() -> None:
        if approval is not None:
            approval.stop()
        agent.interrupt()

    listener.on_gone = stop
    try:
        with _signals(stop):
            result = await agent.arun_conversation(question)
    finally:
        await agent.aclose()
    await close_session(settings, agent.session_id)
    return _tell(cli, wish, listener, result)


def _remind(cli: Cli, wish: Wish, session_id: str | None) -> None:
    """Show a person who goes on with a session what was said last."""
    if session_id is None or wish.quiet or wish.as_json or not cli.out.stderr.isatty():
        return
    from hermes.surfaces.cli.chat.past import recent_past  # noqa: PLC0415
    from hermes.surfaces.cli.store import open_sessions  # noqa: PLC0415

    with open_sessions(cli) as db:
        assert db is not None
        for line in recent_past(db, session_id, exchanges=REMINDED, width=cli.out.width):
            cli.out.note(line)


class _Listener:
    """The sink of this run, and what to do when nobody listens any more."""

    def __init__(self, cli: Cli, wish: Wish) -> None:
        self.on_gone: Callable[[], None] | None = None
        self.lines = JsonLines(cli.out, self._gone) if wish.as_json else None
        shown: Sink | None = self.lines
        if self.lines is None and not wish.quiet and (wish.verbose or cli.out.stderr.isatty()):
            shown = Progress(cli.out, verbose=wish.verbose, preview_chars=wish.preview_chars)
        self.sink = Unproven(shown)

    def _gone(self) -> None:
        if self.on_gone is not None:
            self.on_gone()


def _tell(cli: Cli, wish: Wish, listener: _Listener, result: dict[str, Any]) -> int:
    """Print the answer, and beside it why it is not a full one."""
    code = exit_code(result)
    words = words_for(code, result)
    if listener.lines is not None:
        if listener.lines.is_gone:
            raise BrokenPipeError
        kept = {name: value for name, value in result.items() if name != "messages"}
        cli.out.json({"type": "result", "exit_code": int(code), **kept, "unproven": listener.sink.doubts})
        return code
    text = str(result.get("final_response") or "").strip()
    if text and text != EMPTY:
        cli.out.write(f"{text}\n")
    if code is Exit.ANSWERED and not wish.quiet:
        for doubt in listener.sink.doubts:
            cli.out.note(f"note: {doubt}")
    if words:
        cli.out.note(words) if code is Exit.CANCELLED else cli.out.error(words)
    elif not wish.quiet and (wish.verbose or cli.out.stderr.isatty()):
        cli.out.note(f"session {result.get('session_id')}")
    return code


def _approval(cli: Cli, settings: Settings) -> "TerminalPrompt | None":
    """Someone to ask, when stdin and stderr are a terminal; else nobody, which means no."""
    if sys.stdin is None or not sys.stdin.isatty() or not cli.out.stderr.isatty():
        return None
    from hermes.surfaces.cli.approval_prompt import TerminalPrompt  # noqa: PLC0415 - where nobody is, none of the gate

    return TerminalPrompt(cli.out, timeout_s=settings.of(approvals.Section).timeout)


def _logging(cli: Cli, settings: Settings) -> list[Any]:
    log = settings.of(logging_.Section)
    wanted = settings.of(security.Section).redact_secrets
    return list(
        start_logging(
            cli.home,
            level=log.level,
            max_size_mb=log.max_size_mb,
            backup_count=log.backup_count,
            redact=redactor(settings.environ, settings.secrets).redact if wanted else str,
        )
    )


@contextlib.contextmanager
def _signals(stop: Any) -> Iterator[None]:
    """Ctrl-C, TERM and HUP stop the turn; a second one no longer waits for it."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    hits = 0

    def hit() -> None:
        nonlocal hits
        hits += 1
        if hits == 1:
            stop()
        else:
            task.cancel()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, hit)
    try:
        yield
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
