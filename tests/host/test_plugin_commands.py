"""Slash commands of plugins in a live session: run, explained, and contained."""

from pathlib import Path

import pytest

from hermes.errors import UserError
from hermes.host.command import SurfaceFacts, run_command
from hermes.testing.server import ServerThread
from tests.extensions.plugins.samples import write_plugin, write_sample
from tests.host.conftest import Hosting, Starting
from tests.surfaces.cli.interactive.terminal import answering

BAD = """
import sys


def fail(words): raise ValueError("no")
def leave(words): sys.exit(1)


def register(ctx):
    ctx.register_command("fail", fail)
    ctx.register_command("leave", leave)
"""


@pytest.mark.parametrize("style", ["new", "old"])
async def test_a_plugins_command_answers_and_a_broken_one_is_one_sentence(
    hosting: Hosting, starting: Starting, home: Path, style: str
) -> None:
    write_sample(home, "ping", style)
    write_plugin(home / "plugins" / "bad", BAD)
    (home / "config.yaml").write_text("plugins: {enabled: [ping, bad]}\n")
    with ServerThread(answering({})) as server:
        async with hosting() as host:
            live = host.session(starting(server))
            surface = SurfaceFacts()
            assert (await run_command(live, "ping one two", surface)).text == "pong one two"
            assert (await run_command(live, "help ping", surface)).text == "/ping WORDS\n  Answer (ping)"
            assert ("/ping", "Answer") in (await run_command(live, "help", surface)).sections[0][1]
            for name in ("fail", "leave"):
                with pytest.raises(UserError, match=f"/{name} of the plugin 'bad' failed"):
                    await run_command(live, name, surface)
            with pytest.raises(UserError, match="did you mean /ping"):
                await run_command(live, "pnig", surface)
