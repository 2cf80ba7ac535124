"""`/rollback` for any surface: its words in, what to show out."""

import shlex
import time
from typing import Literal, TypeAlias

from msgspec import Struct

from hermes.context.checkpoints.checkpoints import Checkpoints
from hermes.context.checkpoints.model import CheckpointError, Restored, Snapshot

Mode: TypeAlias = Literal["list", "diff", "restore"]
USAGE = (
    "/rollback lists; /rollback N goes back; /rollback diff N shows what changed since; /rollback N FILE for one file"
)
_SHOWN = 20


class RollbackRequest(Struct, frozen=True, kw_only=True):
    """What somebody asked for."""

    mode: Mode
    which: str = ""
    file: str | None = None
    force: bool = False


class RollbackText(Struct, frozen=True, kw_only=True):
    """What to show; `restored` when something was put back, so that a chat can undo its last turn as well."""

    text: str
    restored: Restored | None = None


def parse(words: str) -> RollbackRequest:
    """The words after `/rollback`; `CheckpointError` with the usage when they make no sense."""
    try:
        parts = shlex.split(words)
    except ValueError as error:
        raise CheckpointError(f"{error}; {USAGE}") from error
    force = "--force" in parts
    parts = [part for part in parts if part != "--force"]
    match parts:
        case []:
            return RollbackRequest(mode="list")
        case ["diff", which]:
            return RollbackRequest(mode="diff", which=which)
        case [which] if which != "diff":
            return RollbackRequest(mode="restore", which=which, force=force)
        case [which, file] if which != "diff":
            return RollbackRequest(mode="restore", which=which, file=file, force=force)
    raise CheckpointError(USAGE)


async def rollback(checkpoints: Checkpoints, folder: str, words: str = "") -> RollbackText:
    """Do what the words say in the project that `folder` is in."""
    wanted = parse(words)
    if wanted.mode == "diff":
        shown = await checkpoints.diff(folder, wanted.which)
        return RollbackText(text=shown or "Nothing has changed since.")
    if wanted.mode == "list":
        return RollbackText(text=listing(await checkpoints.list(folder)))
    done = await checkpoints.restore(folder, wanted.which, wanted.file, force=wanted.force)
    return RollbackText(text=report(done), restored=done)


def listing(snapshots: list[Snapshot]) -> str:
    """The snapshots, one a line."""
    if not snapshots:
        return "There are no checkpoints of this project."
    changes = [_would_change(one) for one in snapshots]
    head = "going back changes"
    width = max(len(head), *map(len, changes))
    rows = [
        f"{one.number:>3}  {one.short_hash}  {when(one.timestamp)}  {change:<{width}}  {one.reason}"
        for one, change in zip(snapshots, changes, strict=True)
    ]
    return "\n".join([f"     snapshot  taken                {head:<{width}}  taken before", *rows])


def _would_change(one: Snapshot) -> str:
    if one.files_changed is None:
        return "not known"
    files = f"{one.files_changed} file{'' if one.files_changed == 1 else 's'}"
    return f"{files} +{one.insertions} -{one.deletions}" if one.files_changed else "nothing"


def report(done: Restored) -> str:
    """What a restore did, in a few lines."""
    lines = [f"Back to {done.restored_to[:8]} ({done.reason}): {_count(done.restored)} restored."]
    lines += [f"  {path}" for path in done.restored[:_SHOWN]]
    if done.kept:
        lines.append(f"Kept, because they were changed by someone else since ({_count(done.kept)}):")
        lines += [f"  {path}" for path in done.kept[:_SHOWN]]
    if done.not_in_snapshot:
        lines.append(f"Too large to have been kept ({_count(done.not_in_snapshot)}):")
        lines += [f"  {path}" for path in done.not_in_snapshot[:_SHOWN]]
    if done.undo:
        lines.append(f"To take this back: /rollback {done.undo[:8]}")
    return "\n".join(lines)


def when(timestamp: float) -> str:
    """A time as this machine's user reads it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(timestamp))


def _count(paths: tuple[str, ...]) -> str:
    return f"{len(paths)} path{'' if len(paths) == 1 else 's'}"
