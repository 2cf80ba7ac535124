"""The ticker: a service that keeps the time for the jobs of a home. Any number may live; one of them ticks."""

import asyncio
import logging
from typing import TYPE_CHECKING

from hermes.config.sections.cron import Section
from hermes.config.settings import Settings
from hermes.errors import HermesError
from hermes.host.schedule.job_run import JobRunner
from hermes.host.schedule.outbox import Outbox
from hermes.runtime.setup.process import shared
from hermes.runtime.setup.schedule_setup import schedule_ledger
from hermes.schedule.ledger import ClaimedMoment
from hermes.schedule.tick import PORTION, TickState
from hermes.seams import Clock

if TYPE_CHECKING:
    from hermes.host.host import Host

LOOK_S = 1.0  # how often the clock is looked at
BEAT_S = 10.0  # how often runs say that they go on
MOST_RUNS = 64  # at once, where the settings name no limit: as many as turns; who is due waits, and is not lost
log = logging.getLogger(__name__)


class Ticker:
    """`await Ticker(host, settings).run(stop)` until `stop` is set. What runs then is left to be gone on with.

    Everything that touches the store is in a thread, so the loop of whoever runs this answers all the time.
    """

    name = "schedule"

    def __init__(self, host: "Host", settings: Settings, clock: Clock | None = None) -> None:
        self._host = host
        self._clock = clock or shared.clock
        self._ledger = schedule_ledger(settings, shared.store(settings).schedule)
        section = settings.of(Section)
        self.state = TickState(self._ledger, section.history_days)
        self._most = section.max_parallel_jobs or MOST_RUNS
        self._runner = JobRunner(host, settings, self._ledger, self._clock)
        self._outbox = Outbox(host, settings, self._ledger, self._clock)
        self._runs: dict[int, asyncio.Task[None]] = {}
        self._news = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Tick until `stop` is set, or this is cancelled. A store that fails for a while is looked at again."""
        try:
            await self._tick(stop)
        finally:
            await self._leave()

    async def _tick(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            beats = group.create_task(self._beat(), name="heartbeat of the schedule")
            posts = group.create_task(self._post(), name="outbox of the schedule")
            try:
                while not stop.is_set():
                    count = await self._look(group)
                    await _wait(stop, 0.0 if count >= PORTION else LOOK_S)
            finally:
                for task in (beats, posts, *self._runs.values()):
                    task.cancel()

    async def run_due(self) -> int:
        """Run all that is due now to its end, deliver, and leave; how many moments that were."""
        total = 0
        async with asyncio.TaskGroup() as group:
            beats = group.create_task(self._beat(), name="heartbeat of the schedule")
            while (count := await self._look(group, is_strict=True)) or self._runs:
                total += count
                if self._runs:
                    await asyncio.wait(self._runs.values(), return_when=asyncio.FIRST_COMPLETED)
                    await asyncio.sleep(0)
            beats.cancel()
        while await self._outbox.send_waiting():
            pass
        await self._leave()
        return total

    async def _look(self, group: asyncio.TaskGroup, *, is_strict: bool = False) -> int:
        try:
            found = await shared.pool.run(self.state.tick, self._clock.now(), self._most - len(self._runs))
        except Exception as error:  # the border: whatever fails now is looked at again in a moment
            if is_strict:
                raise
            log.warning("the schedule could not be looked at: %s", error, exc_info=not isinstance(error, HermesError))
            return 0
        for claimed in found:
            task = group.create_task(self._run(claimed), name=f"job {claimed.job.id}")
            self._runs[claimed.moment.id] = task
        return len(found)

    async def _run(self, claimed: ClaimedMoment) -> None:
        try:
            with self._host.errand():
                await self._runner.run(claimed)
        except HermesError as error:  # the outcome could not be stored: the run is taken up again as one that was lost
            log.warning("the outcome of job %s could not be stored: %s", claimed.job.id, error)
        finally:
            self.state.ended(claimed.moment.id)
            self._runs.pop(claimed.moment.id, None)
            self._news.set()

    async def _beat(self) -> None:
        """Renew what runs here; a run that others have taken over is stopped."""
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                lost: list[int] = await shared.pool.run(self.state.lost, self._clock.now())
            except HermesError as error:
                log.warning("the runs of the schedule could not be renewed: %s", error)
                continue
            for moment_id in lost:
                if (task := self._runs.get(moment_id)) is not None:
                    task.cancel()

    async def _post(self) -> None:
        while True:
            try:
                count = await self._outbox.send_waiting()
            except HermesError as error:
                log.warning("what is to be delivered could not be looked at: %s", error)
                count = 0
            if not count:
                await _wait(self._news, LOOK_S)
                self._news.clear()

    async def _leave(self) -> None:
        try:
            await shared.pool.run(self.state.leave, self._clock.now())
        except HermesError as error:  # it is free by itself in a short while
            log.warning("the schedule could not be let go: %s", error)


async def _wait(event: asyncio.Event, limit_s: float) -> None:
    """Until the event, for so long at most; with no time, the others get their turn."""
    if not limit_s:
        await asyncio.sleep(0)
        return
    try:
        async with asyncio.timeout(limit_s):
            await event.wait()
    except TimeoutError:
        return
