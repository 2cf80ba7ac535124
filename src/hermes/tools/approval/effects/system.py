"""Firewalls, audit, accounts, kernel settings, and what Windows shells would do."""

import re
from collections.abc import Callable
from functools import partial

from hermes.tools.approval.effects.words import line
from hermes.tools.approval.model import Severity
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import write_path
from hermes.tools.approval.state import Cmd, Out


def on_words(cmd: Cmd, words: re.Pattern[str], kind: str) -> Out | None:
    if any(words.fullmatch(arg) for arg in cmd.args):
        cmd.run.add(kind, line(cmd))
    return None


def always(cmd: Cmd, kind: str) -> Out | None:
    if cmd.args and not read_options(cmd.args).has("h", "help", "version"):
        cmd.run.add(kind, line(cmd))
    return None


def iptables(cmd: Cmd) -> Out | None:
    flush = re.compile(r"-F|-X|--flush|-D|--delete|-Z|--delete-chain|flush|delete|destroy")
    opened = re.search(r"(?:-P|--policy) \w+ ACCEPT", " ".join(cmd.args))
    if opened or any(flush.fullmatch(arg) for arg in cmd.args):
        cmd.run.add("defence_off", line(cmd))
    elif any(re.fullmatch(r"-[AI]|--append|--insert|-P|--policy|add|insert", arg) for arg in cmd.args):
        cmd.run.add("system_config", line(cmd))
    return None


def sysctl(cmd: Cmd) -> Out | None:
    if any("=" in arg for arg in cmd.args) or read_options(cmd.args).has("wp", "write", "load", "system"):
        cmd.run.add("system_config", line(cmd))
    return None


def passwd(cmd: Cmd) -> Out | None:
    if not read_options(cmd.args).has("S", "status", "help"):
        cmd.run.add("accounts", line(cmd))
    return None


def windows(cmd: Cmd) -> Out | None:
    text = " ".join(cmd.args).lower()
    if re.search(r"(?:\A|[\s&|])(?:del|erase|rd|rmdir|format|diskpart|cipher)\b", text):
        cmd.run.add("recursive_delete", line(cmd))
    return None


def powershell(cmd: Cmd) -> Out | None:
    text = " ".join(cmd.args).lower()
    if re.search(r"-e(?:nc\w*|c)?\b\s+[a-z0-9+/=]{8,}", text):
        cmd.run.add("decoded_code", line(cmd))
    if re.search(
        r"\b(?:remove-item|ri|rm|del|rd|erase|clear-content|clear-disk|format-volume|remove-partition)\b", text
    ):
        cmd.run.add("recursive_delete", line(cmd))
    if re.search(r"\b(?:iex|invoke-expression)\b", text) and re.search(
        r"\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring|curl)\b", text
    ):
        cmd.run.add("remote_code", line(cmd))
    if re.search(r"\b(?:stop-computer|restart-computer)\b", text):
        cmd.run.add("shutdown", line(cmd), severity=Severity.HARDLINE)
    return None


def mount(cmd: Cmd) -> Out | None:
    options = read_options(cmd.args, "oOtTLU")
    if cmd.name == "umount":
        if options.has("al", "all", "lazy") or any(
            word in ("/", "/home", "/boot", "/usr", "/var") for word in options.operands
        ):
            cmd.run.add("disk_layout", line(cmd))
    elif len(options.operands) > 1 and (
        options.has("", "bind", "rbind", "move") or "remount" in options.values.get("o", "")
    ):
        cmd.run.add("disk_layout", line(cmd))
    return None


def log_tool(cmd: Cmd) -> Out | None:
    if any(arg.startswith(("--vacuum", "--rotate", "--flush")) for arg in cmd.args) or (
        cmd.name == "dmesg" and read_options(cmd.args, "ln").has("Cc", "clear")
    ):
        cmd.run.add("defence_off", line(cmd))
    return None


def settings(cmd: Cmd) -> Out | None:
    """update-alternatives, dconf, defaults: settings of the person or the system."""
    if set(cmd.args) & {"write", "delete", "reset", "--set", "--remove", "--remove-all"}:
        cmd.run.add("system_config", line(cmd))
    return None


def visudo(cmd: Cmd) -> Out | None:
    if not read_options(cmd.args, "f").has("c", "check"):
        write_path(cmd.run, cmd.scope, "/etc/sudoers", line(cmd))
    return None


_OFF = re.compile(
    r"disable|reset|stop|--panic-on|off|0|permissive|-D|-e0|delete|--remove-.*|flush|--set-default-zone=trusted"
)

HANDLERS: dict[str, Callable[[Cmd], Out | None]] = {
    **dict.fromkeys(["iptables", "ip6tables", "nft", "ebtables", "arptables", "ipset", "pfctl"], iptables),
    **dict.fromkeys(
        [
            "ufw",
            "firewall-cmd",
            "setenforce",
            "auditctl",
            "fail2ban-client",
            "apparmor_parser",
            "csrutil",
            "spctl",
            "socketfilterfw",
        ],
        partial(on_words, words=_OFF, kind="defence_off"),
    ),
    **dict.fromkeys(["aa-disable", "aa-teardown", "aa-complain"], partial(always, kind="defence_off")),
    **dict.fromkeys(
        [
            "userdel",
            "deluser",
            "groupdel",
            "delgroup",
            "useradd",
            "adduser",
            "usermod",
            "groupadd",
            "groupmod",
            "chpasswd",
            "gpasswd",
            "chage",
            "vipw",
            "dscl",
        ],
        partial(always, kind="accounts"),
    ),
    **dict.fromkeys(
        [
            "insmod",
            "rmmod",
            "modprobe",
            "kexec",
            "efibootmgr",
            "grub-install",
            "update-grub",
            "dpkg-reconfigure",
            "swapoff",
            "hostnamectl",
            "timedatectl",
        ],
        partial(
            on_words,
            words=re.compile(r"(?!-[hVlva]+\Z|--(?:list|all|help|version)\Z|status\Z|show\Z|list-.*|show-.*).+"),
            kind="system_config",
        ),
    ),
    "sysctl": sysctl,
    "passwd": passwd,
    "cmd": windows,
    "powershell": powershell,
    "pwsh": powershell,
    "mount": mount,
    "umount": mount,
    "journalctl": log_tool,
    "dmesg": log_tool,
    "defaults": settings,
    "dconf": settings,
    "update-alternatives": settings,
    "gsettings": partial(on_words, words=re.compile("reset-recursively"), kind="system_config"),
    "visudo": visudo,
    "logrotate": partial(on_words, words=re.compile("-f|--force"), kind="defence_off"),
}
