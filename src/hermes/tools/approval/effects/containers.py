"""Containers, clusters and clouds: what stops, deletes or destroys; what runs inside."""

import re

from hermes.tools.approval.command_text import words
from hermes.tools.approval.effects.network import cloud_copy, sent
from hermes.tools.approval.options import after_options, read_options
from hermes.tools.approval.paths import place
from hermes.tools.approval.run_state import NOTHING, Command, CommandOutput, Handlers, Scope
from hermes.tools.approval.tables import sections, word_list


def docker(cmd: Command) -> CommandOutput | None:
    words = after_options(cmd.args, "cHlfp", word_list("containers.global"))
    if not words:
        return None
    area, rest = words[0], words[1:]
    if area in ("compose", "buildx", "swarm", "stack", "service", "node", "machine"):
        inner = after_options(rest, "fp", word_list("containers.global"))
        verb = inner[0] if inner else ""
        if verb in ("down", "stop", "kill", "rm", "leave", "prune", "restart", "pause"):
            cmd.add("container_stop")
        elif verb in ("exec", "run"):
            _inside(cmd, inner[1:], skip=1)
        return None
    if area in ("container", "image", "volume", "network", "system", "builder"):
        verb, rest = (rest[0] if rest else ""), rest[1:]
        if verb == "prune" or (area in ("volume", "system") and verb in ("rm", "remove")):
            cmd.add("infrastructure")
            return None
        area = verb
    if area in ("stop", "kill", "rm", "restart", "pause"):
        cmd.add("container_stop")
    elif area in ("rmi", "prune"):
        cmd.run.add("container_stop" if area == "rmi" else "infrastructure", cmd.line)
    elif area == "exec":
        _inside(cmd, rest, skip=1)
    elif area == "cp":
        _copied_in(cmd, rest)
    elif area in ("run", "create"):
        _host_access(cmd, rest)
        _inside(cmd, rest, skip=1)
    return None


def _host_access(cmd: Command, args: list[str]) -> None:
    """A container that mounts the host's system folders, or runs privileged, is the host."""
    options = read_options(args, "vewupml", word_list("containers.run_longs"), stop=True)
    mounts = [
        arg for position, arg in enumerate(args) if position and args[position - 1] in ("-v", "--volume", "--mount")
    ]
    mounts += [arg.partition("=")[2] for arg in args if arg.startswith(("--volume=", "--mount="))]
    for mount in mounts:
        found = re.search(r"(?:source|src)=([^,]+)", mount)
        source = found[1] if found else mount.split(":", 1)[0]
        if source.startswith(("/", "~", ".")):
            kind = place(cmd, source)
            if kind in ("root", "top", "credential", "own") or source.endswith("docker.sock"):
                cmd.add("open_permissions", (source,), path_class=kind)
    if options.has("", "privileged"):
        cmd.add("open_permissions")


def _copied_in(cmd: Command, args: list[str]) -> None:
    """`docker cp file box:`, `kubectl cp file pod:`: a private file leaves its place."""
    operands = read_options(args, "nc", frozenset({"namespace", "container"})).operands
    if len(operands) > 1 and ":" in operands[-1] and ":" not in operands[0]:
        sent(cmd, operands[:-1], operands[-1].split(":", 1)[0])


def _inside(cmd: Command, args: list[str], skip: int) -> None:
    """What a command inside a container does to the container is judged like any other command."""
    rest = after_options(args, "vewupmlh", word_list("containers.run_longs"))[skip:]
    if rest:
        cmd.run.start(rest, Scope("/srv/container"), cmd.stdin, (*cmd.via, cmd.name))


def kubectl(cmd: Command) -> CommandOutput | None:
    words = after_options(cmd.args, "ns", word_list("containers.global"))
    if words[:1] == ["kubectl"]:  # k3s kubectl, microk8s kubectl
        return kubectl(cmd._replace(args=words[1:]))
    verb = words[0] if words else ""
    if any(arg.startswith("--dry-run") and arg != "--dry-run=none" for arg in cmd.args):
        return None
    if verb in ("delete", "drain", "cordon", "taint", "replace", "uninstall") or "--force" in cmd.args:
        if verb != "replace" or "--force" in cmd.args:
            cmd.add("infrastructure")
    elif (
        (verb == "scale" and any(re.fullmatch(r"--replicas=0", arg) for arg in cmd.args))
        or (verb == "rollout" and "undo" in cmd.args)
        or (verb == "apply" and "--prune" in cmd.args)
    ):
        cmd.add("infrastructure")
    elif verb == "cp":
        _copied_in(cmd, words[1:])
    elif verb and verb not in sections("verbs.txt")["kubectl"] and cmd.name in ("kubectl", "oc", "k"):
        cmd.run.unknown(f"{cmd.name} is given a verb that nobody here knows ({verb})")
    elif verb in ("exec", "run", "debug", "attach") and "--" in cmd.args:
        cmd.run.start(
            cmd.args[cmd.args.index("--") + 1 :], Scope("/srv/container"), cmd.stdin, (*cmd.via, "kubectl exec")
        )
    return None


def cloud(cmd: Command) -> CommandOutput | None:
    """Clouds: what is copied there; the table of tools knows what they destroy."""
    return cloud_copy(cmd) if "://" in " ".join(cmd.args) else None


def ansible(cmd: Command) -> CommandOutput | None:
    """ansible: a module on other machines; those that run a text are judged by it, those that only look pass."""
    options = read_options(
        cmd.args, "maiuefMTtl", frozenset(words("module-name args inventory limit extra-vars become-user"))
    )
    module = (options.value("m", "module-name") or "command").rpartition(".")[2]
    text = options.value("a", "args") or ""
    if module in ("command", "shell", "raw"):
        return cmd.shell(text, NOTHING)
    if not options.has("", "list-hosts", "version", "help") and module not in word_list("containers.ansible_looks"):
        cmd.run.add("infrastructure", f"change other machines: {cmd.line}")
    return None


HANDLERS: Handlers = {
    **dict.fromkeys(["docker", "podman", "nerdctl"], docker),
    **dict.fromkeys(
        ["docker-compose", "podman-compose"], lambda cmd: docker(cmd._replace(args=["compose", *cmd.args]))
    ),
    **dict.fromkeys(["kubectl", "oc", "k", "k3s", "microk8s"], kubectl),
    **dict.fromkeys(words("aws gcloud az oci gsutil s3cmd mc"), cloud),
    "ansible": ansible,
}
