"""Disks written raw or partitioned, mounts, sudoers, and what the shells of Windows would do."""

import re

from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import classify, place, resolve, show, writes
from hermes.tools.approval.run_state import DARK, Command, CommandOutput, Handlers
from hermes.tools.approval.tables import word_list


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
    if cmd.name in word_list("system.lookers") or not word_list("system.looks").isdisjoint(
        arg.lower() for arg in cmd.args
    ):
        return
    for word in cmd.args:
        path = resolve(word.rpartition("=")[2], cmd.scope, cmd.run)
        if classify(path, cmd.run.places) == "disk":
            cmd.add("block_device", (show(path, cmd.run.places),), path_class="disk")


def windows(cmd: Command) -> CommandOutput | None:
    text = " ".join(cmd.args).lower()
    if re.search(r"(?:\A|[\s&|])(?:del|erase|rd|rmdir|format|diskpart|cipher)\b", text):
        cmd.add("recursive_delete")
    return None


def powershell(cmd: Command) -> CommandOutput | None:
    text = " ".join(cmd.args).lower()
    if re.search(r"-e(?:nc\w*|c)?\b\s+[a-z0-9+/=]{8,}", text):
        cmd.add("decoded_code")
    if re.search(
        r"\b(?:remove-item|ri|rm|del|rd|erase|clear-content|clear-disk|format-volume|remove-partition)\b", text
    ):
        cmd.add("recursive_delete")
    if re.search(r"\b(?:iex|invoke-expression)\b", text) and re.search(
        r"\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring|curl)\b", text
    ):
        cmd.add("remote_code")
    if re.search(r"\b(?:stop-computer|restart-computer)\b", text):
        cmd.add("shutdown", severity=Severity.HARDLINE)
    return None


def mount(cmd: Command) -> CommandOutput | None:
    options = read_options(cmd.args, "oOtTLU", frozenset({"options", "types"}))
    targets = [resolve(word, cmd.scope, cmd.run) for word in options.operands[-1:]]
    covers = [path for path in targets if not path.startswith(("/mnt", "/media", "/srv", "/run", "/Volumes"))]
    is_system = any(classify(path, cmd.run.places) in ("root", "top", "system") for path in covers)
    if cmd.name == "umount":
        changes = options.has("al", "all", "lazy") or is_system
    else:
        changes = options.has("", "bind", "rbind", "move") or "remount" in options.values.get("o", "") or is_system
    if (changes and options.operands) or options.has("a", "all"):
        cmd.add("disk_layout")
    return None


HANDLERS: Handlers = {
    "dd": dd,
    "gdd": dd,
    "cmd": windows,
    "powershell": powershell,
    "pwsh": powershell,
    "mount": mount,
    "umount": mount,
}
