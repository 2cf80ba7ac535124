"""Package managers: removing what the system needs to live; scripts of packages are not judged."""

import re

from hermes.tools.approval.command_text import words
from hermes.tools.approval.effects.interpreters import interpreter
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import resolve
from hermes.tools.approval.run_state import NOTHING, Command, CommandOutput, Handlers
from hermes.tools.approval.stream_flow import feed, read
from hermes.tools.approval.tables import word_list

_ESSENTIAL = re.compile(
    r"(?:lib)?(?:c6|c-bin|systemd.*|bash|dash|coreutils|util-linux|mount|login|passwd|sudo|apt|dpkg|rpm|dnf|yum|pacman|base-files"
    r"|base-passwd|base|init|init-system-helpers|sysvinit.*|openssh.*|ssh|openssl|grub.*|linux-(?:image|generic|headers|base).*|kernel.*"
    r"|linux|glibc.*|musl.*|filesystem|network-manager|networkmanager|netplan.*|ifupdown|iproute2|udev|gnupg|ca-certificates|ufw"
    r"|firewalld|auditd|apparmor.*|selinux.*|busybox|alpine-base|python3?|perl|perl-base|libc6|e2fsprogs|tar|gzip|findutils|grep|sed"
    r"|hostname|ncurses.*|zlib1g|pam.*|libpam.*|shadow|initramfs.*)[\d.]*(?:-(?:minimal|base|bin|common))?(?::\w+)?\Z|.*\*.*"
)


def manager(cmd: Command) -> CommandOutput | None:
    for arg in cmd.args:
        key, equals, value = arg.removeprefix("-o").partition("=")
        if equals and re.search(r"(?i)invoke|dir::bin|::options|proxy-auto|pager|editor", key):
            cmd.shell(value, NOTHING)
            cmd.run.add("inline_code", f"a package manager is told to run a program: {cmd.line}")
    if not set(cmd.args) & word_list("packages.removes"):
        if not word_list("packages.forces").isdisjoint(cmd.args) or any(
            arg.endswith("-") and _ESSENTIAL.match(arg[:-1]) for arg in cmd.args
        ):  # `install name-` removes
            cmd.add("packages")
        return None
    names = [word for word in read_options(cmd.args).operands if word not in word_list("packages.removes")]
    forced = not word_list("packages.forces").isdisjoint(cmd.args)
    if forced or any(_ESSENTIAL.match(name.replace("\ue02a", "*").lower()) for name in names):
        cmd.add("packages")
    return None


def publish(cmd: Command) -> CommandOutput | None:
    """npm and its like start programs, too."""
    operands = [arg for arg in cmd.args if not arg.startswith("-")]
    if operands[:1] in (["exec"], ["x"], ["dlx"]) and len(operands) > 1:
        start = cmd.args.index(operands[1])
        cmd.nested(cmd.args[start:], NOTHING)
    if operands[:1] == ["node"]:
        cmd.nested(cmd.args[cmd.args.index("node") :])
    if (operands[:1] == ["explore"] or operands[:2] == ["run", "env"]) and "--" in cmd.args:
        cmd.nested(cmd.args[cmd.args.index("--") + 1 :], NOTHING)
    for position, arg in enumerate(cmd.args):
        if arg in ("-c", "--call") and position + 1 < len(cmd.args) and operands[:1] == ["exec"]:
            cmd.shell(cmd.args[position + 1], NOTHING)
    if cmd.name == "bun" and {"-e", "--eval", "-p", "--print"} & set(cmd.args):
        return interpreter(cmd)
    return None


def cmake(cmd: Command) -> CommandOutput | None:
    """`cmake -E`: the file commands that it brings along."""
    if "-P" in cmd.args[:-1] and resolve(cmd.args[cmd.args.index("-P") + 1], cmd.scope, cmd.run) in cmd.run.files:
        cmd.run.add("decoded_code", f"run a file that the command itself wrote: {cmd.line}")
    if cmd.args[:1] == ["-E"] and len(cmd.args) > 1:
        verb = {"remove_directory": ["rm", "-r"], "remove": ["rm"], "copy": ["cp"], "rename": ["mv"]}
        cmd.nested([*verb.get(cmd.args[1], [cmd.args[1]]), *cmd.args[2:]])
    return None


_RECIPE = re.compile(r"(?m)\$\(shell ([^)]*)\)|^\t[@+-]*(.*)$|^[\w.%-]+:[^;\n]*;(.*)$")


def make(cmd: Command) -> CommandOutput | None:
    """make: `--eval` and a makefile that the command itself writes or pipes in carry commands."""
    options = read_options(cmd.args, "fEICjlo", frozenset({"eval", "file", "makefile", "directory"}))
    if any(arg.startswith(("SHELL=", ".SHELLFLAGS=")) for arg in cmd.args):
        cmd.run.add("inline_code", f"make is given another shell: {cmd.line}")
    texts = [options.value("E", "eval") or ""]
    name = options.value("f", "file", "makefile")
    made = (one for one in ("Makefile", "makefile") if resolve(one, cmd.scope, cmd.run) in cmd.run.files)
    if name is None:
        name = next(made, None)
    if name is not None:
        source = cmd.stdin if name in ("-", "/dev/stdin") else read(name, cmd.scope, cmd.run)
        texts.append(source.text or "")
        if source.text is None and source.labels & {"remote", "decoded"}:
            feed(cmd, source)
    only_prints = options.has("n", "dry-run", "just-print", "recon")
    for text in texts:
        for found in _RECIPE.finditer(text):
            runs = not only_prints or found[1] or "$(MAKE)" in found[0] or re.match(r"\t[@-]*\+", found[0])
            if runs:
                cmd.shell(next((part for part in found.groups() if part), ""), NOTHING)
    return None


HANDLERS: Handlers = {
    **dict.fromkeys(
        words(
            "apt apt-get aptitude dpkg dnf yum rpm zypper pacman yay paru apk snap pkg emerge xbps-remove opkg microdnf"
        ),
        manager,
    ),
    **dict.fromkeys(words("npm pnpm yarn bun"), publish),
    **dict.fromkeys(words("make gmake"), make),
    "cmake": cmake,
}
