"""Where commands run, and what they are given."""

from typing import Annotated, Literal, get_args

from msgspec import Meta, field

from hermes.config.section import SectionBase, key
from hermes.errors import ConfigError

Machine = Literal["local", "ssh"]  # the files there are somebody's
Container = Literal["docker", "singularity", "modal", "daytona"]  # nothing there is anybody's, but for what is mounted
Backend = Literal[Machine, Container]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
PROGRAMS: dict[Backend, tuple[str, ...]] = {  # by which a backend is reached; one of them has to be here
    "docker": ("docker", "podman"),
    "ssh": ("ssh",),
    "singularity": ("apptainer", "singularity"),
}
Network = Literal["open", "ask", "off"]
DEFAULT_NETWORK: Network = "ask"
_OF_THE_NETWORK = {53: "the resolver", 1080: "the proxy"}  # where commands reach Hermes itself
Port = Annotated[int, Meta(ge=1, le=65535)]
Sandbox = Literal["auto", "on", "off", "read-only", "workspace", "open"]
CONTAINERS: frozenset[str] = frozenset(get_args(Container))


class Section(SectionBase, frozen=True):
    """Where commands run, and what they are given."""

    backend: Annotated[Backend, key("Where commands run.", env="TERMINAL_ENV")] = "local"
    cwd: Annotated[str, key("Folder a session starts in; `.` is where you started Hermes.", env="TERMINAL_CWD")] = "."
    timeout: Annotated[
        float, key("Seconds a command may run when the model names no time.", env="TERMINAL_TIMEOUT")
    ] = 180
    max_foreground_timeout: Annotated[
        float, key("Most seconds the model may ask for.", env="TERMINAL_MAX_FOREGROUND_TIMEOUT", gt=0)
    ] = 600
    lifetime_seconds: Annotated[
        float, key("Idle seconds after which an environment is given up.", env="TERMINAL_LIFETIME_SECONDS", gt=0)
    ] = 300
    sandbox: Annotated[
        Sandbox,
        key(
            "How local commands are confined. `auto` lets them write to the workspace, enforced by what works here, "
            "and says once where that is not everything; `on` refuses to run where nothing can enforce it; `off` "
            "confines nothing. `read-only`, `workspace` and `open` are ready-made policies, enforced as with `on`: no "
            "folder of yours, the workspace, or all but keys and secrets may be written. Linux only."
        ),
    ] = "auto"
    sandbox_level: Annotated[
        Literal["auto", "full", "files"],
        key("What enforces it: bubblewrap (`full`), Landlock alone (`files`), or the most that works here (`auto`)."),
    ] = "auto"
    sandbox_network: Annotated[bool | None, key("The older way to say `network: off` (false); true says nothing.")] = (
        None
    )
    network: Annotated[
        Network | None,
        key(
            "Which hosts sandboxed commands reach: `open` all of them, `ask` those that were granted, and you are "
            "asked about another one once, `off` none. `ask` needs the level full; where that is not to be had it is "
            "`off` if you wrote it here. Unset it is `ask` at the level full, and `open` elsewhere."
        ),
    ] = None
    network_hosts: Annotated[
        tuple[str, ...],
        key("Hosts that pass with `network: ask`: a name, `*.name`, an address or a network, with or without :PORT."),
    ] = ()
    network_local: Annotated[
        tuple[Port, ...], key("Ports of this machine's own loopback that commands reach with `network: ask`.")
    ] = ()
    sandbox_writable: Annotated[tuple[str, ...], key("Folders sandboxed commands may write to, beyond the usual.")] = ()
    sandbox_sockets: Annotated[
        tuple[str, ...], key("Unix sockets of the machine that sandboxed commands may reach, such as /run/docker.sock.")
    ] = ()
    max_processes: Annotated[int, key("Processes one command may have before it is ended; 0 is no limit.", ge=0)] = 4096
    max_memory_mb: Annotated[int, key("Memory of a sandboxed command, MB; 0 is no limit.", ge=0)] = 0
    max_open_files: Annotated[int, key("Files a sandboxed command may have open; 0 is no limit.", ge=0)] = 65536
    max_temp_mb: Annotated[
        int, key("What a sandboxed session may keep in its temporary folder, MB; 0 is no limit.", ge=0)
    ] = 4096
    keep_background: Annotated[
        bool, key("Let background processes run on when their session ends. They end with it otherwise.")
    ] = False
    env_passthrough: Annotated[
        tuple[str, ...], key("Variables commands see although they look like secrets, or stand in .env.")
    ] = ()
    shell_init_files: Annotated[tuple[str, ...], key("Files sourced when a session's shell is made.")] = ()
    auto_source_bashrc: Annotated[bool, key("Source ~/.bashrc when a session's shell is made.")] = True
    ssh_host: Annotated[str, key("Host of the ssh backend.", env="TERMINAL_SSH_HOST")] = ""
    ssh_user: Annotated[str, key("User on that host.", env="TERMINAL_SSH_USER")] = ""
    ssh_port: Annotated[int, key("Port of its ssh server.", env="TERMINAL_SSH_PORT", ge=1, le=65535)] = 22
    ssh_key: Annotated[str, key("Private key file; empty uses what ssh itself would.", env="TERMINAL_SSH_KEY")] = ""
    docker_image: Annotated[str, key("Image of the docker backend.", env="TERMINAL_DOCKER_IMAGE")] = (
        "nikolaik/python-nodejs:python3.11-nodejs20"
    )
    docker_forward_env: Annotated[
        tuple[str, ...], key("Host variables that commands in the container see.", env="TERMINAL_DOCKER_FORWARD_ENV")
    ] = ()
    docker_env: Annotated[
        dict[str, str], key("Variables set when the container is made.", env="TERMINAL_DOCKER_ENV")
    ] = field(default_factory=dict)
    docker_volumes: Annotated[
        tuple[str, ...], key("Extra mounts, `host:container[:ro]`.", env="TERMINAL_DOCKER_VOLUMES")
    ] = ()
    docker_mount_cwd_to_workspace: Annotated[
        bool, key("Mount the start folder as /workspace.", env="TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE")
    ] = False
    docker_extra_args: Annotated[
        tuple[str, ...], key("Words added to `docker run`, last.", env="TERMINAL_DOCKER_EXTRA_ARGS")
    ] = ()
    docker_run_as_host_user: Annotated[
        bool, key("Run in the container under your own user id.", env="TERMINAL_DOCKER_RUN_AS_HOST_USER")
    ] = False
    docker_binary: Annotated[
        str, key("Program of the docker backend; empty takes docker, else podman.", env="HERMES_DOCKER_BINARY")
    ] = ""
    docker_network: Annotated[bool, key("Give the container a network.")] = True
    singularity_image: Annotated[str, key("Image of the singularity backend.", env="TERMINAL_SINGULARITY_IMAGE")] = (
        "docker://nikolaik/python-nodejs:python3.11-nodejs20"
    )
    modal_image: Annotated[str, key("Image of the modal backend.", env="TERMINAL_MODAL_IMAGE")] = (
        "nikolaik/python-nodejs:python3.11-nodejs20"
    )
    daytona_image: Annotated[str, key("Image of the daytona backend.", env="TERMINAL_DAYTONA_IMAGE")] = (
        "nikolaik/python-nodejs:python3.11-nodejs20"
    )
    container_cpu: Annotated[float, key("Processors of a container.", env="TERMINAL_CONTAINER_CPU", gt=0)] = 1
    container_memory: Annotated[int, key("Memory of a container, MB.", env="TERMINAL_CONTAINER_MEMORY", gt=0)] = 5120
    container_disk: Annotated[int, key("Disk of a container, MB.", env="TERMINAL_CONTAINER_DISK", gt=0)] = 51200
    container_persistent: Annotated[
        bool, key("Keep a container's files for the next session.", env="TERMINAL_CONTAINER_PERSISTENT")
    ] = True

    @property
    def reach(self) -> Network:
        """Which network commands are meant to have, by whichever key says so."""
        return self.network or ("off" if self.sandbox_network is False else DEFAULT_NETWORK)

    @classmethod
    def warned(cls, plain: object) -> str:
        said = plain.get("sandbox_network") if isinstance(plain, dict) else None
        if said is None:
            return ""
        means = "is taken as `network: off`" if said is False else "says nothing any more"
        return f"terminal.sandbox_network: {str(said).lower()} {means}; write terminal.network: open, ask or off"

    @classmethod
    def refused(cls, plain: object) -> tuple[str, str] | None:
        said = plain if isinstance(plain, dict) else {}
        own = [port for port in said.get("network_local") or () if port in _OF_THE_NETWORK]
        if own:
            return (
                "network_local",
                f"port {own[0]} is {_OF_THE_NETWORK[own[0]]} in the session's own network; use another",
            )
        hosts = said.get("network_hosts")
        if not hosts:
            return None
        from hermes.config.host_entry import read_grant  # paid by who names some

        try:
            for entry in hosts:
                read_grant(str(entry))
        except ConfigError as error:
            return "network_hosts", str(error)
        return None

    @classmethod
    def fold(cls, plain: object) -> object:
        if not isinstance(plain, dict):
            return plain
        if isinstance(plain.get("sandbox"), bool):
            plain = {**plain, "sandbox": "on" if plain["sandbox"] else "off"}  # YAML reads `on` and `off` as booleans
        return {**plain, "network": "off"} if plain.get("network") is False else plain
