"""Make the environment that the settings ask for. A backend that cannot be made is an error, never another backend."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hermes.config import paths
from hermes.config.dotenv import lent
from hermes.config.sections import terminal
from hermes.errors import ConfigError
from hermes.programs import split_path
from hermes.redact import Redactor
from hermes.seams import Environment, Supervisor
from hermes.tools.environments.command_env import is_secret_name, scrubbed
from hermes.tools.supervisor.threads import RunBlocking, in_daemon_thread
from hermes.tools.terminal.sudo import AskPassword

if TYPE_CHECKING:
    from hermes.tools.environments.local import Border, Mode
    from hermes.tools.environments.remote import Common


class Overrides(Struct, frozen=True, kw_only=True):
    """What one task has otherwise than the settings say; empty keeps the setting."""

    cwd: str = ""
    docker_image: str = ""
    singularity_image: str = ""
    modal_image: str = ""
    daytona_image: str = ""


class EnvironmentRequest(Struct, frozen=True, kw_only=True):
    """What an environment is made with."""

    settings: terminal.Section
    supervisor: Supervisor
    home: Path  # HERMES_HOME
    environ: Mapping[str, str]  # the runtime's own; commands see it scrubbed
    secrets: Mapping[str, str] = {}  # of .env; commands see those that the settings name
    launch_folder: str  # where the person started Hermes
    approvals: Mapping[str, Any] = {}  # the section of the settings; hosts that its rules deny are never reached
    task_id: str = "default"
    session_id: str = ""
    overrides: Overrides = Overrides()
    run_blocking: RunBlocking = in_daemon_thread
    ask_password: AskPassword | None = None  # for `sudo`, when somebody is there
    redactor: Redactor | None = None  # knows the runtime's secrets

    def lookup(self, variable: str) -> str:
        """A variable that is asked for by name, of the environment or of .env."""
        return self.environ.get(variable, self.secrets.get(variable, ""))


def create_environment(making: EnvironmentRequest) -> Environment:
    """The environment of one session or task. Cheap: nothing is started or connected before the first command."""
    return MAKERS[making.settings.backend](making)


def host_folder(making: EnvironmentRequest) -> str:
    """Where a session on this machine stands first: an override, the setting, or where the person started Hermes."""
    wanted = making.overrides.cwd or making.settings.cwd or "."
    return os.path.normpath(os.path.join(making.launch_folder, os.path.expanduser(wanted)))  # noqa: PTH111, PTH118


def _local(making: EnvironmentRequest) -> Environment:
    from hermes.tools.environments.local import LocalEnvironment, LocalOptions  # only what is used

    settings, folder = making.settings, host_folder(making)
    options = LocalOptions(
        env=scrubbed(lent(making.environ, settings.env_passthrough, making.secrets), settings.env_passthrough),
        init_files=tuple(settings.shell_init_files),
        source_bashrc=settings.auto_source_bashrc,
        processes_folder=making.home / "processes",
        max_processes=settings.max_processes,
        redactor=making.redactor,
        ask_password=making.ask_password,
        border=border_of(making),
        session={"HERMES_SESSION_ID": making.session_id} if making.session_id else {},
        person=making.environ,
    )
    environment = LocalEnvironment(making.supervisor, folder, options, run_blocking=making.run_blocking)
    environment.sudo_password = making.lookup("SUDO_PASSWORD") or None
    return environment


def border_of(making: EnvironmentRequest) -> "Border":
    """What the settings say about the confinement of local commands."""
    from hermes.confinement.policy import POLICIES, Limits, PlanRequest, Policy
    from hermes.tools.environments.local import Border

    settings, folder = making.settings, host_folder(making)
    policy: Policy = settings.sandbox if settings.sandbox in POLICIES else "workspace"
    roots = tuple(root for root in making.environ.get("HERMES_WRITE_SAFE_ROOT", "").split(":") if root.strip())
    request = PlanRequest(
        workspace=folder,
        policy=policy,
        home=making.environ.get("HOME", ""),
        hermes_home=str(making.home),
        environ=making.environ,
        writable=_opened(settings.sandbox_writable),
        safe_roots=_opened(roots),
        sockets=_opened(settings.sandbox_sockets),
        network=settings.reach == "open",
        limits=Limits(
            processes=settings.max_processes,
            memory_mb=settings.max_memory_mb,
            open_files=settings.max_open_files,
            temp_mb=settings.max_temp_mb,
        ),
        caches=str(paths.cache_dir(making.home) / "workspaces" / workspace_name(folder)),
    )
    mode: Mode = settings.sandbox if settings.sandbox in ("auto", "off") else "on"
    return Border(
        mode=mode,
        level=settings.sandbox_level,
        request=request,
        network=settings.reach,
        is_network_said=settings.network is not None,
        network_hosts=settings.network_hosts,
        network_local=settings.network_local,
        approvals=making.approvals,
    )


def _opened(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(os.path.expanduser(name) for name in names)  # noqa: PTH111


def workspace_name(folder: str) -> str:
    """A name for what Hermes keeps for a workspace: readable, and never that of another one."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "-", os.path.basename(folder))[:40]  # noqa: PTH119
    return f"{plain}-{hashlib.sha256(os.path.realpath(folder).encode('utf-8', 'surrogateescape')).hexdigest()[:10]}"


def _ssh(making: EnvironmentRequest) -> Environment:
    from hermes.tools.environments.ssh import SshEnvironment, SshOptions

    settings = making.settings
    options = SshOptions(
        host=settings.ssh_host,
        user=settings.ssh_user,
        port=settings.ssh_port,
        key=os.path.expanduser(settings.ssh_key),  # noqa: PTH111
    )
    return SshEnvironment(_common(making, is_synced=True), options, _remote_folder(making, "~"))


