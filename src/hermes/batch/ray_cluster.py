"""The same run on a Ray cluster: groups of samples are Ray tasks, which Ray places, retries and hands back.

Only this process writes rows and files. A task that is run again after a node was lost gives its result once, since a
task has one result, so no sample is doubled.
"""

import importlib
import logging
import os
from typing import Any

import msgspec

from hermes.batch.carried_session import carry_in
from hermes.batch.opened_run import OpenedRun
from hermes.batch.ray_task import GroupOrder, GroupResult, run_group
from hermes.batch.sample_result import SampleResult, failed
from hermes.errors import ToolError, UserError
from hermes.state.batch_rows import SampleRow
from hermes.typed import from_msgpack

log = logging.getLogger(__name__)

MISSING = "--on ray needs the extra `ray`: ./hermes --install-extra ray, or pip install 'hermes-runtime[ray]'"
MAX_RETRIES = 5  # of a task whose worker or node is gone
WAIT_S = 0.5


def require_ray() -> Any:
    """The library; `UserError` that names the extra where it is missing."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise UserError(MISSING) from error


async def run_on_ray(run: OpenedRun) -> None:
    """Run what waits on the cluster that RAY_ADDRESS names, or that this machine belongs to."""
    ray = require_ray()
    address = run.settings.environ.get("RAY_ADDRESS") or os.environ.get("RAY_ADDRESS") or "auto"
    pool = run.process.pool
    try:
        await pool.run(ray.init, address=address, log_to_driver=False, logging_level="ERROR", ignore_reinit_error=True)
    except Exception as error:  # the border to Ray, which has no error class for this
        raise UserError(
            f"there is no Ray cluster at {address!r} ({_short(error)}); start one with: ray start --head"
        ) from error
    try:
        await _Flow(run, ray).run()
    finally:
        await pool.run(ray.shutdown)


class _Flow:
    """Tasks on their way: never more than the cluster has room for, however many samples wait."""

    def __init__(self, run: OpenedRun, ray: Any) -> None:
        self._run = run
        self._ray = ray
        cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._group = max(1, run.spec.num_workers // cpus)
        self._most = max(1, run.spec.num_workers // self._group)
        self._task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES, max_calls=50)(run_group)
        self._under_way: dict[Any, list[SampleRow]] = {}

    async def run(self) -> None:
        run, pool = self._run, self._run.process.pool
        while True:
            while len(self._under_way) < self._most and not run.stop.reason:
                rows = await pool.run(run.rows.take, run.spec.run_id, self._group, len(run.dataset))
                if not rows:
                    break
                await self._submit(rows)
            if not self._under_way:
                return
            ready, _ = await pool.run(self._ray.wait, list(self._under_way), num_returns=1, timeout=WAIT_S)
            for ref in ready:
                await self._take(ref)
            if run.stop.is_hard:
                await self._cancel()
                return

    async def _submit(self, rows: list[SampleRow]) -> None:
        run, pool = self._run, self._run.process.pool
        samples = [await pool.run(run.dataset.sample, row.index) for row in rows]
        order = GroupOrder(
            run=run.entry,
            spec=msgspec.to_builtins(run.spec),
            flags=dict(run.settings.flags),
            config=_config(run),
            variables=dict(run.settings.secrets),
            samples=samples,
            rows=rows,
        )
        for row in rows:
            if not row.attempt:
                continue  # entered when it was taken
            session_id = run.entry.session_of(row.index, row.attempt + 1)
            await pool.run(run.rows.hold, run.spec.run_id, row.index, row.attempt + 1, session_id)
        self._under_way[self._task.remote(msgspec.json.encode(order))] = rows
        run.progress.running += len(rows)

    async def _take(self, ref: Any) -> None:
        run, pool = self._run, self._run.process.pool
        rows = self._under_way.pop(ref)
        run.progress.running -= len(rows)
        try:
            packed = await pool.run(self._ray.get, ref)
        except Exception as error:  # the border to Ray: the cluster gave the task up
            log.exception("Ray gave up a group of %d samples", len(rows))
            told = ToolError(f"Ray gave it up: {_short(error)}")
            await pool.run(run.ended, [failed(row, told) for row in rows])
            return
        results = from_msgpack(packed, list[GroupResult])
        for one in results:
            await carry_in(run.process.store(run.settings), one.sessions)
        await pool.run(run.ended, [SampleResult(row=one.row, body=one.body) for one in results])
        run.tell()

    async def _cancel(self) -> None:
        run, pool = self._run, self._run.process.pool
        for ref, rows in self._under_way.items():
            await pool.run(self._ray.cancel, ref, force=True)
            for row in rows:
                await pool.run(run.rows.put_back, run.spec.run_id, row.index)
        self._under_way.clear()


def _config(run: OpenedRun) -> str:
    file = run.settings.home / "config.yaml"
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _short(error: Exception) -> str:
    return (str(error).strip() or repr(error)).splitlines()[0][:300]
