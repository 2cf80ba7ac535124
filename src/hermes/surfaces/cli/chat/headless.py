"""Ask one question without a screen: the answer goes to stdout, everything else to stderr."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click import UsageError
from msgspec import Struct
from msgspec.structs import replace

from hermes.config import paths
from hermes.config.load import bound_settings
from hermes.config.sections import agent as agent_section
from hermes.config.sections import approvals
from hermes.config.settings import Settings
from hermes.errors import SessionInUse
from hermes.host.agent_settings import note_unknown_toolsets
from hermes.host.events import HostEvent, LiveEvent, QuestionAsked
from hermes.host.host import Host
from hermes.host.hosted_session import HostedSession, SessionStart
from hermes.host.logs import logging_as_set, turn_log
from hermes.host.session_end import close_session, prune_if_due
from hermes.host.start_notices import left_running
from hermes.host.turn_verdict import EMPTY
from hermes.runtime.setup.process import shared
from hermes.seams import Sink
from hermes.surfaces.cli.chat.events import JsonLines, Progress, Unheeded, Unproven
from hermes.surfaces.cli.chat.question_text import asked_words, piped_in
from hermes.surfaces.cli.chat.run_options import Wish
from hermes.surfaces.cli.chat.turn_words import exit_code, words_for
from hermes.surfaces.cli.chosen_model import with_model
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.gc_at_start import settle_soon
from hermes.types import Question, StatusChanged

if TYPE_CHECKING:
    from hermes.host.attached_skills import AttachedSkills
    from hermes.surfaces.cli.approval_prompt import TerminalPrompt


class _Run(Struct, frozen=True, kw_only=True):
    """One question on its way. `words` may hold references; `piped` is taken as it is."""

    cli: Cli
    wish: Wish
    settings: Settings
    session_id: str | None
    words: str
    piped: str
    loaded: "AttachedSkills | None"
    cwd: str | None = None


def answer(cli: Cli, wish: Wish) -> int:
    """Run the turn that `wish` asks for; the exit code."""
    cli.out.claim()
    settings = cli.settings(wish.flags, ignore_file=wish.ignore_user_config)
    if wish.add_dirs:
        from hermes.host.added_folders import with_added_folders  # rare

        settings = with_added_folders(settings, wish.add_dirs)
    if wish.allow_hosts:
        from hermes.host.added_hosts import with_added_hosts  # rare

        settings = with_added_hosts(settings, wish.allow_hosts)
    session_id = None
    if wish.resume is not None or wish.continue_ is not None:
        from hermes.surfaces.cli.chat.resume import resumed_session  # for who goes on

        session_id = resumed_session(cli, wish)
    words, piped = asked_words(wish.question), piped_in(cli.out)
    if not words and not piped:
        raise UsageError('Nothing was asked. Ask with: hermes chat -q "QUESTION"')
    loaded = None
    if wish.skills:
        from hermes.host.attached_skills import attached_skills  # for who names some

        loaded, settings = attached_skills(wish.skills, wish.source, settings, cli.out.note)
    paths.made(cli.home)  # before anything is put into it
    settings = with_model(cli, settings, is_quiet=wish.quiet or wish.as_json)
    if "hooks" in settings.tree:
        from hermes.surfaces.cli.chat.hooks import consent_to_hooks  # for who has some

        consent_to_hooks(cli, settings, may_ask=False)
    if not wish.quiet:
        note_unknown_toolsets(cli.out.note, settings)
    run = _Run(cli=cli, wish=wish, settings=settings, session_id=session_id, words=words, piped=piped, loaded=loaded)
    with logging_as_set(settings, cli.out.note), bound_settings(settings):
        for line in left_running(cli.home):
            cli.out.note(line)
        _remind(cli, wish, session_id)
        code = asyncio.run(_somewhere(run))
        if (pruned := prune_if_due(settings)) and not wish.quiet:
            cli.out.note(pruned)
        return code


async def _somewhere(run: _Run) -> int:
    """Run the turn in a worktree of its own, if one is asked for."""
    if not run.wish.worktree:
        return await _turn(run)
    from hermes.tools.worktrees import in_worktree  # rare

    async with in_worktree(run.cli.out.note, run.settings, shared.supervisor, is_quiet=run.wish.quiet) as place:
        with bound_settings(place.settings):
            return await _turn(replace(run, settings=place.settings, cwd=str(place.folder)))


async def _turn(run: _Run) -> int:
    cli, settings = run.cli, run.settings
    wish = replace(run.wish, verbose=run.wish.verbose or settings.of(agent_section.Section).verbose)
    prompt = _prompt(cli, settings)
    start = SessionStart(
        settings=settings,
        asked=wish.agent,
        folder=run.cwd or "",
        launched_in=run.cwd or str(Path.cwd()),
        can_ask=prompt is not None,
        has_titles=False,
    )
    async with Host() as host:
        live = host.for_question(start, run.session_id)
        listener = _Listener(cli, wish, live, prompt)
        live.listen(listener)
        skills = run.loaded.text(live.session_id) if run.loaded else None
        try:
            with _signals(listener.stop):
                question = await _question(run, skills)
                settle_soon(asyncio.get_running_loop())
                # A session that goes on has its prompt; the skills are in the question then.
                result = await _answer(run, listener, question, skills if run.session_id is None else None)
            if not listener.is_quiet and "terminal" in listener.sink.called and cli.out.stderr.isatty():
                from hermes.host.border_words import border_words  # for who watches commands

                if told := await border_words(settings, live.cwd, only_missing=True):
                    cli.out.note(f"note: {told.rstrip('.')}; see: hermes sandbox")
        finally:
            await live.close(limit_s=None)
    if exit_code(result) is not Exit.IN_USE and not result.get("ran_elsewhere"):
        await close_session(settings, live.session_id)
    if wish.trajectories or wish.sample:
        from hermes.surfaces.cli.chat.follow import save  # for who asks for it

        save(run, result)
    return _tell(cli, wish, listener, result)


async def _answer(run: _Run, listener: "_Listener", question: Any, told: str | None) -> dict[str, Any]:
    """The result of the turn. Where another process works on the session, it is run there, or here after that."""
    live = listener.live
    if run.wish.wait:
        from hermes.host.session_line import SessionLine  # for who waits

        line = SessionLine(live, listener.follow)
        listener.stops.append(line.stop)
        return await line.turn(question, told)
    try:
        return await live.ask(question, told)
    except SessionInUse as error:
        if run.wish.output_schema is not None:  # there, nobody would hold the answer to it
            raise
        from hermes.surfaces.cli.chat.follow import follow  # for who meets somebody

        return await follow(listener, error, question, told)


async def _question(run: _Run, skills: str | None) -> Any:
    """What the model is asked. A session that goes on keeps its prompt, so skills reach it with the question."""
    text = run.words
    if "@" in text:
        from hermes.host.references import referred, surroundings  # paid by who refers

        text = await referred(text, surroundings(run.settings, run.cwd or str(Path.cwd()), run.wish.source))
    told = skills if run.session_id is not None else None
    words = "\n\n".join(part for part in (told, text, run.piped) if part)
    if run.wish.image is None:
        return words
    from hermes.host.pictures import with_image  # for who shows one

    return with_image(words, run.wish.image)


def _remind(cli: Cli, wish: Wish, session_id: str | None) -> None:
    """Show a person who goes on with a session what was said last."""
    if session_id is None or wish.quiet or wish.as_json or not cli.out.stderr.isatty():
        return
    from hermes.surfaces.cli.chat.words_for_person import remind  # for who goes on

    remind(cli, session_id)


class _Listener:
    """`SessionListener` of this run: shows what happens, and asks where somebody can be asked."""

    def __init__(self, cli: Cli, wish: Wish, live: HostedSession, prompt: "TerminalPrompt | None") -> None:
        self.cli, self.live, self.is_quiet = cli, live, wish.quiet or wish.as_json
        self.can_answer = prompt is not None
        self._prompt = prompt
        self.stops: list[Callable[[], None]] = []  # of those who wait
        self.lines = JsonLines(cli.out, self.stop) if wish.as_json else None
        shown: Sink | None = self.lines
        if self.lines is None and not wish.quiet:
            is_watched = wish.verbose or cli.out.stderr.isatty()
            shown = (
                Progress(cli.out, verbose=wish.verbose, preview_chars=wish.preview_chars)
                if is_watched
                else Unheeded(cli.out)
            )
        self.sink = Unproven(shown)
        self._tells_waiting = cli.out.note if self.lines is None and not wish.quiet else None

    def emit(self, event: LiveEvent) -> None:
        if isinstance(event, QuestionAsked):
            self.live.later(self._ask(event.question), "a question")
        elif not isinstance(event, HostEvent):
            self.sink.emit(event)

    def follow(self, event: LiveEvent) -> None:
        """Hear what becomes of a turn that another process has a part in; that it waits is always told."""
        if self._tells_waiting is not None and isinstance(event, StatusChanged) and event.kind == "waiting":
            self._tells_waiting(f"· {event.message}")
        else:
            self.emit(event)

    def offer(self, _text: str) -> bool:
        return False

    def stop(self) -> None:
        """Whoever asked is no longer interested."""
        if self._prompt is not None:
            self._prompt.stop()
        for stop in self.stops:
            stop()
        self.live.interrupt()

    async def _ask(self, question: Question) -> None:
        from hermes.host.host_errors import NothingPending  # for who is asked

        assert self._prompt is not None
        said = await self._prompt.ask(question, self.live.in_thread)
        with contextlib.suppress(NothingPending):  # its time is over
            self.live.answer(question.id, said, "terminal")


def _tell(cli: Cli, wish: Wish, listener: _Listener, result: dict[str, Any]) -> int:
    """Print the answer, and beside it why it is not a full one."""
    code = exit_code(result)
    words = words_for(code, result)
    if words:
        turn_log.warning("%s", words)
    if listener.lines is not None:
        if listener.lines.gone is not None:
            raise listener.lines.gone
        kept = {name: value for name, value in result.items() if name != "messages"}
        cli.out.json({"type": "result", "exit_code": int(code), **kept, "unproven": listener.sink.doubts})
        return code
    text = str(result.get("final_response") or "").strip()
    if wish.output_schema is not None:
        from hermes.surfaces.cli.chat.answer_data import printed  # for who wants data

        text = printed(cli.out, result)
    if text and text != EMPTY:
        if cli.out.is_terminal:
            from hermes.surfaces.cli.chat.words_for_person import drawn  # in a pipe it stays as it is

            text = drawn(cli, text).rstrip("\n")
        cli.out.write(f"{text}\n")
    if code is Exit.ANSWERED and not wish.quiet:
        for doubt in listener.sink.doubts:
            cli.out.note(f"note: {doubt}")
    if words:
        cli.out.note(words) if code is Exit.CANCELLED else cli.out.error(words)
    elif not wish.quiet and (wish.verbose or cli.out.stderr.isatty()):
        cli.out.note(f"go on with: hermes --resume {result.get('session_id')}")
    return code


def _prompt(cli: Cli, settings: Settings) -> "TerminalPrompt | None":
    """Someone to ask, when stdin and stderr are a terminal; else nobody, which means no."""
    if sys.stdin is None or not sys.stdin.isatty() or not cli.out.stderr.isatty():
        return None
    from hermes.surfaces.cli.approval_prompt import TerminalPrompt  # where nobody is, none of the gate

    return TerminalPrompt(cli.out, timeout_s=settings.of(approvals.Section).timeout)


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
