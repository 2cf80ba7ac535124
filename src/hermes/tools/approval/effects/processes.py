"""Signals, services, power and the runtime's own processes."""

import re
from collections.abc import Callable

from hermes.tools.approval.effects.words import line
from hermes.tools.approval.model import Severity
from hermes.tools.approval.options import read_options
from hermes.tools.approval.state import Cmd, Out
from hermes.tools.approval.text import UNKNOWN, words

_OWN = re.compile(r"(?i)hermes|\bgateway\b")
_FORCE = re.compile(r"(?i)-?(?:9|kill|sigkill)\Z")


def kill(cmd: Cmd) -> Out | None:
    args = list(cmd.args)
    force = False
    targets: list[str] = []
    while args:
        arg = args.pop(0)
        if arg in ("-s", "--signal", "-n") and args:
            force = bool(_FORCE.match(args.pop(0))) or force
        elif arg in ("-l", "-L", "--list"):
            return None
        elif arg == "--":
            targets += args
            break
        elif arg.startswith("-") and not targets and not (arg == "-1" and not args):
            force = bool(_FORCE.match(arg)) or force
        else:
            targets.append(arg)
    if any(target in ("-1", "1", "0", "-0") for target in targets) or cmd.args == ["-1"]:
        severity = Severity.ASK if targets == ["0"] else Severity.HARDLINE
        cmd.run.add("mass_kill", line(cmd), severity=severity)
    elif any(UNKNOWN in target for target in targets):
        kind = "self_kill" if "own" in cmd.run.substituted else "force_kill"
        if kind == "self_kill" or (force and "process" in cmd.run.substituted):
            cmd.run.add(kind, line(cmd))
    return None


def by_name(cmd: Cmd) -> Out | None:
    options = read_options(cmd.args, "sugGtPUF", frozenset({"signal", "user", "euid", "uid"}))
    signal = options.value("s", "signal") or ""
    force = (
        options.has("9")
        or any(_FORCE.match(arg) for arg in cmd.args if arg.startswith("-"))
        or bool(_FORCE.match(signal))
    )
    text = " ".join(options.operands)
    if _OWN.search(text):
        cmd.run.add("self_kill", line(cmd))
    elif force or (cmd.name == "killall" and options.has("r", "regexp")):
        cmd.run.add("force_kill", line(cmd))
    elif options.has("uU", "user", "euid", "uid") or any(word in (".", ".*", "") for word in options.operands):
        cmd.run.add("mass_kill", line(cmd))
    return None


def find_process(cmd: Cmd) -> Out:
    labels = {"process"} | ({"own"} if _OWN.search(" ".join(cmd.args)) else set())
    return Out(None, frozenset(labels))


def search(cmd: Cmd) -> Out | None:
    """`ps | grep hermes | awk … | xargs kill` keeps what it looks for."""
    if "process" in cmd.stdin.labels and _OWN.search(" ".join(cmd.args)):
        return Out(None, cmd.stdin.labels | {"own"})
    return None


_SERVICE_VERBS = frozenset(
    words("stop restart disable mask kill isolate try-restart reload-or-restart revert emergency rescue")
)
_POWER = frozenset(["poweroff", "reboot", "halt", "kexec", "soft-reboot", "hibernate", "suspend"])


def systemctl(cmd: Cmd) -> Out | None:
    operands = read_options(
        cmd.args, "tHMpsno", frozenset({"type", "host", "machine", "property", "signal", "root"})
    ).operands
    verb = operands[0] if operands else ""
    if verb in _POWER:
        cmd.run.add("shutdown", line(cmd), severity=Severity.HARDLINE)
    elif verb in _SERVICE_VERBS or UNKNOWN in verb:
        cmd.run.add("service_control", line(cmd))
    elif verb in ("set-property", "edit", "link", "set-default"):
        cmd.run.add("system_config", line(cmd))
    return None


