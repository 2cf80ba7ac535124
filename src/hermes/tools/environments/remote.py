"""What ssh and the container backends share: commands and files through a client program that reaches a bash there."""

import asyncio
import contextlib
import logging
import posixpath
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from hermes.confinement.outside import outside
from hermes.confinement.policy import AnyConfinement
from hermes.errors import ToolError
from hermes.redact import Redactor
from hermes.scope import TurnScope
from hermes.seams import Child, Decision, ExecResult, FileInfo, SpawnSpec, Supervisor
from hermes.tools.environments import remote_files, shell_scripts
from hermes.tools.environments.background import Background
from hermes.tools.environments.output_spool import Spool
from hermes.tools.environments.remote_background import RemoteProcesses
from hermes.tools.environments.run_child import result_of, run_child
from hermes.tools.environments.sync import FolderSync, Synced
from hermes.tools.supervisor.threads import RunBlocking, in_daemon_thread

log = logging.getLogger(__name__)

CREATION_LIMIT_S = 60.0
SCRIPT_LIMIT_S = 60.0
_END_LIMIT_S = 5.0
_NOISE_KEPT = 65536
_HELD_BACK = 8192  # more than the longest last line: a mark and a path


class RemoteOutput(NamedTuple):
    """What a script gave back."""

    code: int
    output: bytes
    errors: str


class Common(Struct, frozen=True, kw_only=True):
    """What every remote environment is made of."""

    supervisor: Supervisor
    run_blocking: RunBlocking = in_daemon_thread
    spill_folder: Path | None = None
    redactor: Redactor | None = None  # hides secrets in output that is kept in a file
    client_env: dict[str, str] = {}  # for the client program on this machine, never for commands there
    init_files: tuple[str, ...] = ()
    creation_limit_s: float = CREATION_LIMIT_S
    synced: Synced | None = None  # a folder to keep the same on both sides
    sync_each_time: bool = False


