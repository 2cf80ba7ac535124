"""Signals, services, power and the runtime's own processes."""

import re

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import is_wide, place
from hermes.tools.approval.run_state import Command, CommandOutput, Handlers
from hermes.tools.approval.stream_flow import listed
from hermes.tools.approval.tables import word_list
from hermes.tools.approval.word_patterns import has_glob, plain

_OWN = re.compile(r"(?i)hermes|\bgateway\b")
_EVERYONE = frozenset(("", ".", ".*", "^", "systemd", "init", "sshd", "dockerd", "containerd"))
# Programs that keep watch: without them nobody sees what is done next.
_GUARDS = re.compile(
    r"(?:auditd|auditbeat|filebeat|r?syslogd?|syslog-ng|(?:systemd-)?journald|falco|osqueryd?|clamd|freshclam|firewalld|ufw|fail2ban"
    r"(?:-server)?|apparmor\w*|falcon-sensor|wdavdaemon|mdatp|wazuh\S*|ossec\S*|snort|suricata|aide|tripwire|samhain|crowdsec)"
)
_MANY = 24  # numbers of processes in one call: nobody has looked at each
_FORCE = re.compile(r"(?i)-?(?:9|kill|sigkill)\Z")
_EVERY_PROCESS = re.compile(r"\A(?!.*(?:\A|\s)-(?:[pCqtU]|-p?pid))(?:.*\s)?(?:[a-z]*[ax][a-z]*(?:\s|\Z)|-\w*[eAax])")
_FOUND = frozenset(["process", "file", "listed"])  # where the number of a process comes from every day


def names_own(words: list[str]) -> bool:
    """Whether a pattern names the runtime, also one such as `h[e]rmes` that does not name itself."""
    for word in words:
        text = plain(word)
        if _OWN.search(text):
            return True
        if 3 < len(text) <= 64 and text.count("*") + text.count("+") < 3 and re.search(r"[\[(.?*\\]", text):
            try:
                if re.search(text, "hermes gateway", re.IGNORECASE):
                    return True
            except re.error:
                continue
    return False


def kill(cmd: Command) -> CommandOutput | None:
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
        elif arg.startswith("-") and not targets and UNKNOWN not in arg and not (arg == "-1" and not args):
            force = bool(_FORCE.match(arg)) or force
        else:
            targets.append(arg)
    if any(target in ("-1", "1", "0", "-0") for target in targets) or cmd.args == ["-1"]:
        severity = Severity.ASK if targets == ["0"] else Severity.HARDLINE
        cmd.add("mass_kill", severity=severity)
    elif any(has_glob(target) for target in targets) or sum(target.isdigit() for target in targets) > _MANY:
        cmd.add("mass_kill")
    elif any(UNKNOWN in target for target in targets):
        found = cmd.run.substituted
        if "own" in found:
            cmd.add("self_kill")
        elif "everyone" in found:
            cmd.add("mass_kill")
        elif "daemon" in found:
            cmd.add("service_control")
        elif force and "process" in found:
            cmd.add("force_kill")
        elif "dark" in found and not found & _FOUND:
            cmd.run.unknown(f"it stops a process that is only known when it runs ({cmd.line})")
    return None


def by_name(cmd: Command) -> CommandOutput | None:
    words = [arg for arg in cmd.args if not re.fullmatch(r"-(?:[A-Z]{3,}\d?|\d+)", arg)]  # a signal is no cluster
    options = read_options(words, "sugGtPUF", frozenset({"signal", "user", "euid", "uid"}))
    signal = options.value("s", "signal") or ""
    force = any(_FORCE.match(arg) for arg in cmd.args if arg.startswith("-")) or bool(_FORCE.match(signal))
    if names_own(options.operands):
        cmd.add("self_kill")
    elif any(map(_GUARDS.fullmatch, options.operands)):
        cmd.add("defence_off")
    elif (cmd.name == "pkill" and options.values.get("P") in ("0", "1")) or any(
        word in _EVERYONE for word in options.operands
    ):
        cmd.add("mass_kill")
    elif force or (cmd.name == "killall" and options.has("r", "regexp")):
        cmd.add("force_kill")
    elif options.has("uU", "user", "euid", "uid"):
        cmd.add("mass_kill")
    return None