def service(cmd: Cmd) -> Out | None:
    if cmd.name == "brew" and cmd.args[:1] != ["services"]:
        return None
    if set(cmd.args) & {"stop", "restart", "disable", "force-stop", "delete", "down", "del", "remove", "off"}:
        cmd.run.add("service_control", line(cmd))
    return None


def launchctl(cmd: Cmd) -> Out | None:
    if set(cmd.args) & {"unload", "bootout", "remove", "stop", "kill", "disable", "kickstart"}:
        kind = "own_runtime" if _OWN.search(" ".join(cmd.args)) else "service_control"
        cmd.run.add(kind, line(cmd))
    elif set(cmd.args) & {"load", "bootstrap", "submit"}:
        cmd.run.add("cron_write", line(cmd))
    return None


def power(cmd: Cmd) -> Out | None:
    if not read_options(cmd.args).has("c", "help", "version", "show", "wtmp-only"):
        cmd.run.add("shutdown", line(cmd), severity=Severity.HARDLINE)
    return None


def init(cmd: Cmd) -> Out | None:
    if cmd.args[:1] and cmd.args[0] in ("0", "6", "1", "S", "s"):
        cmd.run.add("shutdown", line(cmd), severity=Severity.HARDLINE)
    return None


def crontab(cmd: Cmd) -> Out | None:
    options = read_options(cmd.args, "u")
    if not options.has("l", "list"):
        cmd.run.add("cron_write", line(cmd))
    return None


_OWN_VERBS = {
    "gateway": {"stop", "restart", "run", "start", "uninstall", "install"},
    "approvals": {"revoke", "add", "allow", "clear", "set", "grant"},
    "profile": {"delete", "remove", "use", "rename"},
    "cron": {"add", "remove", "delete", "edit", "create"},
    "plugins": {"install", "enable", "remove", "uninstall", "disable"},
    "mcp": {"add", "remove"},
    "sessions": {"delete", "prune"},
    "tools": {"enable", "disable"},
}


def hermes(cmd: Cmd) -> Out | None:
    operands = [arg for arg in cmd.args if not arg.startswith("-")]
    area, verb = (operands[0] if operands else ""), (operands[1] if len(operands) > 1 else "")
    run = cmd.run
    if (
        (area == "config" and verb in ("set", "edit", "unset", "reset", "import"))
        or "--yolo" in cmd.args
        or (area == "approvals" and verb in _OWN_VERBS["approvals"])
    ):
        run.add("own_runtime", line(cmd), severity=Severity.HARDLINE)
    elif area in ("update", "uninstall", "setup", "model", "fallback") or verb in _OWN_VERBS.get(area, ()):
        run.add("own_runtime", line(cmd))
    return None


def gateway(cmd: Cmd) -> Out | None:
    if cmd.args[:1] and cmd.args[0] in ("run", "stop", "restart"):
        cmd.run.add("own_runtime", line(cmd))
    return None


def fuser(cmd: Cmd) -> Out | None:
    options = read_options(cmd.args)
    if options.has("k", "kill") and options.has("m", "mount"):
        cmd.run.add("mass_kill", line(cmd))
    return None


HANDLERS: dict[str, Callable[[Cmd], Out | None]] = {
    "kill": kill,
    "pkill": by_name,
    "killall": by_name,
    "skill": by_name,
    "killall5": power,
    "pgrep": find_process,
    "pidof": find_process,
    "ps": find_process,
    "grep": search,
    "systemctl": systemctl,
    "service": service,
    "brew": service,
    "rc-service": service,
    "initctl": service,
    "rc-update": service,
    "chkconfig": service,
    "update-rc.d": service,
    "supervisorctl": service,
    "sv": service,
    "launchctl": launchctl,
    "shutdown": power,
    "reboot": power,
    "halt": power,
    "poweroff": power,
    "init": init,
    "telinit": init,
    "crontab": crontab,
    "hermes": hermes,
    "hermes-agent": hermes,
    "hermes-acp": hermes,
    "gateway": gateway,
    "fuser": fuser,
}