class RemoteEnvironment:
    """Base of the backends that are reached through a client program. It never runs a command on this machine.

    Subclasses say how to create the other side (`_create`), how to reach a program there (`_reach`), how to tell that
    the client failed (`_client_failed`), and how to let go of the other side (`_release`).
    """

    kind = ""

    def __init__(self, common: Common, cwd: str) -> None:
        self.id = f"{self.kind}-{secrets.token_hex(4)}"
        self._common = common
        self._client: AnyConfinement = outside("ssh" if self.kind == "ssh" else "container")
        self._cwd = cwd
        self._home = ""
        self._state = ""  # the folder of the shell's state, there; empty until it was made
        self._making = asyncio.Lock()  # guards `_state`
        self._snapshot = 0
        self._next = 1
        self._is_closed = False
        self._background = RemoteProcesses(
            self.id, self._ready_script, lambda: f"{self._state}/snapshot-{self._snapshot}" if self._state else ""
        )

        self._sync = FolderSync(common.synced, self._ready_script, common.run_blocking) if common.synced else None

    # -- what a backend says ---------------------------------------------------------------------------------------

    async def _create(self) -> None:
        """Make or find the other side; raises `ToolError` or `MissingPart` with one sentence."""

    async def _refresh(self) -> None:
        """Before a command: mend what can be mended without losing the state there."""

    def _reach(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The command line of the client that runs `argv` there with our stdin, stdout and stderr."""
        raise NotImplementedError

    async def _release(self) -> None:
        """Let go of the other side."""

    # -- the seam --------------------------------------------------------------------------------------------------

    @property
    def cwd(self) -> str:
        return self._cwd

    async def ready(self) -> str:
        """Make the other side now rather than at the first command; returns where the session stands."""
        await self._ready()
        return self._cwd

    @property
    def background(self) -> Background:
        return self._background

    async def execute(
        self,
        command: str,
        decision: Decision,
        scope: TurnScope,
        *,
        timeout_s: float | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
    ) -> ExecResult:
        """Run `command` there. `ToolError` when the other side is not there, also when it goes away meanwhile."""
        if not decision.allowed:
            raise ToolError(decision.reason or "the command was not allowed")
        if "\0" in command:
            raise ToolError("a command cannot hold a NUL character")
        await self._ready()
        if self._sync is not None:
            await self._send(self._sync)
        number, self._next = self._next, self._next + 1
        mark = f"{self.id}:{number}:{secrets.token_hex(4)}"
        spool = MarkedSpool(self._common, mark)
        argv = await self._call(command, mark, number, cwd)
        child = await self._open(decision, argv, stdin, merge_stderr=True)

        async def end() -> None:
            await self._end(mark)

        ended = await run_child(child, spool, scope.limit(timeout_s), self._common.run_blocking, end)
        output = spool.finish().decode("utf-8", "replace")
        if not ended.timed_out:
            self._settle(spool, ended.code, output, number)
        return result_of(ended, spool, output, cwd=self._cwd, backend=self.kind)

    async def lend(self, variables: Mapping[str, str], scope: TurnScope) -> None:
        """Commands there see these variables from now on, until the other side is lost; see `local.lend`."""
        told = Decision.own("variables of a skill")
        await self.execute(shell_scripts.taking(variables), told, scope, stdin=shell_scripts.taken(variables))

    async def stat(self, path: str) -> FileInfo | None:
        return await remote_files.stat_path(self._ready_script, await self._absolute(path))

    async def first_file(self, paths: Sequence[str]) -> str | None:
        place = await remote_files.first_file(self._ready_script, [await self._absolute(path) for path in paths])
        return None if place is None else paths[place]

    async def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        return await remote_files.read_path(self._ready_script, await self._absolute(path), offset, size)

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        await remote_files.write_path(self._ready_script, await self._absolute(path), data, mode)

    async def remove(self, path: str) -> None:
        await remote_files.remove_path(self._ready_script, await self._absolute(path))

    async def rename(self, old: str, new: str) -> None:
        await remote_files.rename_path(self._ready_script, await self._absolute(old), await self._absolute(new))

    async def list_dir(self, path: str) -> list[str]:
        return await remote_files.list_path(self._ready_script, await self._absolute(path))

    async def close(self) -> None:
        """Remove the shell's state there and let go of the other side. It is not an error when that is gone."""
        if self._is_closed:
            return
        if self._sync is not None and self._state:
            await self._bring_home(self._sync)
        self._is_closed = True
        if self._state:
            with contextlib.suppress(ToolError):  # it may be gone already, and the state with it
                await self.script('rm -rf -- "$1"', self._state)
            self._state = ""
        await self._release()

    async def _send(self, sync: FolderSync) -> None:
        try:
            await sync.send(at_once=self._common.sync_each_time)
        except ToolError as error:  # the command itself may well do without
            log.warning("the %s side has not all it should: %s", self.kind, error)

    async def _bring_home(self, sync: FolderSync) -> None:
        try:
            changed = await sync.bring_home()
        except ToolError as error:
            log.warning("what changed on the %s side stays there: %s", self.kind, error)
        else:
            if changed:
                log.info("copied back from the %s side: %s", self.kind, ", ".join(changed))

    # -- scripts ---------------------------------------------------------------------------------------------------

    async def script(
        self, script: str, *args: str, stdin: bytes | None = None, limit_s: float = SCRIPT_LIMIT_S
    ) -> RemoteOutput:
        """Run a script of our own there, outside the session's shell state."""
        argv = ("bash", "--noprofile", "--norc", "-c", script, "bash", *args)
        child = await self._open(Decision.own(f"{self.kind} backend"), argv, stdin, merge_stderr=False)
        return await self._answer(child, limit_s)

    async def client(self, argv: tuple[str, ...], *, limit_s: float) -> RemoteOutput:
        """Run the client program on this machine, for the runtime's own work."""
        spec = SpawnSpec(
            argv=argv, cwd="/", env=self._common.client_env, owner=self.id, merge_stderr=False, confinement=self._client
        )
        child = await self._common.supervisor.spawn(Decision.own(f"{self.kind} backend"), spec)
        return await self._answer(child, limit_s)

    async def _open(
        self, decision: Decision, argv: tuple[str, ...], stdin: bytes | None, *, merge_stderr: bool
    ) -> Child:
        """Start `argv` there. A backend without a client program does it in its own way."""
        spec = SpawnSpec(
            argv=self._reach(argv),
            cwd="/",
            env=self._common.client_env,
            stdin=stdin,
            owner=self.id,
            merge_stderr=merge_stderr,
            confinement=self._client,
        )
        return await self._common.supervisor.spawn(decision, spec)

    async def _answer(self, child: Child, limit_s: float) -> RemoteOutput:
        # Without a file behind it: what a script answers is wanted whole.
        spool = Spool(Path(), memory_bytes=1 << 40, disk_bytes=0)
        ended = await run_child(child, spool, limit_s, self._common.run_blocking)
        errors = child.stderr_tail().decode("utf-8", "replace")
        if ended.timed_out:
            errors += f"\nno answer within {limit_s:g} s"
        return RemoteOutput(ended.code, spool.finish(), errors)

    async def _ready_script(self, script: str, *args: str, stdin: bytes | None = None) -> RemoteOutput:
        await self._ready()
        answer = await self.script(script, *args, stdin=stdin)
        if self._client_failed(answer.code, answer.errors):
            raise self._lost(answer.errors)
        return answer

    def _client_failed(self, code: int, errors: str) -> bool:
        """Whether the client itself failed, not the program it runs there."""
        raise NotImplementedError

    async def _ready(self) -> None:
        if self._is_closed:
            raise ToolError(f"this {self.kind} environment was closed; start a new session")
        if self._state:
            await self._refresh()
            return
        async with self._making:
            if self._state:
                return
            try:
                async with asyncio.timeout(self._common.creation_limit_s):
                    await self._create()
                    answer = await self.script(shell_scripts.BEGIN, self._cwd, *self._common.init_files)
            except TimeoutError:
                limit = self._common.creation_limit_s
                raise ToolError(f"the {self.kind} environment was not ready within {limit:g} s") from None
            if answer.code != 0:
                raise ToolError(f"the {self.kind} environment cannot be used: {_last_line(answer.errors)}")
            state, self._home, self._cwd = answer.output.decode("utf-8", "surrogateescape").split("\0")[:3]
            self._state = state

    async def _call(self, command: str, mark: str, number: int, cwd: str | None) -> tuple[str, ...]:
        how = ""
        if len(command) * 4 > shell_scripts.INLINE_COMMAND_BYTES:
            file = f"{self._state}/command-{number}"
            await remote_files.write_path(self._ready_script, file, command.encode("utf-8", "surrogateescape"), 0o600)
            command, how = file, "file"
        where, state = await self._absolute(cwd or "."), self._state
        return (
            *("bash", "--noprofile", "--norc", "-c", shell_scripts.CALL, "bash", mark, f"{state}/cwd-{number}"),
            *(command, where, f"{state}/snapshot-{self._snapshot}", f"{state}/snapshot-{number}"),
            *(f"{state}/cwd-{number}", how),
        )

    async def _end(self, mark: str) -> None:
        await self.script(shell_scripts.END, mark, limit_s=_END_LIMIT_S)

    def _settle(self, spool: "MarkedSpool", code: int, output: str, number: int) -> None:
        if not spool.was_begun:
            raise self._lost(output)
        if spool.ended_in is None:
            raise ToolError(
                f"the {self.kind} environment went away while the command ran (code {code}); whether it took effect "
                f"is not known. It had printed: {output[-2000:]}"
            )
        if spool.ended_in:
            self._cwd, self._snapshot = spool.ended_in, number

    def _lost(self, errors: str) -> ToolError:
        """The other side is gone: say so, and make it anew at the next call. Nothing runs elsewhere meanwhile."""
        self._state = ""
        self._snapshot = 0
        if self._sync is not None:
            self._sync.forget()
        return ToolError(
            f"the {self.kind} environment cannot be reached, and nothing was run: {_last_line(errors)}. "
            "The next call tries to reach it again; exported variables and functions are lost."
        )

    async def _absolute(self, path: str) -> str:
        if path.startswith("~"):
            await self._ready()
            path = self._home + path[1:]
        if not path.startswith("/") and not self._cwd.startswith("/"):
            await self._ready()  # where the session stands is known once the other side has told it
        return posixpath.normpath(posixpath.join(self._cwd, path))


class MarkedSpool(Spool):
    """A spool that takes the first and the last line of `shell_scripts.CALL` out of the stream."""

    def __init__(self, common: Common, mark: str) -> None:
        super().__init__(common.spill_folder or Path(tempfile.gettempdir()), redactor=common.redactor)
        self._mark = f"<{mark}>".encode()
        self._pending = b""
        self.was_begun = False
        self.ended_in: str | None = None  # None: the last line never came; "": it told no folder

    def _add(self, data: bytes) -> None:
        self._pending += data
        if not self.was_begun:
            # The client may say something of its own first: a warning, a banner.
            _, begun, rest = self._pending.partition(self._mark + b"\n")
            if not begun:
                self._pending = self._pending[-_NOISE_KEPT:]
                return
            self.was_begun = True
            self._pending = rest
        if len(self._pending) > _HELD_BACK:
            super()._add(self._pending[:-_HELD_BACK])
            self._pending = self._pending[-_HELD_BACK:]

    def _finish(self) -> bytes:
        text, found, where = self._pending.rpartition(b"\n" + self._mark)
        if found:
            self.ended_in = where.decode("utf-8", "surrogateescape").removesuffix("\n")
            self._pending = text
        super()._add(self._pending)
        self._pending = b""
        return super()._finish()


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason was given"
