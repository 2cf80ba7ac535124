"""Play the demo: real turns of a real agent, whose model is a recording."""

import asyncio
import os
from pathlib import Path

from hermes import AIAgent
from hermes.config.load import bound_settings
from hermes.config.settings import Settings
from hermes.errors import UserError
from hermes.host.agent_settings import AgentSettings
from hermes.host.host import Host
from hermes.host.hosted_session import SessionStart
from hermes.host.session_rewind import SessionRewind
from hermes.runtime.setup.process import RandomIds, shared
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.demo import scenes
from hermes.surfaces.cli.demo.kill_scene import killed_turn
from hermes.surfaces.cli.demo.recording import make_project, recorded_model
from hermes.surfaces.cli.demo.scenes import Scene
from hermes.surfaces.cli.demo.screen import DemoScreen, tell
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.model_questions import is_interactive
from hermes.tools.approval.question import Answer, ApprovalQuestion
from hermes.tools.approval.terminal_prompt import ask_on, question_words

ASK_TIMEOUT_S = 600.0
# The demo shows Hermes as it comes: what the user's own settings allow or forbid is left out of it.
FLAGS = {"terminal.backend": "local", "approvals.mode": "manual", "mcp_discovery_timeout": 20.0}
BEGINNING = """\
A demo of Hermes. The model is a recording, written by hand: no model is asked, its words are fixed.
Everything else is real: the agent, its tools, the question it asks you, the files, the session."""


def play(cli: Cli, *, says_yes: bool, is_slow: bool) -> int:
    """Run the demo; the exit code."""
    folder = scratch_folder(cli, Path.cwd())
    make_project(folder)
    tell(cli.out, f"{BEGINNING}\nThe project is in {folder}")
    settings = cli.settings(FLAGS, ignore_file=True)
    with bound_settings(settings):
        first = asyncio.run(_Play(cli, settings, folder, says_yes=says_yes, is_slow=is_slow).all_scenes())
    _title(cli, "what is left")
    tell(
        cli.out,
        "Every step of it is kept. Look at it, search all sessions, and begin with a model of your own:\n"
        f"  hermes sessions show {first}\n"
        "  hermes sessions search discounted\n"
        "  hermes model\n"
        "  hermes\n"
        f"The folder {folder.name} can be deleted.",
    )
    return Exit.ANSWERED


def play_scene(cli: Cli, folder: Path, session_id: str, *, is_slow: bool) -> int:
    """Run the scene that is killed, in this process."""
    settings = cli.settings(FLAGS, ignore_file=True)
    with bound_settings(settings):
        asyncio.run(_Play(cli, settings, folder, says_yes=False, is_slow=is_slow).turn(scenes.LIST, session_id))
    return Exit.ANSWERED


def scratch_folder(cli: Cli, here: Path) -> Path:
    """A new folder in the one the user is in. Not in our home: there the agent may not change files."""
    if not os.access(here, os.W_OK) or here.resolve().is_relative_to(cli.root.resolve()):
        raise UserError(f"the demo makes a scratch folder, which it cannot in {here}; start it in another folder")
    number = 1
    while (folder := here / f"hermes-demo-{number}").exists():
        number += 1
    return folder


def _title(cli: Cli, text: str) -> None:
    cli.out.line(f"\n{cli.out.style(f'── {text} ', 'bold')}")


