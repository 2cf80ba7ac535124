"""Mounts, sudoers, and what the shells of Windows would do."""

import re

from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import classify, resolve
from hermes.tools.approval.run_state import Command, CommandOutput, Handlers


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
    "cmd": windows,
    "powershell": powershell,
    "pwsh": powershell,
    "mount": mount,
    "umount": mount,
}
