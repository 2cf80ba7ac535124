"""TurnScope: one deadline, one cancellation, whatever the order of events."""

import asyncio
import contextlib
import os
import random

import pytest

from hermes.scope import TurnScope, unbroken

FOREVER = 3600.0


async def test_body_that_ends_leaves_the_scope_done() -> None:
    scope = TurnScope()
    async with scope:
        await asyncio.sleep(0)
    assert (scope.state, scope.cancelled, scope.expired) == ("done", False, False)


async def test_cancel_stops_the_body_at_the_border() -> None:
    scope = TurnScope()
    reached = False
    async with scope:
        scope.cancel("enough")
        await asyncio.sleep(FOREVER)
        reached = True
    assert (scope.state, scope.reason, reached) == ("cancelled", "enough", False)
    await asyncio.sleep(0)  # the task itself is not cancelled


async def test_cancel_before_the_start_stops_the_body_at_its_first_await() -> None:
    scope = TurnScope()
    scope.cancel("too late")
    ran = False
    async with scope:
        await asyncio.sleep(0)
        ran = True
    assert (scope.state, ran) == ("cancelled", False)


async def test_cancel_after_the_end_is_a_no_op() -> None:
    scope = TurnScope()
    async with scope:
        pass
    scope.cancel("late")
    await asyncio.sleep(0)
    assert (scope.state, scope.reason) == ("done", None)


async def test_deadline_expires_and_children_have_no_more_time() -> None:
    scope = TurnScope(timeout_s=0.01)
    async with scope:
        child = scope.child("call", timeout_s=FOREVER)
        async with child:
            left = child.remaining()
            assert left is not None
            assert left <= 0.01
            await asyncio.sleep(FOREVER)
    assert scope.state == "expired"
    assert child.state == "failed"  # its body was ended from above
    assert scope.children == frozenset()


async def test_an_error_of_the_body_passes_even_when_cancelled() -> None:
    async def body() -> None:
        async with TurnScope() as scope:
            try:
                scope.cancel()
                await asyncio.sleep(FOREVER)
            except asyncio.CancelledError:
                raise KeyError("clean-up failed") from None

    with pytest.raises(KeyError):
        await body()


async def test_a_cancellation_from_outside_passes_through() -> None:
    scope = TurnScope()

    async def body() -> None:
        async with scope:
            await asyncio.sleep(FOREVER)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(body())
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
    assert scope.state == "failed"


async def test_a_task_group_inside_is_ended_by_cancel() -> None:
    scope = TurnScope()
    async with scope, asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(FOREVER))
        group.create_task(asyncio.sleep(FOREVER))
        await asyncio.sleep(0)
        scope.cancel("stop")
    assert scope.state == "cancelled"


async def test_cancel_from_another_thread() -> None:
    scope = TurnScope()
    async with scope:
        await asyncio.get_running_loop().run_in_executor(None, scope.cancel_threadsafe, "from afar")
        await asyncio.sleep(FOREVER)
    assert (scope.state, scope.reason) == ("cancelled", "from afar")


async def test_work_that_must_not_break_ends_before_the_cancellation() -> None:
    done: list[str] = []

    async def work() -> str:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        done.append("written")
        return "row"

    scope = TurnScope()
    async with scope:
        scope.cancel()
        await unbroken(work())
        done.append("not reached")
    assert done == ["written"]
    assert await unbroken(work()) == "row"


@pytest.mark.parametrize("first", range(0, 10_000 if os.environ.get("HERMES_TEST_FULL") == "1" else 1_000, 100))
async def test_any_interleaving_ends_in_exactly_one_state(first: int) -> None:
    """Random trees of scopes; finish, fail, cancel and expire in any order; nothing is left open or cancelled."""
    for seed in range(first, first + 100):
        await _interleave(seed)


async def _interleave(seed: int) -> None:
    rng = random.Random(seed)
    scopes: list[TurnScope] = []

    async def body(scope: TurnScope, depth: int) -> None:
        scopes.append(scope)
        async with scope:
            for _ in range(rng.randrange(3)):
                await asyncio.sleep(rng.choice((0, 0, 0.0005)))
                action = rng.randrange(8)
                if action == 0:
                    rng.choice(scopes).cancel(f"by {scope.name}")
                elif action == 1:
                    raise ValueError(scope.name)
                elif depth < 3 and action in (2, 3):
                    await body(scope.child(f"{scope.name}.s", timeout_s=rng.choice((None, 0.0, 0.001, 1.0))), depth + 1)
                elif depth < 3 and action in (4, 5):
                    async with asyncio.TaskGroup() as group:
                        for n in range(2):
                            group.create_task(body(scope.child(f"{scope.name}.{n}"), depth + 1))

    root = TurnScope("root", timeout_s=rng.choice((None, 0.002, 1.0)))
    with contextlib.suppress(ValueError, BaseExceptionGroup):
        await asyncio.wait_for(body(root, 0), 10)
    assert all(scope.state in ("done", "failed", "cancelled", "expired") for scope in scopes), seed
    assert all(not scope.children for scope in scopes), seed
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, seed
    await asyncio.sleep(0)
