"""A group of samples in a process of a Ray worker, with a home and a store of its own on that machine."""

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from hermes.batch.carried_session import CarriedSession, carry_out
from hermes.batch.dataset import Sample
from hermes.batch.run_entry import WORKSPACES, sample_context
from hermes.batch.run_spec import RunSpec
from hermes.batch.sample_result import SampleResult, failed, result_of
from hermes.batch.sample_run import SampleContext, run_sample, start_sample
from hermes.config import paths
from hermes.config.load import load_settings
from hermes.runtime.setup.process import shared
from hermes.state.batch_rows import BatchRun, SampleRow
from hermes.typed import convert, from_json
from hermes.types import JsonObject


class GroupOrder(Struct, kw_only=True):
    """What a task is told. Keys travel here and live in memory there; they are never written on the other machine."""

    run: BatchRun
    spec: JsonObject
    flags: JsonObject
    config: str  # of config.yaml
    variables: dict[str, str]  # of .env
    samples: list[Sample]
    rows: list[SampleRow]


class GroupResult(Struct, kw_only=True):
    """One sample's end, with the sessions that it was run in."""

    row: SampleRow
    body: bytes | None
    sessions: list[CarriedSession]


def run_group(packed: bytes) -> bytes:
    """Run the samples side by side; what each gave, in the order they were asked for."""
    order = from_json(packed, GroupOrder)
    return msgspec.msgpack.encode(asyncio.run(_run(order)))


async def _run(order: GroupOrder) -> list[GroupResult]:
    """In a home of the group's own, which is gone with it: what is worth keeping goes back with the result."""
    with TemporaryDirectory(prefix="hermes-batch-") as folder, paths.bound_home(Path(folder)):
        home = Path(folder)
        (home / "config.yaml").write_text(order.config, encoding="utf-8")
        settings = load_settings(home=home, environ={**os.environ, **order.variables}, flags=order.flags)
        try:
            samples = {sample.index: sample for sample in order.samples}
            ctx = sample_context(order.run, convert(order.spec, RunSpec), settings, samples.__getitem__)
            ctx.workspaces = home / WORKSPACES
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_one(ctx, row)) for row in order.rows]
            return [task.result() for task in tasks]
        finally:
            await shared.close()  # the next group has another loop


async def _one(ctx: SampleContext, row: SampleRow) -> GroupResult:
    fresh = SampleRow(index=row.index, digest=row.digest, attempt=row.attempt)
    try:
        end = await run_sample(ctx, await ctx.pool.run(start_sample, ctx, fresh))
        result = await ctx.pool.run(result_of, ctx, end)
    except Exception as error:  # noqa: BLE001 - the border of a sample: its fault ends no other; `failed` logs it
        result = failed(fresh, error)
    return await _with_sessions(ctx, result)


async def _with_sessions(ctx: SampleContext, result: SampleResult) -> GroupResult:
    row = result.row
    found = await ctx.store.load(row.session_id) if row.session_id else None
    last = (found.continued_by or found.session_id) if found is not None else ""
    sessions = await carry_out(ctx.store, last) if last else []
    return GroupResult(row=row, body=result.body, sessions=sessions)
