"""Carry out a worked-out patch on the environment: all of its files, or, when one cannot be written, none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hermes.errors import ToolError
from hermes.seams import Environment
from hermes.tools.files.encoding import UTF8, encode
from hermes.tools.files.planning import Plan
from hermes.tools.files.workspace import Place, TextFile, Workspace


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One file's change with the bytes ready. `data` None: the file goes. `mode` None: that of a new file."""

    place: Place
    before: str | None
    after: str | None
    old_data: bytes
    data: bytes | None
    mode: int | None


def steps_of(plan: Plan, files: Mapping[str, TextFile]) -> list[Step]:
    """The steps of `plan`: what is written comes first, what goes comes last.

    A moved file keeps its encoding and mode. Raises `UnencodableError` before anything is written.
    """
    steps = []
    for change in plan.files:
        file = files[change.path]
        source = files[change.origin] if change.origin else file
        encoding = source.decoded.encoding if source.decoded else UTF8
        data = encode(change.after, encoding) if change.after is not None else None
        info = source.place.info
        mode = info.mode & 0o7777 if info else None
        steps.append(Step(file.place, change.before, change.after, file.data, data, mode))
    return sorted(steps, key=lambda step: step.data is None)


async def apply(environment: Environment, workspace: Workspace, steps: Sequence[Step]) -> None:
    """Do every step. When one fails, those before it are undone and the error goes to the model."""
    done: list[Step] = []
    try:
        for step in steps:
            done.append(step)
            if step.data is None:
                await environment.remove(step.place.path)
            else:
                await workspace.write(step.place, step.data, mode=step.mode)
    except (ToolError, OSError) as error:
        failures = await _undo(environment, done)
        state = f"could not be undone in {', '.join(failures)}" if failures else "was undone"
        raise ToolError(
            f"{done[-1].place.given!r} could not be changed ({error}); what was written before it {state}"
        ) from error


async def _undo(environment: Environment, done: Sequence[Step]) -> list[str]:
    """Put back what each step found, the last first; return the names where that failed."""
    failures = []
    for step in reversed(done):
        try:
            if step.before is not None:
                info = step.place.info
                await environment.write(step.place.resolved, step.old_data, mode=info.mode & 0o7777 if info else None)
            elif await environment.stat(step.place.resolved) is not None:
                await environment.remove(step.place.resolved)
        except (ToolError, OSError):
            failures.append(repr(step.place.given))
    return failures
