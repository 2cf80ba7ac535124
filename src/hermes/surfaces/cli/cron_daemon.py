"""`hermes cron tick` and `hermes cron daemon`: the ticker in a process of its own."""

import asyncio
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hermes.config.load import bound_settings
from hermes.config.sections.top import Section as Top
from hermes.config.settings import Settings
from hermes.host.host import Host
from hermes.host.logs import logging_as_set
from hermes.host.schedule.ticker import Ticker
from hermes.runtime.setup.process import shared
from hermes.runtime.setup.schedule_setup import schedule_ledger
from hermes.state import owner
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit


def tick_once(cli: Cli, flags: Mapping[str, Any], *, as_json: bool) -> int:
    """Run what is due; nothing when somebody else keeps the time."""
    settings = cli.settings(flags)

    async def main() -> int:
        try:
            held = await shared.pool.run(_other_ticker, settings)
            if held:
                words = f"{held} keeps the time, and runs what is due"
                cli.out.json({"success": True, "ran": 0, "ticker": held}) if as_json else cli.out.note(words)
                return Exit.ANSWERED
            async with Host(settings.of(Top).max_concurrent_sessions) as host:
                ran = await Ticker(host, settings).run_due()
            told = f"{ran} run{'' if ran == 1 else 's'}"
            cli.out.json({"success": True, "ran": ran, "ticker": None}) if as_json else cli.out.line(told)
            return Exit.ANSWERED
        finally:
            await shared.close()

    with bound_settings(settings), logging_as_set(settings, cli.out.note):
        return asyncio.run(main())


def run_daemon(cli: Cli, flags: Mapping[str, Any]) -> int:
    """Keep the time until a signal says to stop."""
    settings = cli.settings(flags)

    async def main() -> int:
        stop = asyncio.Event()
        try:
            with _stopping(stop):
                async with Host(settings.of(Top).max_concurrent_sessions) as host:
                    cli.out.note("The scheduler runs; Ctrl-C stops it.")
                    await Ticker(host, settings).run(stop)
        finally:
            await shared.close()
        return Exit.ANSWERED

    with bound_settings(settings), logging_as_set(settings, cli.out.note):
        return asyncio.run(main())


def _other_ticker(settings: Settings) -> str:
    ledger = schedule_ledger(settings, shared.store(settings).schedule)
    held = ledger.ticker(shared.clock.now())
    return owner.described(held.owner) if held is not None and held.owner != owner.this_process() else ""


@contextmanager
def _stopping(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
