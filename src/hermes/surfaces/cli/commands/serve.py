"""Serve the sessions of this home to other programs and terminals."""

import asyncio
import time
from typing import Any

import click

from hermes.host.surface_start import surface_start
from hermes.surfaces.cli.app import as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit

STOP_S = 20.0
LOOK_S = 0.05


@click.command(
    "serve",
)
@click.option("--stdio", is_flag=True, help="Speak on stdin and stdout instead of the socket; ends with stdin.")
@click.option("--stay", is_flag=True, help="Do not end 15 minutes after the last session fell asleep.")
@click.option("--status", "wants_status", is_flag=True, help="Tell whether a server runs, and what it does.")
@click.option("--stop", "wants_stop", is_flag=True, help="End the server that runs; its turns are stopped.")
@click.option("--idle", "idle_s", type=float, hidden=True)
@as_json
@click.pass_obj
def serve(cli: Cli, /, stdio: bool, stay: bool, wants_status: bool, wants_stop: bool, **options: Any) -> int:
    """Serve the sessions of this home: JSON-RPC 2.0, one object a line, on a socket that only you can reach.

    `hermes attach` is a client of it, and starts one when none runs.
    """
    if sum((stdio, wants_status, wants_stop)) > 1:
        raise click.UsageError("--stdio, --status and --stop exclude each other; use one of them.")
    if wants_status:
        return _status(cli, as_json=options["as_json"])
    if wants_stop:
        return _stop(cli)
    start = surface_start("serve")
    idle = {"idle_s": options["idle_s"]} if options["idle_s"] else {}
    wish = start.ServeOptions(is_stdio=stdio, stays=stay, tell=cli.out.note, **idle)
    return int(start.run(cli, wish))


def _status(cli: Cli, *, as_json: bool) -> int:
    found = asyncio.run(_asked(cli, "server.status"))
    if as_json:
        cli.out.json({"running": found is not None, **(found or {})})
    elif found is None:
        cli.out.told("No server runs for this home; start one with: hermes serve, or: hermes attach --new")
    else:
        minutes = int(time.time() - found["since"]) // 60
        cli.out.line(f"A server runs: pid {found['pid']}, Hermes {found['version']}, for {minutes} min")
        cli.out.line(
            f"  {found['working']} sessions work, {found['asking']} wait for an answer, "
            f"{found['awake']} are awake, {found['asleep']} asleep; {found['clients'] - 1} clients"
        )
    return Exit.ANSWERED if found is not None else Exit.FAILED


def _stop(cli: Cli) -> int:
    from hermes.host.wire.serve_folder import ServeFolder  # who serves does without

    place, until = ServeFolder(cli.home), time.monotonic() + STOP_S
    asked = place.note()
    found = asyncio.run(_asked(cli, "server.stop"))
    if found is None:
        cli.out.note("No server runs for this home.")
        return Exit.ANSWERED
    while place.is_held:
        if (note := place.note()) != asked:  # a client that lost the first has had another one started
            asked = note
            asyncio.run(_asked(cli, "server.stop"))
        if time.monotonic() > until:
            cli.out.error(f"the server (pid {note.pid if note else '?'}) did not end within {STOP_S:.0f} s")
            return Exit.FAILED
        time.sleep(LOOK_S)
    stopped = f"; {found['working']} turns were stopped" if found["working"] else ""
    cli.out.line(f"The server has ended{stopped}.")
    return Exit.ANSWERED


async def _asked(cli: Cli, method: str) -> Any:
    """What a server that runs answers; None when none does. It is asked without a version, to be stoppable by any."""
    from hermes.host.wire.connection import ServerConnection  # who serves does without

    try:
        connection = await ServerConnection.made(cli.home)
    except OSError:
        return None
    async with asyncio.TaskGroup() as group, connection:
        listening = group.create_task(connection.listen())
        try:
            return await connection.ask(method)
        finally:
            listening.cancel()


COMMAND = serve
