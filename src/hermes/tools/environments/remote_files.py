"""File work on another machine or in a container, by small scripts whose input and output are the bytes themselves."""

from collections.abc import Sequence
from typing import Protocol

from hermes.errors import ToolError
from hermes.seams import FileInfo
from hermes.tools.environments import shell_scripts
from hermes.tools.environments.host_files import kind_of

_NOTHING_THERE = 44


class RemoteAnswer(Protocol):
    """What a script gave back."""

    @property
    def code(self) -> int: ...
    @property
    def output(self) -> bytes: ...
    @property
    def errors(self) -> str: ...


class RunScript(Protocol):
    """Runs a bash script there, with arguments and bytes for its stdin."""

    async def __call__(self, script: str, *args: str, stdin: bytes | None = None) -> RemoteAnswer: ...


async def stat_path(run: RunScript, path: str) -> FileInfo | None:
    answer = await run(shell_scripts.STAT, path)
    if answer.code == _NOTHING_THERE:
        return None
    numbers, link, resolved = _checked(answer, path).decode("utf-8", "surrogateescape").split("\n", 2)
    mode, size, mtime = numbers.split()
    seconds, _, fraction = mtime.partition(".")
    return FileInfo(
        path=resolved.rstrip("\n"),
        kind=kind_of(int(mode, 16)),
        size=int(size),
        mtime_ns=int(seconds) * 1_000_000_000 + int((fraction or "0").ljust(9, "0")[:9]),
        mode=int(mode, 16) & 0o7777,
        is_link=link == "link",
    )


async def first_file(run: RunScript, paths: Sequence[str]) -> int | None:
    """The place of the first of `paths` that is a file."""
    if not paths:
        return None
    answer = await run(shell_scripts.FIRST_FILE, *paths)
    return None if answer.code == _NOTHING_THERE else int(_checked(answer, paths[0]))


async def read_path(run: RunScript, path: str, offset: int, size: int | None) -> bytes:
    return _checked(await run(shell_scripts.READ, path, str(offset), "" if size is None else str(size)), path)


async def write_path(run: RunScript, path: str, data: bytes, mode: int | None) -> None:
    _checked(await run(shell_scripts.WRITE, path, "" if mode is None else f"{mode:o}", stdin=data), path)


async def remove_path(run: RunScript, path: str) -> None:
    _checked(await run(shell_scripts.REMOVE, path), path)


async def rename_path(run: RunScript, old: str, new: str) -> None:
    _checked(await run(shell_scripts.RENAME, old, new), old)


async def list_path(run: RunScript, path: str) -> list[str]:
    names = _checked(await run(shell_scripts.LIST, path), path).decode("utf-8", "surrogateescape").split("\0")
    return sorted(name for name in names if name)


def _checked(answer: RemoteAnswer, path: str) -> bytes:
    if answer.code != 0:
        raise ToolError(f"{path}: {answer.errors.strip() or f'failed with {answer.code}'}")
    return answer.output
