"""The store: a bare git repository of its own. Git is started by the supervisor and sees nothing of the user's."""

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from hermes.confinement.outside import outside
from hermes.context.checkpoints.model import CheckpointError
from hermes.context.checkpoints.records import locked
from hermes.errors import ToolError
from hermes.own_git import own_git_argv
from hermes.programs import split_path
from hermes.seams import Child, Decision, SpawnSpec, Supervisor

REFS = "refs/hermes"
_WHO = "Hermes <hermes@localhost>"
_SETTINGS = ("core.autocrlf=false", "pack.threads=1")


class GitStore:
    """Runs git on the repository at `folder`, which is made on first use."""

    def __init__(self, folder: Path, supervisor: Supervisor) -> None:
        self.folder = folder
        self._supervisor = supervisor

    @property
    def exists(self) -> bool:
        """Whether git takes it for one: of a git that was killed while it made it, `HEAD` may be there alone."""
        return (self.folder / "HEAD").is_file() and all((self.folder / name).is_dir() for name in ("objects", "refs"))

    async def make(self) -> None:
        """Have the repository."""
        if self.exists:
            return
        async with locked(self.folder.with_name("make.lock")):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.unlock("HEAD", "config")
            await self.run("init", "--quiet", "--bare", "--object-format=sha1", "--template=", str(self.folder))

    def unlock(self, *names: str) -> None:
        """Take away the locks that a killed git left on these files and refs.

        Git waits for nobody here: the caller holds our own lock on whatever `names` stand for, and the kernel lets go
        of ours when its holder dies, so a lock of git's that is still there has no owner.
        """
        for name in names:
            (self.folder / f"{name}.lock").unlink(missing_ok=True)

    async def delete(self, refs: Sequence[str]) -> None:
        """Take refs off the list. The caller holds their project, or the store."""
        if not refs:
            return
        orders = "".join(f"delete {ref}\n" for ref in refs).encode()
        async with locked(self.folder.with_name("packed.lock")):  # one file, whichever project the refs are of
            self.unlock("packed-refs", *refs)
            await self.run("update-ref", "--stdin", stdin=orders)

    async def run(self, *words: str, stdin: bytes | None = None) -> bytes:
        """What git prints; `CheckpointError` with its complaint when it fails."""
        child = await self.start(*words, stdin=stdin)
        try:
            said = b"".join([chunk async for chunk in child.output()])
            await check(child, words[0])
            return said
        finally:
            child.release()

    async def start(self, *words: str, stdin: bytes | None = None, keep_stdin: bool = False) -> Child:
        """A running git; the caller releases it."""
        try:
            argv = own_git_argv(os.environ, self.folder, words, _SETTINGS)
        except ToolError as error:
            raise CheckpointError(f"checkpoints need git: {error}") from error
        spec = SpawnSpec(
            argv=argv,
            cwd=str(self.folder),
            env=self._environment(),
            stdin=stdin,
            owner="checkpoints",
            merge_stderr=False,
            keep_stdin=keep_stdin,
            confinement=outside("checkpoint git"),
        )
        try:
            return await self._supervisor.spawn(Decision.own("a snapshot of the workspace"), spec)
        except ToolError as error:
            raise CheckpointError(f"checkpoints need git, which did not start: {error}") from error

    async def blobs(self, names: Sequence[str]) -> AsyncIterator[tuple[str, bytes]]:
        """The content of each blob, in order, one at a time."""
        if not names:
            return
        child = await self.start("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode())
        try:
            reader = _Reader(child)
            for name in names:
                head = (await reader.line()).split()
                if len(head) != 3:
                    raise CheckpointError(f"the store has lost the content {name}")
                data = await reader.exactly(int(head[2]) + 1)
                yield name, data[:-1]
        finally:
            child.release()

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": split_path(os.environ).own,
            "HOME": str(self.folder),
            "LC_ALL": "C",
            "GIT_DIR": str(self.folder),
            "GIT_INDEX_FILE": str(self.folder / "unused-index"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_PAGER": "cat",
        }


async def check(child: Child, what: str) -> None:
    """Wait for the end; `CheckpointError` unless it went well."""
    code = await child.wait()
    if code != 0:
        said = child.stderr_tail().decode("utf-8", "replace").strip().splitlines()
        raise CheckpointError(f"git {what} failed ({code}): {said[-1] if said else 'it said nothing'}")


class Import:
    """One commit on its way into the store: a base tree, and what differs from it."""

    def __init__(self, store: GitStore, child: Child) -> None:
        self._store = store
        self._child = child
        self._buffer = bytearray()

    @classmethod
    async def begin(cls, store: GitStore, ref: str, message: str, at: float, base: str) -> "Import":
        """Start a commit on `ref` that has no parent; `base` names the tree it begins with, "" for none.

        The caller holds the project that `ref` belongs to.
        """
        store.unlock(ref)
        one = cls(store, await store.start("fast-import", "--quiet", "--done", "--force", keep_stdin=True))
        text = message.encode("ascii")
        head = f"commit {ref}\ncommitter {_WHO} {int(at)} +0000\ndata {len(text)}\n".encode() + text + b"\n"
        await one._write(head + (f'M 040000 {base} ""\n'.encode() if base else b""))
        return one

    async def remove(self, path: bytes) -> None:
        await self._write(b"D " + quoted(path) + b"\n")

    async def put(self, path: bytes, mode: str, data: bytes) -> None:
        await self._write(b"M %s inline %s\ndata %d\n" % (mode.encode(), quoted(path), len(data)))
        await self._write(data)
        await self._write(b"\n")

    async def finish(self) -> None:
        """Have it in the store. Raises `CheckpointError` when git does not take it."""
        try:
            await self._write(b"\ndone\n")
            await self._flush()
            self._child.close_stdin()
            async for _ in self._child.output():
                continue
            await check(self._child, "fast-import")
        finally:
            self._child.release()

    def discard(self) -> None:
        """Leave nothing behind."""
        self._child.release()

    async def _write(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > 1 << 20:
            await self._flush()

    async def _flush(self) -> None:
        data, self._buffer = bytes(self._buffer), bytearray()
        try:
            await self._child.write(data)
        except BrokenPipeError:
            await check(self._child, "fast-import")
            raise


class _Reader:
    """Lines and counted bytes out of a child's chunks."""

    def __init__(self, child: Child) -> None:
        self._chunks = child.output()
        self._kept = bytearray()

    async def line(self) -> bytes:
        while (end := self._kept.find(b"\n")) < 0:
            await self._more()
        found = bytes(self._kept[:end])
        del self._kept[: end + 1]
        return found

    async def exactly(self, size: int) -> bytes:
        while len(self._kept) < size:
            await self._more()
        found = bytes(self._kept[:size])
        del self._kept[:size]
        return found

    async def _more(self) -> None:
        try:
            self._kept += await anext(self._chunks)
        except StopAsyncIteration:
            raise CheckpointError("git ended in the middle of a file") from None


def quoted(path: bytes) -> bytes:
    """A path as fast-import reads it."""
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
