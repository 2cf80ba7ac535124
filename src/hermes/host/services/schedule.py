"""Keep the time for the jobs of the home while the server lives; where there are none, look whether one was made."""

import asyncio
import logging

from hermes.config.settings import Settings
from hermes.errors import HermesError
from hermes.host.service import HostService, ServiceContext
from hermes.runtime.setup.process import shared

LOOK_S = 1.0
log = logging.getLogger(__name__)


async def run(context: ServiceContext) -> None:
    """Tick from the first job on. Runs that go on when the server ends are gone on with by the next scheduler."""
    while not await _has_jobs(context.settings):  # noqa: ASYNC110 - another process makes them
        await asyncio.sleep(LOOK_S)
    from hermes.host.schedule.ticker import Ticker  # paid by who has jobs

    await Ticker(context.host, context.settings).run(asyncio.Event())


async def _has_jobs(settings: Settings) -> bool:
    try:
        return await shared.pool.run(_read, settings)
    except HermesError as error:  # the store fails for a while
        log.warning("the jobs could not be looked at: %s", error)
        return False


def _read(settings: Settings) -> bool:
    return bool(shared.store(settings).schedule.read(lambda tx: tx.jobs()))


SERVICE = HostService(run=run)
