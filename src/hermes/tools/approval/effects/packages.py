"""Package managers: removing what the system needs to live; scripts of packages are not judged."""

import re
from collections.abc import Callable

from hermes.tools.approval.effects.words import line
from hermes.tools.approval.options import read_options
from hermes.tools.approval.state import NOTHING, Cmd, Out
from hermes.tools.approval.text import words

_ESSENTIAL = re.compile(
    r"(?:lib)?(?:c6|c-bin|systemd.*|bash|dash|coreutils|util-linux|mount|login|passwd|sudo|apt|dpkg|rpm|dnf|yum|pacman|base-files"
    r"|base-passwd|base|init|init-system-helpers|sysvinit.*|openssh.*|ssh|openssl|grub.*|linux-(?:image|generic|headers|base).*|kernel.*"
    r"|linux|glibc.*|musl.*|filesystem|network-manager|networkmanager|netplan.*|ifupdown|iproute2|udev|gnupg|ca-certificates|ufw"
    r"|firewalld|auditd|apparmor.*|selinux.*|busybox|alpine-base|python3?|perl|perl-base|libc6|e2fsprogs|tar|gzip|findutils|grep|sed"
    r"|hostname|ncurses.*|zlib1g|pam.*|libpam.*|shadow|initramfs.*)(?::\w+)?\Z|.*\*.*"
)
_REMOVES = frozenset(
    words(
        "remove purge erase autoremove uninstall -R -Rs -Rns -Rdd -Rsc -Rcns -Rscn -r -P -e del --remove "
        "--purge --erase rm -C"
    )
)


def manager(cmd: Cmd) -> Out | None:
    if not set(cmd.args) & _REMOVES:
        if any(arg in ("--allow-remove-essential", "--force-all") for arg in cmd.args):
            cmd.run.add("packages", line(cmd))
        return None
    names = [word for word in read_options(cmd.args).operands if word not in _REMOVES]
    forced = any(
        flag in cmd.args
        for flag in (
            "--allow-remove-essential",
            "--force-all",
            "--nodeps",
            "-Rdd",
            "--force-depends",
            "--force-remove-essential",
        )
    )
    if forced or any(_ESSENTIAL.match(name.replace("\ue02a", "*").lower()) for name in names):
        cmd.run.add("packages", line(cmd))
    return None


def python_packages(cmd: Cmd) -> Out | None:
    """pip: removing packages from a file of names at once is asked about; a git or local install is not."""
    if "uninstall" in cmd.args and read_options(cmd.args, "r").has("", "break-system-packages"):
        cmd.run.add("packages", line(cmd))
    return None


def publish(cmd: Cmd) -> Out | None:
    """npm, cargo, gem: what cannot be undone in public."""
    operands = [arg for arg in cmd.args if not arg.startswith("-")]
    if operands[:1] in (["unpublish"], ["yank"], ["deprecate"]):
        cmd.run.add("infrastructure", line(cmd))
    if operands[:1] in (["exec"], ["x"], ["dlx"]) and len(operands) > 1:
        start = cmd.args.index(operands[1])
        cmd.nested(cmd.args[start:], NOTHING)
    for position, arg in enumerate(cmd.args):
        if arg in ("-c", "--call") and position + 1 < len(cmd.args) and operands[:1] == ["exec"]:
            cmd.shell(cmd.args[position + 1], NOTHING)
    return None


def make(cmd: Cmd) -> Out | None:
    """make: `--eval`, `SHELL=` and a makefile from standard input carry commands."""
    for position, arg in enumerate(cmd.args):
        text = (
            cmd.args[position + 1]
            if arg in ("--eval", "-E") and position + 1 < len(cmd.args)
            else arg.partition("--eval=")[2]
        )
        for script in re.findall(r"\$\(shell ([^)]*)\)|(?:\A|\n)[\w.-]+:[^;\n]*;(.*)|\n\t@?(.*)", text):
            cmd.shell(next((part for part in script if part), ""), NOTHING)
    if {"-", "/dev/stdin"} & set(cmd.args) and cmd.stdin.text:
        for script in re.findall(r"(?m)^\t@?-?(.*)$|^[\w.-]+:[^;\n]*;(.*)$", cmd.stdin.text):
            cmd.shell(next((part for part in script if part), ""), NOTHING)
    return None


HANDLERS: dict[str, Callable[[Cmd], Out | None]] = {
    **dict.fromkeys(
        [
            "apt",
            "apt-get",
            "aptitude",
            "dpkg",
            "dnf",
            "yum",
            "rpm",
            "zypper",
            "pacman",
            "yay",
            "paru",
            "apk",
            "snap",
            "pkg",
            "emerge",
            "xbps-remove",
            "opkg",
            "microdnf",
        ],
        manager,
    ),
    "pip": python_packages,
    "npm": publish,
    "cargo": publish,
    "gem": publish,
    "pnpm": publish,
    "yarn": publish,
    "bun": publish,
    "make": make,
    "gmake": make,
}
