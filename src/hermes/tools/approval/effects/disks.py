"""Programs that format, partition or write raw devices."""

from collections.abc import Callable
from functools import partial

from hermes.tools.approval.effects.words import line
from hermes.tools.approval.model import Severity
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import classify, resolve, show, write_path
from hermes.tools.approval.state import DARK, NOTHING, Cmd, Out
from hermes.tools.approval.text import words

_HELP = frozenset({"--help", "-h", "--version", "-V", "help"})


def mkfs(cmd: Cmd) -> Out:
    if cmd.args and not _HELP & set(cmd.args):
        cmd.run.add("format", line(cmd), severity=Severity.HARDLINE, path_class="disk")
    return NOTHING


def dd(cmd: Cmd) -> Out:
    run = cmd.run
    given = dict(arg.split("=", 1) for arg in cmd.args if "=" in arg)
    target = given.get("of")
    if target is not None:
        path = resolve(target, cmd.scope, run)
        kind = classify(path, run.places)
        severity = Severity.HARDLINE if kind == "disk" else Severity.ASK
        if kind == "device":
            return DARK
        run.add("disk_copy", line(cmd), (show(path, run.places),), severity=severity, path_class=kind)
        if kind != "disk":
            write_path(run, cmd.scope, target, line(cmd))
    elif "if" in given and classify(resolve(given["if"], cmd.scope, run), run.places) == "disk":
        run.add("disk_copy", line(cmd), path_class="disk")
    return DARK


def layout(cmd: Cmd, reads: frozenset[str]) -> Out | None:
    """Partition tables, volumes, RAID, encryption: anything but looking asks."""
    asked = {arg.lstrip("-") for arg in cmd.args}
    if not cmd.args or _HELP & set(cmd.args) or asked & reads:
        return None
    cmd.run.add("disk_layout", line(cmd), path_class="disk")
    return None


def wipe(cmd: Cmd) -> Out | None:
    options = read_options(cmd.args, "oltp")
    if cmd.name == "wipefs" and not options.has("aof", "all", "offset", "force"):
        return None
    if options.operands and not options.has("hVn", "help", "version", "no-act"):
        cmd.run.add("disk_layout", line(cmd), path_class="disk")
    return None


def copy_stream(cmd: Cmd) -> Out | None:
    """pv, ddrescue, dcfldd and friends: the last operand may be a device."""
    given = dict(arg.split("=", 1) for arg in cmd.args if "=" in arg)
    operands = [given["of"]] if "of" in given else read_options(cmd.args).operands[1:2]
    for word in operands:
        write_path(cmd.run, cmd.scope, word, line(cmd))
    if cmd.name != "pv":
        cmd.run.add("disk_copy", line(cmd))
    return None


def judge_device(cmd: Cmd) -> None:
    """A disk in the hands of a program that is not known for looking only."""
    if cmd.name in _LOOKERS or not _LOOKS.isdisjoint(arg.lower() for arg in cmd.args):
        return
    for word in cmd.args:
        path = resolve(word.rpartition("=")[2], cmd.scope, cmd.run)
        if classify(path, cmd.run.places) == "disk":
            cmd.run.add("block_device", line(cmd), (show(path, cmd.run.places),), path_class="disk")


def image(cmd: Cmd) -> Out | None:
    """qemu-img: what it converts to or makes."""
    options = read_options(cmd.args, "fOoSst")
    for word in cmd.args:
        if word.startswith("of="):
            write_path(cmd.run, cmd.scope, word[3:], line(cmd))
    if options.operands[:1] in (["convert"], ["create"]) and len(options.operands) > 2:
        write_path(cmd.run, cmd.scope, options.operands[-1], line(cmd))
    return None


_LOOKERS = frozenset(
    words(
        "ls ll stat file lsblk blkid findmnt df du udevadm dumpe2fs smartctl iostat lsof fuser readlink realpath "
        "test [ [[ hexdump od xxd strings cmp sha256sum md5sum sha1sum cksum grep echo eject partprobe e2label "
        "xfs_info vmstat docker podman sg_inq lsscsi hwinfo lvs pvs vgs lvdisplay pvdisplay vgdisplay getfacl"
    )
)
_LOOKS = frozenset(
    words(
        "status list print detail --detail -d --examine -e --query -q --scan info dump show isluks luksdump luksopen "
        "open close luksclose smart-log id-ctrl id-ns get --getsize64 --getss --getsz --report -i -t -tt -l -n --help "
        "-h --version filesystem history iostat"
    )
)
_READS = frozenset({"l", "list", "print", "p", "s", "dump", "d", "i", "info", "J", "x", "show-size", "version", "h"})
HANDLERS: dict[str, Callable[[Cmd], Out | None]] = {
    **dict.fromkeys(["mkfs", "mke2fs", "mkswap", "mkdosfs", "mkntfs", "format.com", "mformat"], mkfs),
    "dd": dd,
    "gdd": dd,
    "dcfldd": copy_stream,
    "ddrescue": copy_stream,
    "pv": copy_stream,
    **dict.fromkeys(["fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "cgdisk"], partial(layout, reads=_READS)),
    "qemu-img": image,
    **dict.fromkeys(["wipefs", "blkdiscard"], wipe),
}
