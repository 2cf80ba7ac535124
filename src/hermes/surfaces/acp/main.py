"""`hermes acp` and `hermes-acp`: the server that editors start."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hermes import __version__
from hermes.config import paths
from hermes.errors import UserError
from hermes.host.installation import Installation

HELP = """Let an editor talk to Hermes: the Agent Client Protocol on stdin and stdout.
An editor starts this by itself; docs/editors.md shows how to set it up."""


def main(argv: Sequence[str] | None = None, home: Path | None = None) -> int:
    """Serve the editor that started us, until it closes stdin; the exit code. `home` was chosen by the caller."""
    asked = _options().parse_args(sys.argv[1:] if argv is None else list(argv))
    if asked.version:
        sys.stdout.write(f"hermes-acp {__version__}\n")
        return 0
    try:
        _refuse_strays(asked)
        installation = Installation(home or paths.chosen_home(os.environ, asked.profile), os.environ)
        if asked.check or asked.setup or asked.setup_browser:
            from hermes.surfaces.acp.check import check, set_up

            if asked.setup_browser:
                sys.stderr.write("error: there are no browser tools in this version, so there is nothing to set up\n")
                return 1
            return (
                set_up(installation, may_ask=not asked.yes)
                if asked.setup
                else check(installation, is_verbose=asked.verbose)
            )
        return _serve(installation, accepts_hooks=asked.accept_hooks)
    except UserError as error:
        from hermes.host.command_word import as_typed  # only when something is wrong

        sys.stderr.write(as_typed(f"error: {error}\n", os.environ))
        return 1


def _refuse_strays(asked: argparse.Namespace) -> None:
    if asked.verbose and not asked.check:
        raise UserError("-v goes with --check")
    if asked.yes and not asked.setup:
        raise UserError("--yes goes with --setup")


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hermes acp", description=HELP)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--version", action="store_true", help="tell the version")
    parser.add_argument("--check", action="store_true", help="see whether an editor could start this; one line")
    parser.add_argument("-v", "--verbose", action="store_true", help="with --check: what an editor would see")
    parser.add_argument("--setup", action="store_true", help="choose a model, then show what to put into the editor")
    parser.add_argument(
        "--setup-browser", action="store_true", help="set up browser tools; this version has none, and says so"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="with --setup: ask nothing, only show")
    parser.add_argument("--accept-hooks", action="store_true", help="run the hooks of config.yaml without asking")
    parser.add_argument("-p", "--profile", metavar="NAME", help="use the home of this profile")
    return parser


def _serve(installation: Installation, *, accepts_hooks: bool) -> int:
    from hermes.surfaces.acp.connection import EditorPipes, lines_of, process_pipes, write_all

    into, out = process_pipes()
    environ = dict(installation.environ)
    if accepts_hooks:
        environ["HERMES_ACCEPT_HOOKS"] = "1"
        installation = Installation(installation.home, environ)

    async def run() -> None:
        from hermes.surfaces.acp.connection import EditorConnection
        from hermes.surfaces.acp.editor_agent import EditorAgent

        connection = EditorConnection(EditorPipes(lines_of(into), write_all(out)))
        agent = EditorAgent(connection, installation)
        try:
            await connection.run(agent.handle)
        finally:
            await agent.close()

    with paths.bound_home(installation.home):
        try:
            asyncio.run(run())
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
