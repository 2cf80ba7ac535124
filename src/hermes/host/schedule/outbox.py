"""What is to be delivered: a sender for each kind of target. Written with the outcome, sent afterwards."""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hermes.config.sections.cron import Section
from hermes.config.settings import Settings
from hermes.errors import HermesError, UserError
from hermes.host.schedule.job_program import run_delivery
from hermes.runtime.setup.process import shared
from hermes.schedule.ledger import ScheduleLedger
from hermes.seams import Clock
from hermes.state.message_line import QueuedMessage
from hermes.state.schedule_rows import Delivery, ScheduleTx

if TYPE_CHECKING:
    from hermes.host.host import Host

PORTION = 20
MAX_TRIES = 5
FIRST_WAIT_S = 30.0
UNKNOWN = "the scheduler was killed while it delivered; whether the words arrived is not known"
log = logging.getLogger(__name__)

Sender = Callable[[Delivery], Awaitable[None]]


class Outbox:
    """Sends what waits. One kind of target is one sender, which raises what went wrong."""

    def __init__(self, host: "Host", settings: Settings, ledger: ScheduleLedger, clock: Clock) -> None:
        self._host = host
        self._settings = settings
        self._ledger = ledger
        self._clock = clock
        self.senders: dict[str, Sender] = {"local": self._keep, "origin": self._to_origin, "command": self._to_command}

    async def send_waiting(self) -> int:
        """Send some of what waits and whose time has come; how many there were."""
        now = self._clock.now()
        found: list[Delivery] = await shared.pool.run(self._take, now)
        for delivery in found:
            try:
                await self._send(delivery)
            except (HermesError, OSError) as error:
                await shared.pool.run(self._failed, delivery, str(error))
            except Exception as error:  # the border to a sender: one that fails costs its own words only
                log.exception("delivery %s failed", delivery.id)
                await shared.pool.run(self._failed, delivery, f"{type(error).__name__}: {error}")
            else:
                await shared.pool.run(self._ended, replace(delivery, state="sent", error=""))
        return len(found)

    async def _send(self, delivery: Delivery) -> None:
        kind = delivery.target.partition(":")[0]
        if (sender := self.senders.get(kind)) is None:
            raise UserError(f"nothing here can deliver to {delivery.target!r}")
        await sender(delivery)

    async def _keep(self, delivery: Delivery) -> None:
        """The page of the run is all that is wanted."""

    async def _to_origin(self, delivery: Delivery) -> None:
        """Into the line of the session that the job was made in; a key is heard once, however often it is tried."""
        session_id, key = str(delivery.origin.get("session_id") or ""), f"delivery-{delivery.id}"
        if session_id in self._host.sessions or session_id in self._host.asleep:
            await self._host.submit(session_id, delivery.text, "queue", key)
            return
        db = self._host.db(self._settings)
        if not session_id or await shared.pool.run(db.get_session, session_id) is None:
            raise UserError(f"the session {session_id!r} that this job delivers to is gone")
        message = QueuedMessage(key=key, content=delivery.text, who="cron")
        await db.store.in_line(lambda line: line.add(session_id, message))

    async def _to_command(self, delivery: Delivery) -> None:
        name = delivery.target.partition(":")[2]
        command = self._settings.of(Section).commands.get(name)
        if command is None:
            raise UserError(f"there is no command {name!r} to deliver to any more (cron.commands in config.yaml)")
        ran = await run_delivery(command, delivery.text, self._settings.environ, {"HERMES_CRON_JOB": delivery.job_id})
        if ran.exit_code:
            said = (ran.stderr or ran.stdout).strip()[-500:]
            raise UserError(
                f"the command {name!r} ended with exit code {ran.exit_code}" + (f": {said}" if said else "")
            )

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _take(self, now: float) -> list[Delivery]:
        """Mark what is sent now, before it is: one that was begun and not ended is known to be in doubt."""
        if not self._ledger.rows.read(lambda tx: tx.deliveries("waiting", now, 1) or tx.deliveries("sending", now, 1)):
            return []

        def work(tx: ScheduleTx) -> list[Delivery]:
            for row in tx.deliveries("sending", now, PORTION):
                if row.owner != self._ledger.owner and not self._ledger.is_alive(row.owner):
                    again = row.target.startswith("origin")
                    tx.put_delivery(
                        replace(row, state="waiting" if again else "failed", error="" if again else UNKNOWN)
                    )
                    if not again:
                        _note(tx, row.job_id, UNKNOWN)
            found = [
                replace(row, state="sending", owner=self._ledger.owner, tries=row.tries + 1)
                for row in tx.deliveries("waiting", now, PORTION)
            ]
            for row in found:
                tx.put_delivery(row)
            return found

        return self._ledger.rows.write(work)

    def _failed(self, delivery: Delivery, error: str) -> None:
        if delivery.tries >= MAX_TRIES:
            self._ended(replace(delivery, state="failed", error=error))
            return
        next_try_at = self._clock.now() + FIRST_WAIT_S * 2 ** (delivery.tries - 1)
        self._ended(replace(delivery, state="waiting", error=error, next_try_at=next_try_at))

    def _ended(self, delivery: Delivery) -> None:
        def work(tx: ScheduleTx) -> None:
            tx.put_delivery(delivery)
            _note(tx, delivery.job_id, delivery.error)

        self._ledger.rows.write(work)


def _note(tx: ScheduleTx, job_id: str, error: str) -> None:
    job = tx.job(job_id)
    if job is not None and job.last_delivery_error != error:
        tx.put_job(replace(job, last_delivery_error=error))
