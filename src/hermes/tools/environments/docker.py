"""Commands in a container, by the docker or podman program: hardened, with a lease, with or without kept files."""

import hashlib
import logging
import os
import re
import secrets
import shutil
from pathlib import Path

from msgspec import Struct, structs

from hermes.errors import ConfigError, MissingPart, ToolError
from hermes.seams import Child, Decision, SpawnSpec
from hermes.tools.environments.remote import Common, RemoteEnvironment

DEFAULT_IMAGE = "nikolaik/python-nodejs:python3.11-nodejs20"
log = logging.getLogger(__name__)
_DOCKER_STORAGE = (
    '{{.Driver}} {{range .DriverStatus}}{{if eq (index . 0) "Backing Filesystem"}}{{index . 1}}{{end}}{{end}}'
)
_PODMAN_STORAGE = '{{.Store.GraphDriverName}} {{index .Store.GraphStatus "Backing Filesystem"}}'
_NO_QUOTA = "terminal.container_disk is not held to here: the engine's storage has no quotas (%s)"
_WITH_QUOTAS = ("overlay2 xfs", "overlay xfs", "btrfs", "zfs")
_CHECK_LIMIT_S = 5.0
_RUN_LIMIT_S = 600.0  # a first start may have to fetch the image
_CLIENT_TROUBLE = re.compile(
    r"Error response from daemon|Cannot connect to the Docker daemon|error during connect|no such container"
    r"|no container with name|is not running|container state improper|can only create exec sessions"
    r"|unable to connect to|OCI runtime exec failed|connection refused",
    re.IGNORECASE,
)
# The first process of the container. Its life is a lease: as long as a command runs the lease is renewed, and when
# nobody has come for the given number of seconds the container ends by itself, also after a crash of the runtime.
# Three processes are always there: the init, this shell, and its sleep.
_LEASE = """
trap 'exit 0' TERM INT
lease=/tmp/.hermes-lease
touch "$lease"
while :; do
  set -- /proc/[0-9]*
  [ $# -gt 3 ] && touch "$lease"
  [ $(($(date +%s) - $(stat -c %Y "$lease"))) -le LIMIT ] || exit 0
  sleep 5 &
  wait $!
done
"""


class DockerOptions(Struct, frozen=True, kw_only=True):
    """The container to be. Names follow `terminal.docker_*` and `terminal.container_*`."""

    image: str = DEFAULT_IMAGE
    program: str = ""  # empty: docker, else podman
    task: str = "default"
    persistent: bool = True
    folder: Path | None = None  # on the host: where persistent containers keep their files
    cpu: float = 1.0
    memory_mb: int = 5120
    disk_mb: int = 0  # of what is written in the container; 0 is no limit
    volumes: tuple[str, ...] = ()
    env: dict[str, str] = {}
    forward_env: dict[str, str] = {}
    mount_cwd: str = ""  # a folder of the host, mounted as /workspace
    as_host_user: bool = False
    network: bool = True
    read_only: tuple[str, ...] = ()  # `host:container`: skills and caches
    extra_args: tuple[str, ...] = ()
    lease_s: int = 300