def find_process(cmd: Command) -> CommandOutput:
    """pgrep, pidof, ps, lsof: numbers of processes; of the runtime, of everybody, or of those that were looked for."""
    labels = {"process" if cmd.name != "lsof" else "file"}
    if names_own(cmd.args):
        labels.add("own")
    if cmd.name == "lsof" and any(
        re.fullmatch(r"-\w*i", word) and (after[:1] == "-" or not after)
        for word, after in zip(cmd.args, [*cmd.args[1:], ""], strict=True)
    ):
        labels.add("everyone")
    if cmd.name == "ps" and _EVERY_PROCESS.search(" ".join(cmd.args)):
        labels.add("everyone")  # until a filter picks some of them
    if cmd.name == "pgrep" and read_options(cmd.args, "uUGgtPs").has("uU", "euid", "uid"):
        labels.add("everyone")
    if cmd.name != "ps" and any(
        word in _EVERYONE or _GUARDS.fullmatch(word) or (word.startswith("/") and is_wide(word, cmd.run.places))
        for word in map(plain, cmd.args)
    ):
        labels.add("everyone")
    return CommandOutput(None, frozenset(labels))


def search(cmd: Command) -> CommandOutput | None:
    """`ps | grep hermes | awk … | xargs kill` keeps what it looks for."""
    if "process" in cmd.stdin.labels and names_own(cmd.args):
        return CommandOutput(None, cmd.stdin.labels | {"own"})
    if not any(arg[:1] == "-" and ("l" in arg or "L" in arg) for arg in cmd.args):
        return None
    options = read_options(cmd.args, "ABCefmd")
    if options.has("lL", "files-with-matches", "files-without-match"):
        return CommandOutput(None, cmd.stdin.labels | listed(options.operands[0 if "e" in options.values else 1 :]))
    return None


_POWER = frozenset(["poweroff", "reboot", "halt", "kexec", "soft-reboot", "hibernate", "suspend"])
_POWER_UNIT = re.compile(
    r"(?:systemd-)?(?:poweroff|reboot|halt|kexec|soft-reboot|hibernate|suspend|shutdown|rescue|emergency|exit|hybrid-sleep"
    r"|suspend-then-hibernate|ctrl-alt-del|runlevel[016])\.(?:target|service)"
)


def systemctl(cmd: Command) -> CommandOutput | None:
    operands = read_options(
        cmd.args, "tHMpsno", frozenset({"type", "host", "machine", "property", "signal", "root"})
    ).operands
    verb = operands[0] if operands else ""
    if verb in ("show", "status", "list-units"):
        return find_process(cmd)
    if verb in _POWER or any(map(_POWER_UNIT.fullmatch, operands[1:])):
        cmd.add("shutdown", severity=Severity.HARDLINE)
    elif verb in word_list("processes.service_verbs") or UNKNOWN in verb:
        cmd.add("service_control")
    elif verb in ("set-property", "edit", "link", "set-default"):
        cmd.add("system_config")
    return None


def fuser(cmd: Command) -> CommandOutput | None:
    options = read_options(cmd.args)
    wide = any(word.startswith("/") and is_wide(word, cmd.run.places) for word in options.operands)
    if options.has("k", "kill") and any("/" in word and place(cmd, word) == "own" for word in options.operands):
        cmd.add("self_kill")
    elif options.has("k", "kill") and (options.has("m", "mount") or wide or "22/tcp" in options.operands):
        cmd.add("mass_kill")
    return None


HANDLERS: Handlers = {
    "kill": kill,
    **dict.fromkeys(words("pkill killall skill"), by_name),
    **dict.fromkeys(words("pgrep pidof ps lsof ss netstat pstree jobs launchctl supervisorctl"), find_process),
    "grep": search,
    "systemctl": systemctl,
    "fuser": fuser,
}
