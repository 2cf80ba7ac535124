"""Play the demo: one real turn of a real agent, whose model is a recording."""

import asyncio
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, assert_never

from hermes import AIAgent
from hermes.config.load import bound_settings
from hermes.errors import UserError
from hermes.runtime.setup.process import RandomIds
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.demo.recording import QUESTION, make_project, recorded_model
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.interactive.markdown_blocks import Block, Blocks
from hermes.surfaces.cli.interactive.markup import Painter
from hermes.surfaces.cli.model_choice import is_interactive
from hermes.surfaces.cli.output import Output, cut
from hermes.tools.approval.question import Answer, ApprovalQuestion
from hermes.tools.approval.terminal_prompt import ask_on, question_words
from hermes.types import (
    CallFinished,
    CallStarted,
    Commentary,
    Event,
    MinorEvent,
    ReasoningDelta,
    SessionRotated,
    StatusChanged,
    TextDelta,
    TurnFinished,
    text_of,
)

SHOWN_LINES = 12
TELLING = ("command", "path", "pattern", "code")  # the argument to show of a call


class DemoScreen:
    """`Sink` that writes to stdout."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._is_speaking = False
        self._painter = Painter(out) if out.is_terminal else None
        self._blocks = Blocks()
        self.calls: list[CallFinished] = []

    def emit(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._speak(event.text)
            case CallStarted():
                self._hush()
            case CallFinished():
                self._hush()
                self.calls.append(event)
                self._finished(event)
            case TurnFinished() | SessionRotated() | StatusChanged() | Commentary() | ReasoningDelta() | MinorEvent():
                return  # the demo shows words and work, nothing about them
            case _:
                assert_never(event)

    def close(self) -> None:
        self._hush()

    def _speak(self, text: str) -> None:
        """Words as they come; in a terminal block by block, drawn as Markdown and broken between words."""
        if not self._is_speaking:
            self._out.write("\n")
        self._is_speaking = True
        if self._painter is None:
            self._out.write(text)
        else:
            self._show(self._blocks.feed(text))

    def _show(self, blocks: Iterable[Block]) -> None:
        assert self._painter is not None
        for block in blocks:
            self._out.write(self._painter.block(block))

    def _hush(self) -> None:
        if self._is_speaking and self._painter is not None:
            self._show(self._blocks.finish())
        elif self._is_speaking:
            self._out.write("\n")
        self._is_speaking = False

    def _finished(self, event: CallFinished) -> None:
        found = _decoded(event)
        is_good = event.result.status == "ok" and not found.get("exit_code")
        mark = self._out.style("✓", "green") if is_good else self._out.style("✗", "red")
        first = next((str(event.args[name]) for name in TELLING if name in event.args), "")
        words = cut(" ".join(first.split()), 72)
        self._out.line(f"{mark} {self._out.style(event.call.name, 'bold')} {words}")
        for line in shown_lines(event.call.name, found):
            self._out.line(f"    {self._coloured(line)}")

    def _coloured(self, line: str) -> str:
        if line.startswith(("+", "-")) and not line.startswith(("+++", "---")):
            return self._out.style(line, "green" if line.startswith("+") else "red")
        return self._out.style(line, "dim")


def shown_lines(tool: str, found: dict[str, Any]) -> list[str]:
    """The end of a command's output, the lines of a diff; nothing of what was merely read."""
    if tool in ("read_file", "search_files"):
        return []
    text = str(found.get("diff") or found.get("output") or found.get("error") or "")
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip() or found.get("diff")]
    return lines[-SHOWN_LINES:]


def _decoded(event: CallFinished) -> dict[str, Any]:
    try:
        found = json.loads(text_of(event.result.content))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


ASK_TIMEOUT_S = 600.0
TOOLSETS = ["file", "terminal", "code_execution"]
# The demo shows Hermes as it comes: what the user's own settings allow or forbid is left out of it.
FLAGS = {"terminal.backend": "local", "approvals.mode": "manual"}


def play(cli: Cli, *, says_yes: bool, is_slow: bool) -> int:
    """Run the demo; the exit code."""
    session_id = RandomIds().session()
    folder = scratch_folder(cli, Path.cwd())
    make_project(folder)
    cli.out.line(
        "A demo of Hermes. The model is a recording, written by hand: no model is asked, its words are fixed.\n"
        "Everything else is real: the agent, its tools, the question it asks you, the files, the session.\n"
        f"The project is in {folder}\n\n{cli.out.style('>', 'cyan')} {QUESTION}"
    )
    settings = cli.settings(FLAGS, ignore_file=True)
    with bound_settings(settings):
        result = asyncio.run(_turn(cli, folder, session_id, says_yes=says_yes, is_slow=is_slow))
    if not result["completed"]:
        cli.out.error(f"the demo did not get to its end ({result['turn_exit_reason']}); see: hermes doctor")
        return Exit.FAILED
    hermes = "hermes"
    cli.out.told(
        f"\nThat was session {session_id}. Look at it, search all sessions, connect a model of your own, and go on:\n"
        f"  {hermes} sessions show {session_id}\n"
        f"  {hermes} sessions search discounted\n"
        f"  {hermes} model\n"
        f'  {hermes} chat --resume {session_id} -q "Which line did you change?"\n'
        f"The folder {folder.name} can be deleted."
    )
    return Exit.ANSWERED


def scratch_folder(cli: Cli, here: Path) -> Path:
    """A new folder in the one the user is in. Not in our home: there the agent may not change files."""
    if not os.access(here, os.W_OK) or here.resolve().is_relative_to(cli.root.resolve()):
        raise UserError(f"the demo makes a scratch folder, which it cannot in {here}; start it in another folder")
    number = 1
    while (folder := here / f"hermes-demo-{number}").exists():
        number += 1
    return folder


async def _turn(cli: Cli, folder: Path, session_id: str, *, says_yes: bool, is_slow: bool) -> dict[str, object]:
    screen = DemoScreen(cli.out)
    agent = AIAgent(
        model=recorded_model(is_slow=is_slow),
        session_id=session_id,
        enabled_toolsets=TOOLSETS,
        cwd=str(folder),
        platform="demo",
        sink=screen,
        approval_callback=_Answering(cli, says_yes=says_yes),
    )
    try:
        return await agent.arun_conversation(QUESTION)
    finally:
        screen.close()
        await agent.aclose()


class _Answering:
    """Asks the person at the terminal; without one, says what `--yes` says, and tells so."""

    def __init__(self, cli: Cli, *, says_yes: bool) -> None:
        self._cli = cli
        self._says_yes = says_yes

    def __call__(self, question: ApprovalQuestion) -> Answer:
        if is_interactive() and not self._says_yes:
            text = question_words(question, question.cwd)
            return ask_on(self._cli.out.stderr, text, question.choices, ASK_TIMEOUT_S)
        words = "--yes says once" if self._says_yes else "there is no terminal to ask in, and nobody to ask means no"
        self._cli.out.line(
            f"? Hermes asks to use {question.tool}: {question.command}  ({question.description}): {words}"
        )
        return "once" if self._says_yes else "deny"
