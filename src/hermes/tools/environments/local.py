"""Commands on this machine, in the user's own account; files are the host's."""

import asyncio
import os
import secrets
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field, structs

from hermes.errors import ToolError
from hermes.programs import find_program, split_path
from hermes.redact import Redactor
from hermes.scope import TurnScope
from hermes.seams import Decision, ExecResult, FileInfo, SpawnSpec, Supervisor
from hermes.tools.environments import host_files, sandbox, shell_scripts
from hermes.tools.environments.background import Background, BackgroundRequest
from hermes.tools.environments.local_background import HeldProcesses, Holder
from hermes.tools.environments.output_spool import Spool
from hermes.tools.environments.run_child import result_of, run_child
from hermes.tools.environments.sandbox import Sandbox, SandboxOptions
from hermes.tools.environments.shell_state import ShellState, Start
from hermes.tools.supervisor.child import CallChild
from hermes.tools.supervisor.keeper.background_child import FIRST_FILE
from hermes.tools.supervisor.keeper.start import in_memory_file
from hermes.tools.supervisor.threads import RunBlocking, in_daemon_thread
from hermes.tools.terminal.simple_commands import calls_sudo
from hermes.tools.terminal.sudo import AskPassword

CREATION_LIMIT_S = 10.0


class LocalOptions(Struct, frozen=True, kw_only=True):
    """How the shell of a local environment is made. `env` is what commands may see: scrub it first."""

    env: Mapping[str, str]
    init_files: Sequence[str] = ()
    source_bashrc: bool = True
    spill_folder: Path | None = None
    processes_folder: Path | None = None  # where background processes are kept; without it there are none
    max_processes: int = 4096
    creation_limit_s: float = CREATION_LIMIT_S
    sandbox: SandboxOptions | None = None
    redactor: Redactor | None = None  # hides secrets in what is printed, before it is stored
    ask_password: AskPassword | None = None  # whom to ask for the password of `sudo`
    session: dict[str, str] = field(default_factory=dict)  # HERMES_SESSION_* and the like, exported to commands


class LocalRun(NamedTuple):
    """One command to run, and within what limits."""

    command: str
    decision: Decision
    scope: TurnScope
    timeout_s: float | None = None
    cwd: str | None = None
    stdin: bytes | None = None


