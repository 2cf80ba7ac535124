"""Programs that format, partition or write raw devices."""

from hermes.tools.approval.command_text import words
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.paths import classify, place, resolve, show, writes
from hermes.tools.approval.run_state import DARK, Command, CommandOutput, Handlers


def dd(cmd: Command) -> CommandOutput:
    run = cmd.run
    given = dict(arg.split("=", 1) for arg in cmd.args if "=" in arg)
    target = given.get("of")
    if target is not None:
        path = resolve(target, cmd.scope, run)
        kind = classify(path, run.places)
        severity = Severity.HARDLINE if kind == "disk" else Severity.ASK
        if kind == "device":
            return DARK
        cmd.add("disk_copy", (show(path, run.places),), severity=severity, path_class=kind)
        if kind != "disk":
            writes(cmd, target)
    elif "if" in given and place(cmd, given["if"]) == "disk":
        cmd.add("disk_copy", path_class="disk")
    return DARK


def judge_device(cmd: Command) -> None:
    """A disk in the hands of a program that is not known for looking only."""
    if cmd.name in _LOOKERS or not _LOOKS.isdisjoint(arg.lower() for arg in cmd.args):
        return
    for word in cmd.args:
        path = resolve(word.rpartition("=")[2], cmd.scope, cmd.run)
        if classify(path, cmd.run.places) == "disk":
            cmd.add("block_device", (show(path, cmd.run.places),), path_class="disk")


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
HANDLERS: Handlers = dict.fromkeys(["dd", "gdd"], dd)
