"""Commands on this machine, in the user's own account; files are the host's."""

import asyncio
import logging
import os
import secrets
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field, structs

from hermes.confinement.policy import (
    TEMP_FOLDERS,
    AfterCommand,
    Confinement,
    PlanRequest,
    is_below,
)
from hermes.errors import ToolError
from hermes.programs import find_program, split_path
from hermes.redact import Redactor
from hermes.scope import TurnScope
from hermes.seams import Decision, ExecResult, FileInfo, SpawnSpec, Supervisor
from hermes.tools.environments import host_files
from hermes.tools.environments.background import Background, BackgroundRecord, BackgroundRequest
from hermes.tools.supervisor.keeper.start import in_memory_file, out_of_the_way
from hermes.tools.supervisor.threads import RunBlocking, in_daemon_thread
from hermes.tools.terminal.sudo import AskPassword

if TYPE_CHECKING:  # a question without a command does without these
    from hermes.confinement.protected_files import ProtectedFiles
    from hermes.tools.approval.made_here import Makings
    from hermes.tools.environments.call_clocks import CallClocks
    from hermes.tools.environments.local_background import BackgroundLine
    from hermes.tools.environments.shell_state import ShellState, Start
    from hermes.tools.git_access.session_git import SessionGit
    from hermes.tools.git_access.start_remotes import StartRemotes
    from hermes.tools.network.ask_host import HostQuestions, NetworkCall
    from hermes.tools.network.denied_hosts import DeniesHost
    from hermes.tools.network.host_desk import HostAnswer
    from hermes.tools.network.session_network import SessionNetwork
    from hermes.tools.network.wish import HostWish

log = logging.getLogger(__name__)
CREATION_LIMIT_S = 10.0
Mode: TypeAlias = Literal["auto", "on", "off"]
_MOUNT_FAILED = "bwrap: Can't "  # its first words then


class Border(Struct, frozen=True, kw_only=True):
    """How commands are to be confined: what is planned, whether it must be enforced, and up to which level."""

    mode: Mode = "auto"
    level: Literal["auto", "full", "files"] = "auto"
    request: PlanRequest
    network: Literal["open", "ask", "off"] = "open"
    is_network_said: bool = False  # by the person, and not by default
    network_hosts: tuple[str, ...] = ()
    network_local: tuple[int, ...] = ()
    approvals: Mapping[str, Any] = {}  # the section of the settings, for hosts that its rules deny