class LocalEnvironment:
    """Bash on the host. `cd`, exported variables, functions and aliases last from one command to the next."""

    kind = "local"

    def __init__(
        self,
        supervisor: Supervisor,
        cwd: str,
        options: LocalOptions,
        *,
        run_blocking: RunBlocking = in_daemon_thread,
    ) -> None:
        self.id = f"local-{secrets.token_hex(4)}"
        self._supervisor = supervisor
        self._cwd = os.path.abspath(cwd)  # noqa: PTH100 - links in the user's own path stay as they are
        self._workspace = options.sandbox.workspace if options.sandbox is not None else self._cwd
        self._options = options
        self._run_blocking = run_blocking
        self._making = asyncio.Lock()  # guards the creation of the state folder and the first snapshot
        self._state: ShellState | None = None
        self._is_closed = False
        self._sandbox: Sandbox | None = None
        self._bwrap = ""
        self.sandbox_note = ""  # why commands run without a sandbox although one was wished for; told once
        self.sudo_password: str | None = None  # of this session, in memory alone
        self.ask_password: AskPassword | None = options.ask_password
        self._held: HeldProcesses | None = None
        if options.processes_folder is not None and isinstance(supervisor, Holder):
            self._held = HeldProcesses(
                options.processes_folder,
                supervisor,
                self._background_line,
                run_blocking,
                options.redactor or Redactor(),
            )

    @cached_property
    def _bash(self) -> str:
        return find_program("bash", self._options.env, self._workspace) or "/bin/bash"

    @property
    def background(self) -> Background:
        """The session's background processes, and those that earlier runtimes left running."""
        if self._held is None:
            raise ToolError("background processes need a home folder, and this environment was made without one")
        return self._held

    @property
    def cwd(self) -> str:
        return self._cwd

    @property
    def sandbox(self) -> Sandbox | None:
        """The sandbox commands run in, once the first one has run; None where there is none."""
        return self._sandbox

    async def ready(self) -> str:
        """Where the session stands: always known here."""
        return self._cwd

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
        # The runtime's own commands start from the login shell's state: what the agent's have defined must not decide
        # what such a command does, since no gate has seen it.
        start: Start = "runtime" if decision.is_own else "session"
        return await self._execute(LocalRun(command, decision, scope, timeout_s, cwd, stdin), start)

    async def execute_outside(
        self, command: str, decision: Decision, scope: TurnScope, *, timeout_s: float | None = None, cwd: str
    ) -> ExecResult:
        """Run `command` once without the sandbox; `decision` must be about exactly that."""
        return await self._execute(LocalRun(command, decision, scope, timeout_s, cwd), "outside")

    async def confined(self, spec: SpawnSpec) -> SpawnSpec:
        """`spec` as a child of this environment: in the sandbox that its commands run in, where there is one."""
        await self._ready()
        if self._sandbox is None:
            return spec
        argv = self._sandbox.wrap(spec.argv, self._options.env)
        return structs.replace(spec, argv=(self._bwrap, *argv[1:]))

    async def _execute(self, run: "LocalRun", start: Start) -> ExecResult:
        """Run `command` in bash. After `cwd` the session stands there, as after `cd`.

        A cancellation leaves as `CommandInterrupted`, with what was printed until then.
        """
        if not run.decision.allowed:
            raise ToolError(run.decision.reason or "the command was not allowed")
        if "\0" in run.command:
            raise ToolError("a command cannot hold a NUL character")
        state = await self._ready()
        number = state.begin()
        spool = Spool(self._options.spill_folder or state.own, redactor=self._options.redactor)
        spec: SpawnSpec | None = None
        try:
            spec = await self._with_sudo(await self._spec(run, number, start), run.command)
            if self._sandbox is not None and start != "outside":
                argv = self._sandbox.wrap(spec.argv, self._options.env)
                spec = structs.replace(spec, argv=(self._bwrap, *argv[1:]))
            child = await self._supervisor.spawn(run.decision, spec)
            ended = await run_child(child, spool, run.scope.limit(run.timeout_s), self._run_blocking)
        finally:
            # Here and not in a thread: a few calls on small files in a temporary folder, and a thread costs more.
            self._cwd = state.end(number, start) or self._cwd
            for fd in spec.pass_fds if spec is not None else ():
                os.close(fd)
        output = spool.finish().decode("utf-8", "replace")
        if isinstance(child, CallChild) and child.storm_limit:
            output += f"\n[Command ended: it had more than {child.storm_limit} processes]\n"
        return result_of(ended, spool, output, cwd=self._cwd, backend=self.kind)

    async def stat(self, path: str) -> FileInfo | None:
        return await self._run_blocking(host_files.stat_path, self._absolute(path))

    async def first_file(self, paths: Sequence[str]) -> str | None:
        place = await self._run_blocking(host_files.first_file, [self._absolute(path) for path in paths])
        return None if place is None else paths[place]

    async def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        return await self._run_blocking(host_files.read_path, self._absolute(path), offset, size)

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        await self._run_blocking(host_files.write_path, self._absolute(path), data, mode)

    async def remove(self, path: str) -> None:
        await self._run_blocking(host_files.remove_path, self._absolute(path))

    async def rename(self, old: str, new: str) -> None:
        await self._run_blocking(host_files.rename_path, self._absolute(old), self._absolute(new))

    async def list_dir(self, path: str) -> list[str]:
        return await self._run_blocking(host_files.list_path, self._absolute(path))

    async def close(self) -> None:
        """Forget the shell state. What commands wrote elsewhere stays."""
        self._is_closed = True
        if self._state is not None:
            await self._run_blocking(self._state.remove)

    # -- the shell's state -----------------------------------------------------------------------------------------

    async def _ready(self) -> ShellState:
        """The shell's state, made at the first command: a session that runs none starts nothing."""
        if self._is_closed:
            raise ToolError("this environment was closed; start a new session")
        if self._state is None:
            async with self._making:
                if self._state is None:
                    await self._enter_sandbox()
                    self._state = await self._make_state()
        return self._state

    async def _enter_sandbox(self) -> None:
        options = self._options.sandbox
        if options is None or options.mode == "off" or sys.platform != "linux":
            return
        found = await sandbox.probed(self._supervisor, self._run_blocking, self._workspace)
        if found.works:
            self._sandbox = Sandbox(options)
            self._bwrap = found.program
        elif options.mode == "on":
            raise sandbox.missing(found.why)
        else:
            self.sandbox_note = f"commands run without a sandbox: {found.why}"

    async def goes_on_as(self, session_id: str, scope: TurnScope) -> None:
        """Commands see this id in HERMES_SESSION_ID from now on."""
        self._options.session["HERMES_SESSION_ID"] = session_id
        if self._state is not None:
            named = LocalRun(
                f"export HERMES_SESSION_ID={shlex.quote(session_id)}", Decision.own("the session's name"), scope
            )
            await self._execute(named, "session")

    async def lend(self, variables: Mapping[str, str], scope: TurnScope) -> None:
        """Commands see these variables from now on, also outside the sandbox; no command line shows their values."""
        self._options.session.update(variables)
        if self._state is None:
            return
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
        await self._run_blocking(self._state.add_to_login, exports)
        if self._state.has_moved:
            taken = LocalRun(
                shell_scripts.taking(variables),
                Decision.own("variables of a skill"),
                scope,
                stdin=shell_scripts.taken(variables),
            )
            await self._execute(taken, "session")

    async def _make_state(self) -> ShellState:
        private_root = None
        if self._sandbox is not None:
            hidden = self._sandbox.options.hermes_home
            private_root = Path(hidden) / "run" if hidden else Path(tempfile.gettempdir())
        state = await self._run_blocking(ShellState.make, private_root)
        if self._sandbox is not None:
            self._sandbox.show(str(state.own))
        home = self._options.env.get("HOME", "")
        files = [f"{home}/.bashrc"] if self._options.source_bashrc and home else []
        files += [f"{home}{name[1:]}" if name.startswith("~/") else name for name in self._options.init_files]
        search = split_path(self._options.env, self._workspace)
        spec = SpawnSpec(
            argv=(
                *(self._bash, "-l", "-c", shell_scripts.SNAPSHOT, "bash"),
                *(state.login, state.runtime, search.others, *files),
            ),
            cwd="/",
            env={**self._options.env, **self._options.session, "PATH": search.own},
            owner=self.id,
        )
        spool = Spool(state.own, memory_bytes=16 * 1024)
        child = await self._supervisor.spawn(Decision.own("shell snapshot"), spec)
        ended = await run_child(child, spool, self._options.creation_limit_s, self._run_blocking)
        if ended.code == 0 and await self._run_blocking(Path(state.login).exists):
            return state
        await self._run_blocking(state.remove)
        why = f"took more than {self._options.creation_limit_s:g} s" if ended.timed_out else f"ended with {ended.code}"
        said = spool.finish().decode("utf-8", "replace").strip()[-500:]
        raise ToolError(
            f"the shell could not be made: reading the login files ({', '.join(['profile', *files])}) {why}; "
            f"set terminal.auto_source_bashrc: false or mend them. {said}".strip()
        )

    async def _spec(self, run: "LocalRun", number: int, start: Start) -> SpawnSpec:
        assert self._state is not None
        command, how = run.command, ""
        if len(command) * 4 > shell_scripts.INLINE_COMMAND_BYTES:
            file = self._state.own / f"command-{number}"
            await self._run_blocking(file.write_text, command, "utf-8", "surrogateescape")
            command, how = str(file), "file"
        where = self._absolute(run.cwd) if run.cwd else _nearest_existing(self._cwd)
        return SpawnSpec(
            argv=(
                *(self._bash, "--noprofile", "--norc", "-c", shell_scripts.COMMAND, "bash", command, where),
                *(*self._state.files(number, start), how),
            ),
            cwd="/",
            env={},
            stdin=run.stdin,
            await_start=False,
            owner=f"{self.id}:{number}",
            max_processes=self._options.max_processes,
        )

    async def _background_line(self, order: BackgroundRequest) -> tuple[list[str], list[str]]:
        """The command with the shell state of this moment; what it changes stays its own."""
        state = await self._ready()
        snapshot = await self._run_blocking(state.present)
        settings = "PYTHONUNBUFFERED=1 TERM=xterm-256color" if order.pty else "PYTHONUNBUFFERED=1"
        command, taken_up = FIRST_FILE, FIRST_FILE + 1
        text = f"exec {command}<&- {taken_up}<&-\nexport {settings}\n{order.command}"
        argv = [self._bash, "--noprofile", "--norc", "-c", shell_scripts.COMMAND, "bash", f"/dev/fd/{command}"]
        argv += [self._absolute(order.cwd), f"/dev/fd/{taken_up}", "/dev/null", "/dev/null", "file"]
        if self._sandbox is not None:
            inside = self._sandbox.wrap(tuple(argv), self._options.env, terminal=order.pty, outlives=True)
            argv = [self._bwrap, *inside[1:]]
        return argv, [text, snapshot.decode("utf-8", "surrogateescape")]

    async def _with_sudo(self, spec: SpawnSpec, command: str) -> SpawnSpec:
        """Let `sudo` find the password, when there is one and the command needs it."""
        if self.sudo_password is None or not calls_sudo(command):
            return spec
        assert self._state is not None
        helper = self._state.own / "askpass"
        if not helper.exists():
            await self._run_blocking(_write_program, helper, shell_scripts.ASKPASS)
        fd = in_memory_file(self.sudo_password.encode() + b"\n")
        return structs.replace(spec, argv=(*spec.argv, f"{helper}:{fd}"), pass_fds=(fd,))

    def _absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd, os.path.expanduser(path)))  # noqa: PTH111, PTH118


def _write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o700)


def _nearest_existing(folder: str) -> str:
    """`folder`, or the closest one above it that exists: a session outlives the folder it stood in."""
    path = Path(folder)
    return str(next((each for each in (path, *path.parents) if each.is_dir()), Path("/")))
