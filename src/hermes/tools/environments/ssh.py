"""Commands on another machine over OpenSSH, all through one kept connection."""

import asyncio
import hashlib
import shlex
import shutil
import tempfile
from pathlib import Path

from msgspec import Struct

from hermes.errors import ConfigError, MissingPart, ToolError
from hermes.seams import Child, Decision, SpawnSpec
from hermes.tools.environments.remote import Common, RemoteEnvironment

_FAILED = 255  # of ssh itself; a program there that ends with 255 is told apart by what was begun
_CONNECT_LIMIT_S = 20.0
_LOOK_AGAIN_S = 0.02


class SshOptions(Struct, frozen=True, kw_only=True):
    """Whom to reach, and how."""

    host: str
    user: str
    port: int = 22
    key: str = ""
    known_hosts: str = ""  # a file of our own; empty uses the user's
    control_folder: Path | None = None


class SshEnvironment(RemoteEnvironment):
    """Bash over ssh. The connection may drop and come back; the machine it goes to never changes."""

    kind = "ssh"

    def __init__(self, common: Common, options: SshOptions, cwd: str = "~") -> None:
        if not options.host or not options.user:
            raise ConfigError("the ssh backend needs terminal.ssh_host and terminal.ssh_user")
        super().__init__(common, cwd)
        self._options = options
        target = f"{options.user}@{options.host}:{options.port} {self.id}"
        # Short: a socket's path may have about 100 characters.
        folder = options.control_folder or Path(tempfile.gettempdir())
        self._socket = folder / f"hermes-ssh-{hashlib.sha256(target.encode()).hexdigest()[:16]}"
        self._program = shutil.which("ssh", path=common.client_env.get("PATH")) or ""
        self._master: Child | None = None

    async def _create(self) -> None:
        if not self._program:
            raise MissingPart("the ssh backend needs the program ssh; install the OpenSSH client")
        await self._drop_master()
        # Held as a child of ours: one that ssh puts into the background by itself would end with the first command.
        argv = self._ssh("-N", "-o", "ControlMaster=yes", "-o", "ControlPersist=no")
        spec = SpawnSpec(argv=argv, cwd="/", env=self._common.client_env, owner=self.id, confinement=self._client)
        self._master = await self._common.supervisor.spawn(Decision.own("ssh connection"), spec)
        async with asyncio.timeout(_CONNECT_LIMIT_S):
            while not await self._common.run_blocking(self._socket.exists):
                if self._master.is_gone:
                    said = b"".join([chunk async for chunk in self._master.output()]).decode("utf-8", "replace")
                    await self._drop_master()
                    raise ToolError(f"cannot reach {self._options.user}@{self._options.host} over ssh: {said.strip()}")
                await asyncio.sleep(_LOOK_AGAIN_S)

    async def _refresh(self) -> None:
        if self._master is None or self._master.is_gone:
            await self._create()

    async def _drop_master(self) -> None:
        if self._master is not None:
            await self._master.stop(0.5)
            self._master.release()
            self._master = None

    def _reach(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        # The other side's login shell reads one line; quoted, it is the same words again.
        return (*self._ssh(), "--", shlex.join(argv))

    def _ssh(self, *extra: str) -> tuple[str, ...]:
        options = self._options
        settings = {
            "BatchMode": "yes",
            "ConnectTimeout": "10",
            "ControlPath": str(self._socket),
            "ServerAliveInterval": "15",
            "ServerAliveCountMax": "3",
            "StrictHostKeyChecking": "accept-new",
            "LogLevel": "ERROR",
        }
        if options.known_hosts:
            settings["UserKnownHostsFile"] = options.known_hosts
        words = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        words += ["-i", options.key, "-o", "IdentitiesOnly=yes"] if options.key else []
        return (self._program, "-T", *words, "-p", str(options.port), *extra, f"{options.user}@{options.host}")

    def _client_failed(self, code: int, errors: str) -> bool:
        return code == _FAILED

    async def _release(self) -> None:
        await self._drop_master()