class LocalOptions(Struct, frozen=True, kw_only=True):
    """How the shell of a local environment is made. `env` is what commands may see: scrub it first."""

    env: Mapping[str, str]
    init_files: Sequence[str] = ()
    source_bashrc: bool = True
    spill_folder: Path | None = None
    processes_folder: Path | None = None  # where background processes are kept; without it there are none
    max_processes: int = 4096
    creation_limit_s: float = CREATION_LIMIT_S
    border: Border | None = None
    redactor: Redactor | None = None  # hides secrets in what is printed, before it is stored
    ask_password: AskPassword | None = None  # whom to ask for the password of `sudo`
    session: dict[str, str] = field(default_factory=dict)  # HERMES_SESSION_* and the like, exported to commands
    person: Mapping[str, str] | None = None  # the runtime's own variables: git's ssh and credentials work by them


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
        self._workspace = options.border.request.workspace if options.border is not None else self._cwd
        self._began_at = time.time()
        self._options = options
        self._run_blocking = run_blocking
        self._making = asyncio.Lock()  # guards the creation of the state folder and the first snapshot
        self._state: ShellState | None = None
        self._is_closed = False
        self._has_shell = False
        self._confinement: Confinement | None = None
        self._protected: ProtectedFiles | None = None
        self._behind: tuple[Confinement, Confinement] | None = None  # the present one, and that of background children
        self._git: SessionGit | None = None  # the way to the person's ssh and credentials, where they are out of sight
        self._network: SessionNetwork | None = None  # where commands have one of their own
        self._host_questions: HostQuestions | None = None  # who asks about hosts, once a call may
        self._clocks: CallClocks | None = None  # of the commands that run, where hosts are asked about
        self.after_command: list[AfterCommand] = []
        self.sandbox_note = ""  # why commands are confined by less than was wished for; told once
        self.sudo_password: str | None = None  # of this session, in memory alone
        self.ask_password: AskPassword | None = options.ask_password

    @cached_property
    def _bash(self) -> str:
        return find_program("bash", self._options.env, self._workspace) or "/bin/bash"

    @cached_property
    def _denies_host(self) -> "DeniesHost":
        from hermes.tools.network.denied_hosts import denied_hosts  # paid by the first command

        return denied_hosts(self._options.border.approvals if self._options.border is not None else {})

    @property
    def has_background(self) -> bool:
        """Whether there is anything at all that `background` could tell; it costs a look at one folder."""
        folder = self._options.processes_folder
        return "background" in self.__dict__ or (folder is not None and os.path.isdir(folder))  # noqa: PTH112 - twice a turn

    @cached_property
    def background(self) -> Background:
        """The session's background processes, and those that earlier runtimes left running."""
        from hermes.tools.environments.local_background import HeldProcesses, Holder

        folder, supervisor = self._options.processes_folder, self._supervisor
        if folder is None or not isinstance(supervisor, Holder):
            raise ToolError("background processes need a home folder, and this environment was made without one")
        redactor = self._options.redactor or Redactor()
        return HeldProcesses(folder, supervisor, self._background_line, self._run_blocking, redactor)

    @property
    def cwd(self) -> str:
        return self._cwd

    @property
    def writing_hint(self) -> str:
        """What the model is told about writing, from the settings alone: the same in every session with them."""
        border = self._options.border
        if border is None or border.mode == "off":
            return ""
        request = border.request
        own = {"read-only": "nothing of the user's", "open": "everywhere but in protected places"}.get(
            request.policy, f"below {request.workspace}"
        )
        if request.safe_roots:
            own = f"below {', '.join(request.safe_roots)}"
        also = f", {', '.join(request.writable)}" if request.writable else ""
        return (
            f"Commands and file tools may write {own}{also}, and in $TMPDIR, which is this session's alone. The rest "
            "is read-only, keys and secrets are hidden, git hooks and settings are protected: a write there fails or "
            "asks the user."
        )

    @property
    def planned(self) -> Confinement | None:
        """The session's confinement, once there is one."""
        return self._confinement

    async def confinement(self) -> Confinement:
        """What the session's programs may touch, planned at the first call."""
        if self._confinement is None:
            async with self._making:
                if self._confinement is None:
                    await self._plan()
        assert self._confinement is not None
        return self._confinement

    async def _border_of(self, *, read_only: bool) -> Confinement:
        border = await self.confinement()
        return border.read_only() if read_only else border

    def widen(self, wider: Confinement) -> None:
        """Let later programs have `wider`."""
        self._confinement = wider

    async def open_folder(self, folder: str) -> None:
        """Let later programs write below a real folder that the person named; the plan stays as it is otherwise."""
        from hermes.tools.environments.session_border import with_folder  # see `_plan`

        wider = with_folder(await self.confinement(), self._options.border, folder)
        self._confinement, protected = await self._run_blocking(wider)
        self._protected = self._protected and protected

    @property
    def opened_folders(self) -> tuple[str, ...]:
        """What was opened beyond the settings so far, by a yes or by name."""
        from hermes.tools.environments.session_border import opened_folders  # rarely asked

        return opened_folders(self._confinement, self._options.border)

    @cached_property
    def remotes(self) -> "StartRemotes":
        """Where the workspace pushed to before the session's first command."""
        from hermes.tools.git_access.start_remotes import StartRemotes  # paid by the first command

        return StartRemotes(self._workspace)

    def makings(self) -> "Makings":
        """What the session has made: files since it began, and what its shell has beyond the login shell."""
        from hermes.tools.approval.made_here import Makings, of_shell, since  # the whole reader comes with it

        is_new = since(self._began_at)
        if self._state is None or not Path(self._state.login).exists():
            return Makings(is_new, tuple(self._options.env.get("PATH", os.defpath).split(":")))
        login = Path(self._state.login).read_text("utf-8", "replace")
        return of_shell(login, self._state.present().decode("utf-8", "replace"), is_new)

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
        start: Start = "typed" if decision.rule == "person" else "outside"
        return await self._execute(LocalRun(command, decision, scope, timeout_s, cwd), start)

    async def confined(self, spec: SpawnSpec, *, read_only: bool = False) -> SpawnSpec:
        """`spec` as a child of this environment: confined as its commands are, with the variables that go with it."""
        await self._ready()
        confined = await self._border_of(read_only=read_only)
        env = {name: value for name, value in spec.env.items() if name not in confined.without}
        return structs.replace(spec, confinement=confined, env={**env, **confined.env, **self._git_variables()})

    async def settled(self) -> tuple[str, ...]:
        """Look after what commands must leave as it is; a sentence for each thing that was put back or dropped."""
        confined = await self.confinement()
        told: list[str] = []
        for settle in self.after_command:
            told += await settle(confined)
        if self._protected is not None:
            # Here and not in a thread: some dozen looks, and a thread costs more.
            told += self._protected.put_back()
        if self._network is not None:
            told += self._network.desk.told()
        return tuple(told)

    @property
    def network(self) -> "SessionNetwork | None":
        """The network of this session's own, once it has one."""
        return self._network

    async def reach(self) -> str:
        """Which network programs have: `open`, `ask` or `off`."""
        confined, border = await self.confinement(), self._options.border
        if confined.network or confined.level == "none":
            return "open"
        return "ask" if border is not None and border.network == "ask" and confined.level == "full" else "off"

    async def granted_hosts(self) -> list[str]:
        """What passes without a question where hosts are asked about: by the settings, a remote or an index."""
        from hermes.tools.network.open_network import granted_places, wishes_of  # rarely asked

        confined, border = await self.confinement(), self._options.border
        assert border is not None
        environ = self._options.person if self._options.person is not None else self._options.env
        wishes = await self._run_blocking(wishes_of, border, confined, environ, self._denies_host)
        return granted_places(wishes)

    @property
    def network_lines(self) -> tuple[str, ...]:
        """What programs of this session reached, what was refused, and which of their ports are offered."""
        return self._network.lines() if self._network is not None else ()

    def asks_for_hosts(self, call: "NetworkCall") -> None:
        """From now on hosts can be asked about within this call."""
        from hermes.tools.network.ask_host import HostQuestions  # loaded by who makes a call of it

        if self._host_questions is None:
            self._host_questions = HostQuestions(self._pause, self._running_processes, self._run_blocking)
        self._host_questions.begin(call)

    def _pause(self) -> AbstractContextManager[None]:
        return self._clocks.standing_still() if self._clocks is not None else nullcontext()

    async def _running_processes(self) -> list[BackgroundRecord]:
        if not self.has_background:
            return []
        records = await self.background.records()
        return [record for record in records if (await self.background.state(record)).status == "running"]

    async def _execute(self, run: "LocalRun", start: "Start") -> ExecResult:
        """Run `command` in bash. After `cwd` the session stands there, as after `cd`.

        A cancellation leaves as `CommandInterrupted`, with what was printed until then.
        """
        if not run.decision.allowed:
            raise ToolError(run.decision.reason or "the command was not allowed")
        if "\0" in run.command:
            raise ToolError("a command cannot hold a NUL character")
        state = await self._ready()
        self._git_variables()
        result, has_begun = await self._run_once(state, run, start)
        if not has_begun and result.output.startswith(_MOUNT_FAILED):
            # A socket of the machine that was to be covered went away just then.
            result, _ = await self._run_once(state, run, start)
        notes = await self.settled()
        return structs.replace(result, notes=notes) if notes else result

    async def _run_once(self, state: "ShellState", run: "LocalRun", start: "Start") -> tuple[ExecResult, bool]:
        """The result, and whether the shell around the command was reached."""
        from hermes.tools.environments.output_spool import Spool
        from hermes.tools.environments.run_child import result_of, run_child
        from hermes.tools.supervisor.child import CallChild

        number = state.begin()
        spool = Spool(self._options.spill_folder or state.own, redactor=self._options.redactor)
        began = out_of_the_way([in_memory_file(b"")], [])[0]  # written by the shell alone, before the command's turn
        spec: SpawnSpec | None = None
        try:
            spec = await self._with_sudo(await self._spec(run, number, start, began), run.command)
            child = await self._supervisor.spawn(run.decision, spec)
            ended = await run_child(
                child, spool, run.scope.limit(run.timeout_s), self._run_blocking, clocks=self._clocks
            )
        finally:
            # Here and not in a thread: a few calls on small files in a temporary folder, and a thread costs more.
            self._cwd = state.end(number, start) or self._cwd
            has_begun = os.fstat(began).st_size > 0
            for fd in spec.pass_fds if spec is not None else (began,):
                os.close(fd)
        output = spool.finish().decode("utf-8", "replace")
        if isinstance(child, CallChild) and child.excess:
            output += f"\n[Command ended: it had {child.excess}]\n"
        return result_of(ended, spool, output, cwd=self._cwd, backend=self.kind), has_begun

    async def stat(self, path: str) -> FileInfo | None:
        return await self._run_blocking(host_files.stat_path, self._seen_now(path))

    async def first_file(self, paths: Sequence[str]) -> str | None:
        place = await self._run_blocking(host_files.first_file, [self._seen_now(path) for path in paths])
        return None if place is None else paths[place]

    async def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        return await self._run_blocking(host_files.read_path, self._seen_now(path), offset, size)

    async def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        await self._run_blocking(host_files.write_path, await self._private(path), data, mode)

    async def read_exact(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        """`read` of a real path, by descriptors: no link in it is followed."""
        return await self._run_blocking(_exact().read_exact, path, offset, size)

    async def write_exact(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """`write` at a real path, by descriptors: no link in it is followed."""
        await self._run_blocking(_exact().write_exact, path, data, mode)

    async def remove_exact(self, path: str) -> None:
        """`remove` at a real path, by descriptors: no link in it is followed."""
        await self._run_blocking(_exact().remove_exact, path)

    async def remove(self, path: str) -> None:
        await self._run_blocking(host_files.remove_path, await self._private(path))

    async def rename(self, old: str, new: str) -> None:
        await self._run_blocking(host_files.rename_path, await self._private(old), await self._private(new))

    async def list_dir(self, path: str) -> list[str]:
        return await self._run_blocking(host_files.list_path, self._seen_now(path))

    async def close(self) -> None:
        """Forget the shell state. What commands wrote elsewhere stays."""
        self._is_closed = True
        if self.after_command and self._confinement is not None:
            try:
                notes = await self.settled()  # background processes may have been at it since the last command
            except ToolError as error:
                notes = (f"what background processes changed was not looked at: {error}",)
            for note in notes:
                log.warning("%s", note)
        if self._git is not None:
            self._git.close()
        if self._network is not None:
            self._network.close()
        if self._state is not None:
            await self._run_blocking(self._state.remove)

    # -- the shell's state -----------------------------------------------------------------------------------------

    async def _ready(self) -> "ShellState":
        """The shell's state, made at the first command: a session that runs none starts nothing."""
        if self._is_closed:
            raise ToolError("this environment was closed; start a new session")
        await self.confinement()
        assert self._state is not None
        if not self._has_shell:
            async with self._making:
                if not self._has_shell:
                    await self._make_shell(self._state)
        return self._state

    async def _plan(self) -> None:
        """Plan the session's confinement, with the folders that it brings along."""
        from hermes.tools.environments.session_border import make_border  # a session that runs nothing does without

        self.remotes  # noqa: B018 - looked at before anything can change them
        made = await make_border(self._supervisor, self._options.border, self._workspace, self._run_blocking)
        self._state, self._confinement, self._protected = made.state, made.confinement, made.protected
        self.sandbox_note = made.note

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
        from hermes.tools.environments import shell_scripts

        self._options.session.update(variables)
        if self._state is None or not self._has_shell:  # the shell is made with them
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

    async def _make_shell(self, state: "ShellState") -> None:
        """Let a login shell read the person's start files, once, and keep what it made of them."""
        from hermes.confinement.outside import outside  # see `_plan`
        from hermes.tools.environments import shell_scripts
        from hermes.tools.environments.output_spool import Spool
        from hermes.tools.environments.run_child import output_watch, run_child

        assert self._confinement is not None
        home = self._options.env.get("HOME", "")
        files = [f"{home}/.bashrc"] if self._options.source_bashrc and home else []
        files += [f"{home}{name[1:]}" if name.startswith("~/") else name for name in self._options.init_files]
        search = split_path(self._options.env, self._workspace)
        brought = "\n".join(
            [f"unset {name}" for name in self._confinement.without]
            + [f"export {name}={shlex.quote(value)}" for name, value in self._confinement.env.items()]
        )
        spec = SpawnSpec(
            argv=(
                *(self._bash, "-l", "-c", shell_scripts.SNAPSHOT, "bash"),
                *(state.login, state.runtime, search.own, self._options.env.get("PATH", search.own), brought, *files),
            ),
            cwd="/",
            env={**self._options.env, **self._options.session, "PATH": search.own},
            owner=self.id,
            confinement=outside("login shell"),
        )

        spool = Spool(state.own, memory_bytes=16 * 1024)
        child = await self._supervisor.spawn(Decision.own("shell snapshot"), spec)
        shown = output_watch.set(None)  # what the start files print is no output of the command
        try:
            ended = await run_child(child, spool, self._options.creation_limit_s, self._run_blocking)
        finally:
            output_watch.reset(shown)
        if ended.code == 0 and await self._run_blocking(Path(state.login).exists):
            await self._open_git(state)
            await self._open_network(state)
            self._has_shell = True
            return
        why = f"took more than {self._options.creation_limit_s:g} s" if ended.timed_out else f"ended with {ended.code}"
        said = spool.finish().decode("utf-8", "replace").strip()[-500:]
        raise ToolError(
            f"the shell could not be made: reading the login files ({', '.join(['profile', *files])}) {why}; "
            f"set terminal.auto_source_bashrc: false or mend them. {said}".strip()
        )

    async def _open_git(self, state: "ShellState") -> None:
        """Before the first command: git may use the person's keys for the remotes that the workspace has now."""
        confined = self._confinement
        if confined is None or confined.level == "none":
            return
        from hermes.tools.git_access.config_guard import GitConfigGuard  # paid by the first command
        from hermes.tools.git_access.session_git import GitPerson, SessionGit

        environ = self._options.person if self._options.person is not None else self._options.env
        person = GitPerson(self._supervisor, environ, Path(self._workspace), self._options.redactor)
        self._git = await SessionGit.of(person, self._denies_host)
        variables = await self._run_blocking(self._git.open, state.own, state.shared)
        await self._run_blocking(state.add_inside, variables)
        guard = await self._run_blocking(GitConfigGuard, person, confined, self._git.files)
        self.after_command.append(guard)
        if self._protected is not None:
            for file in guard.files:
                self._protected.forget(file)

    async def _open_network(self, state: "ShellState") -> None:
        """Before the first command: the network of the session's own, where hosts are asked about."""
        border, confined = self._options.border, self._confinement
        if border is None or confined is None or border.network != "ask" or confined.level != "full":
            return
        from hermes.tools.environments.call_clocks import CallClocks  # paid by who has it
        from hermes.tools.environments.session_border import own_network
        from hermes.tools.network.open_network import wishes_of

        self._clocks = CallClocks()

        environ = self._options.person if self._options.person is not None else self._options.env
        wishes = await self._run_blocking(wishes_of, border, confined, environ, self._denies_host)
        made = await own_network(self._supervisor, border, confined, wishes, (state.own, self._run_blocking))
        self._network, self._confinement = made.network, made.confinement
        self.sandbox_note = self.sandbox_note or made.note

    async def _ask_for_host(self, wish: "HostWish") -> "HostAnswer":
        from hermes.tools.network.host_desk import HostAnswer

        if self._host_questions is None:
            return HostAnswer(allowed=False, lasts="call", why="it needs the user's yes, and nobody can be asked here")
        return await self._host_questions.ask(wish)

    def _git_variables(self) -> Mapping[str, str]:
        """What lets git inside find its way out, with somebody there to answer on this loop."""
        if self._network is not None:
            self._network.asks(self._ask_for_host)
        if self._git is None:
            return {}
        self._git.attend()
        return self._git.variables

    async def _spec(self, run: "LocalRun", number: int, start: "Start", began: int) -> SpawnSpec:
        from hermes.confinement.outside import outside  # see `_plan`
        from hermes.tools.environments import shell_scripts

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
                *(*self._state.files(number, start), how, str(began)),
            ),
            pass_fds=(began,),
            cwd="/",
            env={},
            stdin=run.stdin,
            await_start=False,
            owner=f"{self.id}:{number}",
            max_processes=self._options.max_processes,
            confinement=outside("allowed outside")
            if start in ("outside", "typed")
            else await self._border_of(read_only=run.decision.read_only),
        )

    async def _background_line(self, order: BackgroundRequest) -> "BackgroundLine":
        from hermes.tools.environments import shell_scripts
        from hermes.tools.environments.local_background import BackgroundLine

        """The command with the shell state of this moment; what it changes stays its own."""
        from hermes.tools.supervisor.keeper.background_child import FIRST_FILE  # see `_plan`

        state = await self._ready()
        self._git_variables()
        if self._network is not None:
            self._network.watch_ports()
        snapshot = await self._run_blocking(state.present)
        settings = "PYTHONUNBUFFERED=1 TERM=xterm-256color" if order.pty else "PYTHONUNBUFFERED=1"
        command, taken_up = FIRST_FILE, FIRST_FILE + 1
        text = f"exec {command}<&- {taken_up}<&-\nexport {settings}\n{order.command}"
        argv = [self._bash, "--noprofile", "--norc", "-c", shell_scripts.COMMAND, "bash", f"/dev/fd/{command}"]
        argv += [self._absolute(order.cwd), f"/dev/fd/{taken_up}", "/dev/null", "/dev/null", "file"]
        texts = [text, snapshot.decode("utf-8", "surrogateescape")]
        return BackgroundLine(argv, texts, self._for_background(await self.confinement()), state.lock)

    def _for_background(self, confined: Confinement) -> Confinement:
        """What outlives the session finds git's settings read-only: nobody would look at what it made of them."""
        if self._behind is None or self._behind[0] is not confined:
            rules = [structs.replace(rule, kind="protected") for rule in confined.of_kind("git-config")]
            self._behind = confined, confined.with_rules(*rules)
        return self._behind[1]

    async def _with_sudo(self, spec: SpawnSpec, command: str) -> SpawnSpec:
        """Let `sudo` find the password, when there is one and the command needs it."""
        from hermes.tools.environments import shell_scripts

        if self.sudo_password is None:
            return spec
        from hermes.tools.terminal.simple_commands import calls_sudo  # for who has given a password

        if not calls_sudo(command):
            return spec
        assert self._state is not None
        helper = self._state.own / "askpass"
        if not helper.exists():
            await self._run_blocking(_write_program, helper, shell_scripts.ASKPASS)
        fd = out_of_the_way([in_memory_file(self.sudo_password.encode() + b"\n")], [])[0]
        return structs.replace(spec, argv=(*spec.argv, f"{helper}:{fd}"), pass_fds=(*spec.pass_fds, fd))

    async def _private(self, path: str) -> str:
        """Where the runtime finds what commands find at `path`: their temporary folder may be one of their own."""
        absolute = self._absolute(path)
        if not any(is_below(absolute, folder) for folder in TEMP_FOLDERS):
            return absolute
        return (await self.confinement()).seen_at(absolute)

    def _seen_now(self, path: str) -> str:
        """Where to read it: as commands find it, else the person's own in the machine's temporary folder.

        Nothing is planned for it: to look at a project's rules is not worth that.
        """
        absolute = self._absolute(path)
        private = absolute if self._confinement is None else self._confinement.seen_at(absolute)
        return absolute if private != absolute and _is_only_at(absolute, private) else private

    def _absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd, os.path.expanduser(path)))  # noqa: PTH111, PTH118


def _exact() -> ModuleType:
    from hermes.tools.environments import exact_files  # paid by the first file tool

    return exact_files


def _is_only_at(absolute: str, private: str) -> bool:
    """Whether a file is in the machine's temporary folder and not in the session's; no other session's are shown."""
    return "/hermes-" not in absolute and os.path.lexists(absolute) and not os.path.lexists(private)


def _write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o700)


def _nearest_existing(folder: str) -> str:
    """`folder`, or the closest one above it that exists: a session outlives the folder it stood in."""
    path = Path(folder)
    return str(next((each for each in (path, *path.parents) if each.is_dir()), Path("/")))