def _docker(making: EnvironmentRequest) -> Environment:
    from hermes.tools.environments.docker import DockerEnvironment, DockerOptions

    settings = making.settings
    options = DockerOptions(
        image=making.overrides.docker_image or settings.docker_image,
        program=settings.docker_binary,
        task=making.task_id,
        persistent=settings.container_persistent,
        folder=paths.sandboxes_dir(making.home),
        cpu=settings.container_cpu,
        memory_mb=settings.container_memory,
        disk_mb=settings.container_disk,
        read_only=_skills(making, "/workspace" if settings.docker_run_as_host_user else "/root"),
        volumes=tuple(settings.docker_volumes),
        env=dict(settings.docker_env),
        forward_env=_forwarded(making),
        mount_cwd=making.launch_folder if settings.docker_mount_cwd_to_workspace else "",
        as_host_user=settings.docker_run_as_host_user,
        network=settings.docker_network,
        extra_args=tuple(settings.docker_extra_args),
        lease_s=int(settings.lifetime_seconds),
    )
    return DockerEnvironment(_common(making), options, _remote_folder(making, ""))


def _singularity(making: EnvironmentRequest) -> Environment:
    from hermes.tools.environments.singularity import SingularityEnvironment, SingularityOptions

    settings = making.settings
    options = SingularityOptions(
        image=making.overrides.singularity_image or settings.singularity_image,
        task=making.task_id,
        persistent=settings.container_persistent,
        folder=paths.sandboxes_dir(making.home),
        binds=_skills(making, "/root"),
    )
    return SingularityEnvironment(_common(making), options, _remote_folder(making, "/root"))


def _modal(making: EnvironmentRequest) -> Environment:
    from hermes.tools.environments.modal_ import ModalEnvironment, ModalOptions

    settings = making.settings
    options = ModalOptions(
        image=making.overrides.modal_image or settings.modal_image,
        task=making.task_id,
        persistent=settings.container_persistent,
        folder=paths.sandboxes_dir(making.home),
        cpu=settings.container_cpu,
        memory_mb=settings.container_memory,
        lifetime_s=int(settings.lifetime_seconds),
    )
    return ModalEnvironment(_common(making, is_synced=True), options, _remote_folder(making, "/root"))


def _daytona(making: EnvironmentRequest) -> Environment:
    from hermes.tools.environments.daytona_ import DaytonaEnvironment, DaytonaOptions

    settings = making.settings
    options = DaytonaOptions(
        image=making.overrides.daytona_image or settings.daytona_image,
        task=making.task_id,
        persistent=settings.container_persistent,
        api_key=making.lookup("DAYTONA_API_KEY"),
        api_url=making.lookup("DAYTONA_API_URL"),
        cpu=int(settings.container_cpu),
        memory_gb=max(1, settings.container_memory // 1024),
        disk_gb=min(10, max(1, settings.container_disk // 1024)),
    )
    return DaytonaEnvironment(_common(making, is_synced=True), options, _remote_folder(making, "~"))


def _skills(making: EnvironmentRequest, home: str) -> tuple[str, ...]:
    """The mount that shows skills to a container, where there are any. No credentials are ever mounted."""
    folder = making.home / "skills"
    return (f"{folder}:{home}/.hermes/skills",) if folder.is_dir() else ()


def _common(making: EnvironmentRequest, *, is_synced: bool = False) -> "Common":
    from hermes.tools.environments.remote import Common
    from hermes.tools.environments.sync import Synced

    return Common(
        synced=Synced(making.home / "skills", "~/.hermes/skills") if is_synced else None,
        sync_each_time=bool(making.environ.get("HERMES_FORCE_FILE_SYNC")),
        supervisor=making.supervisor,
        run_blocking=making.run_blocking,
        client_env={**making.environ, "PATH": split_path(making.environ, making.launch_folder).own},
        init_files=tuple(making.settings.shell_init_files),
        spill_folder=paths.cache_dir(making.home) / "output",
        redactor=making.redactor,
    )


def _remote_folder(making: EnvironmentRequest, default: str) -> str:
    """Where a session elsewhere stands first. A folder of this machine means nothing there."""
    wanted = making.overrides.cwd or making.settings.cwd
    return wanted if wanted.startswith(("/", "~")) and not _is_here(wanted, making) else default


def _is_here(folder: str, making: EnvironmentRequest) -> bool:
    home = making.environ.get("HOME", "")
    return making.settings.backend != "ssh" and bool(home) and (folder == home or folder.startswith(f"{home}/"))


def _forwarded(making: EnvironmentRequest) -> dict[str, str]:
    """Variables for commands in a container: those named for it, and passed-through ones that are no credentials."""
    explicit = making.settings.docker_forward_env
    passed = [name for name in making.settings.env_passthrough if not is_secret_name(name)]
    for name in explicit:
        if not name.isidentifier():
            raise ConfigError(f"terminal.docker_forward_env: {name!r} is no name of a variable")
    named = (*explicit, *passed)
    return {name: making.lookup(name) for name in named if name in making.environ or name in making.secrets}


MAKERS: dict[terminal.Backend, Callable[[EnvironmentRequest], Environment]] = {
    "local": _local,
    "ssh": _ssh,
    "docker": _docker,
    "singularity": _singularity,
    "modal": _modal,
    "daytona": _daytona,
}
"""By the name in `terminal.backend`, each of which is in the settings' own list."""