class _Play:
    """One performance: where it is played, and how."""

    def __init__(self, cli: Cli, settings: Settings, folder: Path, *, says_yes: bool, is_slow: bool) -> None:
        self._cli = cli
        self._settings = settings
        self._folder = folder
        self._says_yes = says_yes
        self._is_slow = is_slow

    async def all_scenes(self) -> str:
        """Play all; the id of the first session."""
        ids = RandomIds()
        first, second = ids.session(), ids.session()
        try:
            await self.scene(scenes.BUG, first)
            await self._killed(second)
            await self.scene(scenes.RESUMED, second)
            await self.scene(scenes.ESCAPE, ids.session())
            await self.scene(scenes.CHILDREN, ids.session())
            await self._changed_and_rewound(ids.session())
        finally:
            await shared.close()
        await asyncio.to_thread(self._searched)
        return first

    async def scene(self, scene: Scene, session_id: str) -> None:
        """One request, from its title to its answer."""
        _title(self._cli, scene.title)
        self._cli.out.line(f"{self._cli.out.style('>', 'cyan')} {scene.question}")
        await self.turn(scene, session_id)

    async def turn(self, scene: Scene, session_id: str) -> None:
        """One real turn; `UserError` when it does not get to its end."""
        screen = DemoScreen(self._cli.out)
        agent = AIAgent(
            model=recorded_model(scene.recording, scene.children, is_slow=self._is_slow),
            session_id=session_id,
            enabled_toolsets=list(scene.toolsets),
            cwd=str(self._folder),
            platform="demo",
            sink=screen,
            mcp_servers=scene.servers or None,
            approval_callback=_Answering(self._cli, may_ask=scene.asks, says_yes=self._says_yes and scene.asks),
        )
        try:
            result = await agent.arun_conversation(scene.question)
        finally:
            screen.close()
            await agent.aclose()
        if not result["completed"]:
            raise UserError(f"the demo did not get to its end ({result['turn_exit_reason']}); see: hermes doctor")

    async def _killed(self, session_id: str) -> None:
        out = self._cli.out
        _title(self._cli, scenes.LIST.title)
        out.line(f"{out.style('>', 'cyan')} {scenes.LIST.question}")
        out.flush()
        have = await killed_turn(self._cli, self._folder, session_id, is_slow=self._is_slow)
        out.line(
            out.style(f"kill -9: the agent's process is gone, in the middle of its command ({have} lines).", "red")
        )

    async def _changed_and_rewound(self, session_id: str) -> None:
        """A change, and the way back: what was said and what was changed, together."""
        scene = scenes.stock_scene(self._folder)
        await self.scene(scene, session_id)
        if not scene.servers:
            self._cli.out.told(scenes.NO_MCP)
        _title(self._cli, "/rewind: that was not wanted")
        start = SessionStart(
            settings=self._settings, asked=AgentSettings(source="demo"), folder=str(self._folder), has_titles=False
        )
        async with Host() as host:
            live = host.session(start, session_id)
            await live.open()
            rewind = SessionRewind(live)
            point = (await rewind.points())[0]
            done = await rewind.go(point, "both")
            await live.close()
        files = ", ".join(Path(path).name for path in point.files)
        self._cli.out.line(f"{done.messages} messages are taken back, and {files} is as it was before them.")

    def _searched(self) -> None:
        """What `hermes sessions search` prints, as it prints it."""
        from hermes.surfaces.cli.interactive.command_view import printed

        _title(self._cli, "a search over all sessions: hermes sessions search discounted")
        words = ("search", "discounted", "--limit", "3")
        self._cli.out.write(printed(self._cli, self._cli.out, "sessions", words))


class _Answering:
    """Asks the person at the terminal; without one, says what `--yes` says, and tells so."""

    def __init__(self, cli: Cli, *, may_ask: bool, says_yes: bool) -> None:
        self._cli = cli
        self._may_ask = may_ask
        self._says_yes = says_yes

    def __call__(self, question: ApprovalQuestion) -> Answer:
        if self._may_ask and is_interactive() and not self._says_yes:
            text = question_words(question, question.cwd)
            return ask_on(self._cli.out.stderr, text, question.choices, ASK_TIMEOUT_S)
        words = "--yes says once" if self._says_yes else "there is no terminal to ask in, and nobody to ask means no"
        if not self._may_ask:
            words = "the demo says no"
        self._cli.out.line(
            f"? Hermes asks to use {question.tool}: {question.command}  ({question.description}): {words}"
        )
        return "once" if self._says_yes else "deny"