class DockerEnvironment(RemoteEnvironment):
    """Bash in a container of its own. When the container is gone the call fails; the next one makes a new container."""

    kind = "docker"

    def __init__(self, common: Common, options: DockerOptions, cwd: str = "") -> None:
        if options.persistent and options.folder is None:
            raise ConfigError("a persistent container needs a folder on the host for its files")
        for volume in options.volumes:
            if volume.count(":") not in (1, 2) or not volume.startswith(("/", "~")):
                raise ConfigError(f"terminal.docker_volumes: {volume!r} is not `host:container[:ro]`")
        env = {**common.client_env, **options.env, **options.forward_env}
        super().__init__(structs.replace(common, client_env=env), cwd or self._start_folder(options))
        self._options = options
        self._program = ""
        self._name = ""
        self._is_podman = False
        self._attached: Child | None = None
        self._label = ""  # what the container is made from
        self._has_quota = False

    @staticmethod
    def _start_folder(options: DockerOptions) -> str:
        return "/workspace" if options.mount_cwd or options.as_host_user else "/root"

    async def _create(self) -> None:
        self._program = await self._find_program()
        self._has_quota = await self._can_limit_disk()
        self._label = await self._made_from()
        found = await self._find_kept() if self._options.persistent else ""
        if not found and self._options.persistent:
            await self._common.run_blocking(self._make_folders)
        try:
            await self._begin(found)
        except ToolError as error:
            if not self._has_quota or found:
                raise
            self._has_quota = False  # a file system that could have quotas and was mounted without
            await self._begin(found)
            log.warning(_NO_QUOTA, error)

    async def _begin(self, found: str) -> None:
        self._name = found or f"hermes-{secrets.token_hex(4)}"
        if self._is_podman:
            line = (self._program, "start", "-a", found) if found else self._run_line()
            return await self._keep_attached(line)
        answer = await self.client(
            (self._program, "start", found) if found else self._run_line("-d"), limit_s=_RUN_LIMIT_S
        )
        if answer.code != 0:
            raise self._not_started(answer.errors)
        return None

    def _not_started(self, errors: str) -> ToolError:
        self._name = ""
        return ToolError(f"the container could not be started from {self._options.image!r}: {errors.strip()}")

    async def _keep_attached(self, line: tuple[str, ...]) -> None:
        """Hold podman's own program as a child: it has no daemon, so what watches the container descends from it."""
        await self._drop_attached()
        spec = SpawnSpec(argv=line, cwd="/", env=self._common.client_env, owner=self.id, confinement=self._client)
        self._attached = await self._common.supervisor.spawn(Decision.own("container"), spec)
        look = (self._program, "container", "inspect", "--format", "{{.State.Running}}", self._name)
        while (await self.client(look, limit_s=_CHECK_LIMIT_S * 4)).output.strip() != b"true":
            if self._attached.is_gone:
                said = b"".join([chunk async for chunk in self._attached.output()]).decode("utf-8", "replace")
                await self._drop_attached()
                raise self._not_started(said)

    async def _drop_attached(self) -> None:
        if self._attached is not None:
            await self._attached.stop(2.0)
            self._attached.release()
            self._attached = None

    async def _find_program(self) -> str:
        path = self._common.client_env.get("PATH")
        names = [self._options.program] if self._options.program else ["docker", "podman"]
        found = next((program for name in names if (program := shutil.which(name, path=path))), None)
        if found is None:
            raise MissingPart(f"the docker backend needs {' or '.join(names)}; install one of them")
        answer = await self.client((found, "version"), limit_s=_CHECK_LIMIT_S)
        if answer.code != 0:
            raise ToolError(f"{Path(found).name} does not answer: {answer.errors.strip() or 'is its service running?'}")
        # A `docker` may be podman under another name.
        self._is_podman = b"podman" in answer.output.lower() or "podman" in Path(found).name
        return found

    async def _can_limit_disk(self) -> bool:
        """Whether the engine's storage has quotas; where it has none, that is told once in the log."""
        if not self._options.disk_mb:
            return False
        wanted = _PODMAN_STORAGE if self._is_podman else _DOCKER_STORAGE
        answer = await self.client((self._program, "info", "--format", wanted), limit_s=_CHECK_LIMIT_S * 4)
        storage = answer.output.decode("utf-8", "replace").strip()
        if answer.code == 0 and storage.startswith(_WITH_QUOTAS):
            return True
        log.warning(
            "terminal.container_disk is not held to here: the storage of the engine (%s) has no quotas", storage
        )
        return False

    async def _find_kept(self) -> str:
        """The name of this task's container from an earlier session, if it was made from the same settings.

        One from other settings (image, mounts, user) is removed: its files are in the folders, which stay.
        """
        line = (self._program, "ps", "-a", "--filter", f"label=hermes.task={self._options.task}", "--format")
        answer = await self.client((*line, '{{.Names}} {{.Label "hermes.made-from"}}'), limit_s=_CHECK_LIMIT_S * 4)
        if answer.code != 0:
            raise ToolError(f"the containers cannot be listed: {answer.errors.strip()}")
        same = ""
        for row in answer.output.decode().splitlines():
            name, _, made_from = row.partition(" ")
            if made_from == self._label and not same:
                same = name
            else:
                await self.client((self._program, "rm", "-f", name), limit_s=_CHECK_LIMIT_S * 4)
        return same

    async def _made_from(self) -> str:
        """What the container is made from: the image by its content, and every word of the command line."""
        line = (self._program, "image", "inspect", "--format", "{{.Id}}", self._options.image)
        image = (await self.client(line, limit_s=_CHECK_LIMIT_S * 4)).output.decode().strip()
        words = [image, *self._settings(), *(f"{name}={value}" for name, value in sorted(self._options.env.items()))]
        return hashlib.sha256("\0".join(words).encode()).hexdigest()[:24]

    def _run_line(self, *how: str) -> tuple[str, ...]:
        options = self._options
        return (
            *(self._program, "run", *how, "--init", "--name", self._name),
            *("--label", "hermes.owner=hermes-runtime", "--label", f"hermes.task={options.task}"),
            *("--label", f"hermes.made-from={self._label}"),
            *(() if options.persistent else ("--rm",)),
            *self._settings(),
            *options.extra_args,
            *(options.image, "sh", "-c", _LEASE.replace("LIMIT", str(options.lease_s))),
        )

    def _settings(self) -> list[str]:
        options = self._options
        capabilities = ["DAC_OVERRIDE", "CHOWN", "FOWNER", *([] if options.as_host_user else ["SETUID", "SETGID"])]
        words = ["--cap-drop", "ALL", *(word for name in capabilities for word in ("--cap-add", name))]
        words += ["--security-opt", "no-new-privileges", "--pids-limit", "256"]
        words += ["--tmpfs", "/tmp:rw,exec,nosuid,size=512m", "--tmpfs", "/var/tmp:rw,noexec,nosuid,size=256m"]  # noqa: S108
        words += ["--tmpfs", "/run:rw,noexec,nosuid,size=64m"]
        words += ["--cpus", f"{options.cpu:g}"] if options.cpu else []
        words += ["--memory", f"{options.memory_mb}m"] if options.memory_mb else []
        words += ["--storage-opt", f"size={options.disk_mb}m"] if self._has_quota else []
        words += [] if options.network else ["--network", "none"]
        words += ["--user", f"{os.getuid()}:{os.getgid()}", "-e", "HOME=/workspace"] if options.as_host_user else []
        # Names only: the values reach the client in its environment, where `ps` does not show them.
        words += [word for name in sorted(options.env) for word in ("-e", name)]
        return [*words, *self._mounts()]

    def _mounts(self) -> list[str]:
        options = self._options
        words: list[str] = []
        if options.persistent:
            words += ["-v", f"{self._kept}/home:/root"]
            words += [] if options.mount_cwd else ["-v", f"{self._kept}/workspace:/workspace"]
        else:
            words += ["--tmpfs", "/root:rw,exec,size=1g"]
            words += [] if options.mount_cwd else ["--tmpfs", "/workspace:rw,exec,size=10g,mode=1777"]
        words += ["-v", f"{options.mount_cwd}:/workspace"] if options.mount_cwd else []
        words += [word for volume in options.volumes for word in ("-v", volume)]
        return words + [word for mount in options.read_only for word in ("-v", f"{mount}:ro")]

    @property
    def _kept(self) -> Path:
        assert self._options.folder is not None
        return self._options.folder / "docker" / self._options.task

    def _make_folders(self) -> None:
        for name in ("home", "workspace"):
            (self._kept / name).mkdir(parents=True, exist_ok=True, mode=0o700)

    def _reach(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        # Forwarded variables come in with the shell that makes the snapshot; later shells get them from there.
        forwarded = [word for name in sorted(self._options.forward_env) for word in ("-e", name)]
        return (self._program, "exec", "-i", *forwarded, self._name, *argv)

    def _client_failed(self, code: int, errors: str) -> bool:
        return code != 0 and bool(_CLIENT_TROUBLE.search(errors))

    async def _release(self) -> None:
        if not self._name:
            return
        line = ("stop", "-t", "2", self._name) if self._options.persistent else ("rm", "-f", self._name)
        await self.client((self._program, *line), limit_s=_CHECK_LIMIT_S * 4)
        await self._drop_attached()
