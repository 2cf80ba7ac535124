"""`python -m hermes.testing.server --script FILE`: serve a script until a signal comes.

The first line of stdout is the base URL. The exit code is 1 when the server saw mistakes; they are on stderr.
"""

import argparse
import asyncio
import itertools
import signal
import sys
from pathlib import Path

from hermes.testing.replies import load_script
from hermes.testing.server.core import ScriptedServer


async def _serve(script: Path, port: int, *, repeat: bool) -> int:
    replies = load_script(script)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with ScriptedServer(itertools.cycle(replies) if repeat else replies, port=port) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        await stop.wait()
    for mistake in server.mistakes:
        sys.stderr.write(f"{mistake}\n")
    return 1 if server.mistakes else 0


def main() -> int:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(prog="hermes.testing.server", description=__doc__)
    parser.add_argument("--script", type=Path, required=True, help="JSON list of replies, see hermes.testing.replies")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--repeat", action="store_true", help="start the script again when it is over")
    given = parser.parse_args()
    return asyncio.run(_serve(given.script, given.port, repeat=given.repeat))


if __name__ == "__main__":
    sys.exit(main())
