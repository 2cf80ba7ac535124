"""One child from its first row to its last: it is run, may be stopped, and always comes to a stored result."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.errors import HermesError
from hermes.ops import StoreOp
from hermes.runtime.delegation.child_events import ChildEvents
from hermes.runtime.delegation.child_record import ChildRecord
from hermes.scope import unbroken
from hermes.seams import EventStore, HookBus, Supervisor
from hermes.types import JsonObject

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.models.account import Account
    from hermes.runtime.agent import AIAgent

WORKTREE = "isolation: worktree"
CLOSE_S = 2.0
STOPPED = "it was stopped before it began"
log = logging.getLogger(__name__)


class ChildSurroundings:
    """What children of one call have in common: the store of their parent, its hooks, and who starts processes."""

    def __init__(self, store: EventStore, hooks: HookBus, supervisor: Callable[[], Supervisor]) -> None:
        self.store = store
        self.hooks = hooks
        self.supervisor = supervisor


class RunningChild:
    """A child of a call. `make` builds its agent for the folder it is given, when its turn comes."""

    def __init__(
        self,
        record: ChildRecord,
        events: ChildEvents,
        account: "Account | None",
        around: ChildSurroundings,
        make: "Callable[[str, Settings], AIAgent]",
    ) -> None:
        self.record = record
        self.events = events
        self.account = account
        self.agent: AIAgent | None = None  # while it runs
        self._around = around
        self._make = make
        self._is_stopped = False

    def stop(self) -> None:
        """End it, and with it everything below; its result says that it was stopped."""
        self._is_stopped = True
        if self.agent is not None:
            self.agent.interrupt()

    async def run(self, folder: str, settings: "Settings") -> JsonObject:
        """Its result, whatever happens to it; only a cancellation of who waits passes through."""
        record = self.record
        try:
            if self._is_stopped:
                return await self._told_end(record.failed("interrupted", STOPPED))
            await self._begin()
            async with self._place(folder, settings) as (where, settings_there):
                self.agent = self._make(where, settings_there)
                try:
                    if self._is_stopped:  # while its folder was made
                        return await self._told_end(record.failed("interrupted", STOPPED))
                    await self.agent.arun_conversation(record.task.goal, task_id=record.session_id)
                finally:
                    await self._let_go()
        except HermesError as error:
            return await self._told_end(record.failed("error", str(error)))
        except Exception as error:  # the border to a child: whatever is wrong with it, the parent goes on
            log.exception("the child %s failed", record.name)
            return await self._told_end(record.failed("error", f"{type(error).__name__}: {error}"))
        except asyncio.CancelledError:
            await unbroken(self._told_end(record.failed("interrupted", "it was stopped")))
            raise
        finally:
            if self.account is not None:
                self.account.close()
        return await self._told_end(record.result or record.failed("error", "it ended without a word"))

    async def _begin(self) -> None:
        record, account = self.record, self.account
        granted: JsonObject = {}
        if account is not None:
            units = {unit: getattr(account.grant, unit) for unit in ("usd", "tokens", "seconds")}
            granted = {unit: value for unit, value in units.items() if value is not None}
        await self._around.store.commit(record.started_row(granted))
        self.events.tell("start")
        await self._around.hooks.observe("subagent_start", self._facts(child_goal=record.task.goal))

    async def _told_end(self, result: JsonObject) -> JsonObject:
        """Keep and tell how it ended; what its own last commit has stored is not stored again."""
        record = self.record
        if record.result is None:
            await self._store(record.ended_rows(result))
        if record.notes:
            result = {**result, "notes": list(record.notes)}
        self.events.ended(result)
        facts = {"child_summary": result["summary"], "child_status": result["status"]}
        await self._around.hooks.observe("subagent_stop", self._facts(**facts, duration_ms=int(record.seconds * 1000)))
        return result

    async def _store(self, rows: list[StoreOp]) -> None:
        """Put its end away. One that could not be made has no session of its own that would have ended."""
        for ops in (rows, rows[-1:]):
            try:
                await self._around.store.commit(*ops)
                return
            except HermesError as error:  # the parent learns it all the same; after a crash it counts as stopped
                log.info("the end of the child %s was not stored (%s rows): %s", self.record.name, len(ops), error)

    async def _let_go(self) -> None:
        """Nothing of it goes on: its processes end with it."""
        agent, self.agent = self.agent, None
        assert agent is not None
        try:
            async with asyncio.timeout(CLOSE_S):
                await agent.aclose()
        except TimeoutError:
            log.warning("the child %s did not close within %s s", self.record.name, CLOSE_S)

    @asynccontextmanager
    async def _place(self, folder: str, settings: "Settings") -> "AsyncIterator[tuple[str, Settings]]":
        if self.record.task.isolation != "worktree":
            yield folder, settings
            return
        from hermes.tools.worktrees import in_worktree  # for who asks for one

        tell, supervisor = self.record.notes.append, self._around.supervisor()
        async with in_worktree(tell, settings, supervisor, Path(folder), is_quiet=True, asked_by=WORKTREE) as place:
            yield str(place.folder), place.settings

    def _facts(self, **more: Any) -> JsonObject:
        record = self.record
        return {
            "session_id": record.parent_session_id,
            "parent_session_id": record.parent_session_id,
            "parent_turn_id": record.turn_id,
            "parent_subagent_id": record.path[-2] if len(record.path) > 1 else "",
            "child_session_id": record.session_id,
            "child_subagent_id": record.name,
            "child_role": "orchestrator" if record.task.is_orchestrator else "leaf",
            **more,
        }
