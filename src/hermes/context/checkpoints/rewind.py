"""Go back to how files were before a moment of a session: what that would do, doing it, and taking it back."""

import secrets
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from hermes.context.checkpoints.capture import InThread, read_entry, state_of
from hermes.context.checkpoints.contents import Contents
from hermes.context.checkpoints.git import GitStore
from hermes.context.checkpoints.model import CheckpointError, State
from hermes.context.checkpoints.restore import RestorePlan, Restorer, content_of
from hermes.context.checkpoints.step_keeper import StepKeeper
from hermes.context.checkpoints.step_log import FileStep, name_of, path_of

REWIND = "rewind"
_UNKNOWN: State = "?"


class RewindPlan(Struct, frozen=True, kw_only=True):
    """What going back would do in one folder."""

    root: str
    then: dict[str, State] = {}  # what would be put back
    now: dict[str, State] = {}  # how those paths are at present
    kept: tuple[str, ...] = ()  # changed by somebody else since, or nobody knows by whom: left alone
    lost: tuple[str, ...] = ()  # their content was too large to be kept, or is no longer there

    @property
    def files(self) -> list[str]:
        return [path for path in self.then if not path.endswith("/")]


class RewindDone(Struct, frozen=True, kw_only=True):
    """What was put back, and what was not."""

    restored: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class Rewinder:
    """Goes back and forth in the steps of a session."""

    def __init__(self, keeper: StepKeeper, store: GitStore, in_thread: InThread, max_bytes: int) -> None:
        self._keeper, self._store, self._in_thread, self._max_bytes = keeper, store, in_thread, max_bytes

    async def steps(self, session_id: str) -> list[FileStep]:
        found: list[FileStep] = await self._in_thread(self._keeper.log.of, session_id)
        return found

    async def plan(self, session_id: str, since: float) -> list[RewindPlan]:
        """What it takes to have the files as they were at `since`."""
        steps = [step for step in await self.steps(session_id) if step.at >= since and not step.undone]
        return await self._planned(steps)

    async def texts(self, plan: RewindPlan, path: str) -> tuple[str | None, str | None]:
        """A file of a plan as it was and as it is; None where there was none, or is none."""
        before = await self._content(content_of(plan.then[path])) if plan.then[path] else None
        read = await self._in_thread(read_entry, path_of(plan.root), path_of(path)) if plan.now[path] else None
        shown = [None if data is None else data.decode("utf-8", "replace") for data in (before, read and read[1])]
        return shown[0], shown[1]

    async def _content(self, name: str) -> bytes | None:
        data: bytes | None = await self._in_thread(self._keeper.contents.get, name)
        if data is not None:
            return data
        async for _, found in self._store.blobs([name]):
            return found
        return None

    async def go(self, session_id: str, plans: Iterable[RewindPlan], message: int, at: float) -> RewindDone:
        """Carry the plans out; that is a step itself, and can be taken back."""
        done = [await self._carried_out(plan) for plan in plans]
        made = [
            FileStep(
                id=secrets.token_hex(6),
                at=at,
                turn=REWIND,
                tool=REWIND,
                root=plan.root,
                was={path: plan.now[path] for path in restored},
                now={path: plan.then[path] for path in restored},
                message=message,
            )
            for plan, restored in done
        ]
        if not made and message:
            made = [
                FileStep(id=secrets.token_hex(6), at=at, turn=REWIND, tool=REWIND, root="", now={}, message=message)
            ]
        if made:
            await self._in_thread(self._keeper.log.add, session_id, *made)
        return _told(plan for plan, _ in done)

    async def last(self, session_id: str) -> list[FileStep]:
        """The steps of the newest rewind that still stands; none when there is none."""
        steps = [step for step in await self.steps(session_id) if step.tool == REWIND and not step.undone]
        return [step for step in steps if step.at == steps[-1].at] if steps else []

    async def back(self, session_id: str, rewinds: list[FileStep]) -> RewindDone:
        """Take a rewind back: the files are as they were before it."""
        done = [await self._carried_out(plan) for plan in await self._planned([one for one in rewinds if one.root])]
        await self._in_thread(self._keeper.log.add, session_id, *(replace(one, undone=True) for one in rewinds))
        return _told(plan for plan, _ in done)

    async def _planned(self, steps: list[FileStep]) -> list[RewindPlan]:
        roots = dict.fromkeys(step.root for step in steps if step.root)
        plans = [await self._in_thread(self._plan, root, [one for one in steps if one.root == root]) for root in roots]
        return [await self._with_contents(plan) for plan in plans]

    def _plan(self, root: str, steps: list[FileStep]) -> RewindPlan:
        then: dict[str, State] = {}
        left: dict[str, State] = {}  # how the last step has left it
        strange: set[str] = set()
        for step in steps:
            for path, was in step.was.items():
                if path in left and left[path] != was:
                    strange.add(path)  # somebody else was at it between two steps
                then.setdefault(path, was)
                left[path] = (step.now or {}).get(path, _UNKNOWN)
        top = path_of(root)
        now = {path: state_of(top, path_of(path), self._max_bytes) for path in then}
        wanted = {path: state for path, state in then.items() if now[path] != state}
        lost = {path for path, state in wanted.items() if content_of(state).startswith("~")}
        kept = {path for path in wanted if path in strange or not _is_left(path, now[path], left[path])} - lost
        return RewindPlan(
            root=root,
            then={path: state for path, state in wanted.items() if path not in kept | lost},
            now={path: now[path] for path in wanted if path not in kept | lost},
            lost=tuple(sorted(lost)),
            kept=tuple(sorted(path for path in kept if not path.endswith("/"))),
        )

    async def _with_contents(self, plan: RewindPlan) -> RewindPlan:
        lost = [path for path, state in plan.then.items() if not await self._has(content_of(state))]
        if not lost:
            return plan
        return replace(
            plan,
            then={path: state for path, state in plan.then.items() if path not in lost},
            now={path: state for path, state in plan.now.items() if path not in lost},
            lost=tuple(sorted({*plan.lost, *lost})),
        )

    async def _has(self, name: str) -> bool:
        if not name:
            return True
        if await self._in_thread(self._keeper.contents.has, name):
            return True
        return await _is_in(self._store, name)

    async def _carried_out(self, plan: RewindPlan) -> tuple[RewindPlan, tuple[str, ...]]:
        await self._in_thread(_keep_now, self._keeper.contents, plan)
        states = {path_of(path): state for path, state in plan.then.items()}
        work = RestorePlan(
            now={path_of(path): state for path, state in plan.now.items()}, then=states, todo=list(states)
        )
        worker = Restorer(path_of(plan.root), work, self._max_bytes)
        await self._in_thread(worker.clear_way)
        await self._in_thread(worker.make_folders)
        elsewhere: list[str] = []
        for name in work.contents:
            data = await self._in_thread(self._keeper.contents.get, name)
            if data is None:
                elsewhere.append(name)
            else:
                await self._in_thread(worker.write, name, data)
        async for name, data in self._store.blobs(elsewhere):
            await self._in_thread(worker.write, name, data)
        await self._in_thread(worker.set_modes)
        restored = tuple(name_of(path) for path in dict.fromkeys(worker.done))
        kept = (*plan.kept, *(name_of(path) for path in work.kept if not path.endswith(b"/")))
        return replace(plan, kept=tuple(dict.fromkeys(kept))), restored


def _is_left(path: str, now: State, left: State) -> bool:
    """Whether a path is as the agent has left it. Of a folder only that it is there counts."""
    return bool(now) == bool(left) if path.endswith("/") else now == left


def _keep_now(contents: Contents, plan: RewindPlan) -> None:
    """Keep what is about to be replaced; `CheckpointError` when it cannot be, and then nothing is replaced."""
    for path, state in plan.now.items():
        name = content_of(state)
        if name and not name.startswith("~") and not contents.has(name):
            read = read_entry(path_of(plan.root), path_of(path))
            if read is None:
                raise CheckpointError(f"{path!r} cannot be read, so nothing is taken back")
            contents.put(read[1])


async def _is_in(store: GitStore, name: str) -> bool:
    if not store.exists:
        return False
    try:
        await store.run("cat-file", "-e", name)
    except CheckpointError:
        return False
    return True


def _told(plans: Iterable[RewindPlan]) -> RewindDone:
    found = list(plans)
    return RewindDone(
        restored=tuple(path for plan in found for path in plan.files if path not in plan.kept),
        kept=tuple(path for plan in found for path in plan.kept),
        lost=tuple(path for plan in found for path in plan.lost),
    )
