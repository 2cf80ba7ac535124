"""What a session's border means for questions: nobody is asked about what the machine's kernel does not let happen.

Pure, over the confinement and what the reader found. An effect that has to be asked about is held when the border makes
it impossible; what the border cannot rule out is asked about as ever.
"""

import os
import posixpath
from typing import NamedTuple

from hermes.confinement.deciding_rule import deciding_rule
from hermes.confinement.policy import Confinement, is_below
from hermes.seams import Action
from hermes.tools.approval.effects_model import Analysis, Effect, Severity

_LEAVING = frozenset({"sudo", "doas", "pkexec"})
SUDO_INSIDE = "sudo never works inside the border; a yes runs this command outside it"
# Held when every path that they touch is out of reach.
_BY_PATH = frozenset(
    {
        *("recursive_delete", "delete_outside", "mass_delete", "xargs_delete", "find_delete", "destroy_data"),
        *("move_away", "sync_delete", "system_config", "system_delete", "user_files", "cron_write", "disk_copy"),
        *("project_env", "open_permissions", "world_writable", "chown_root"),
    }
)
_OF_MODES = frozenset({"open_permissions", "world_writable", "chown_root"})  # level *files* has no rule for modes
# Of the machine: no device, no other process, no service manager and no privilege is in reach inside.
_OF_MACHINE = frozenset(
    {
        *("format", "block_device", "disk_layout", "service_control", "mass_kill", "force_kill", "self_kill"),
        *("own_runtime", "accounts", "packages", "container_stop", "cron_write", "defence_off"),
    }
)
_BY_SOCKET = frozenset({"service_control", "container_stop"})
# What the reader cannot follow does inside what a script does there: nothing beyond the border.
_OF_CODE = frozenset({"inline_code", "unknown", "unknown_program", "decoded_code", "chmod_run"})
_DELETES = frozenset({"recursive_delete", "delete_outside", "mass_delete", "xargs_delete", "find_delete"})


# A yes to these moves the border itself.
BORDER_KINDS = frozenset({"write_outside", "runs_later", "reach_host", "reach_local"})
NOT_MOVED = "asking is switched off, and the border is not moved without a yes"


class BorderView(NamedTuple):
    """The border as the gate sees it, and the folders by which the reader shortens paths."""

    confinement: Confinement
    home: str
    workspace: str

    @property
    def stands(self) -> bool:
        """Whether anything enforces it."""
        return self.confinement.level != "none"

    def holds(self, effect: Effect) -> bool:
        """Whether the border makes `effect` impossible."""
        level = self.confinement.level
        if not self.stands or effect.severity is not Severity.ASK:
            return False
        if effect.kind in _OF_CODE:
            return True
        if effect.kind in _OF_MACHINE and (level == "full" or effect.kind in _BY_SOCKET):
            has_sockets = any(rule.access != "hidden" for rule in self.confinement.of_kind("socket"))
            return not (has_sockets and effect.kind in _BY_SOCKET)
        if effect.kind not in _BY_PATH or (level == "files" and effect.kind in _OF_MODES):
            return False
        return bool(effect.paths) and all(
            self._is_out_of_reach(path) or self._is_no_loss(effect, path) for path in effect.paths
        )

    def _is_no_loss(self, effect: Effect, shown: str) -> bool:
        """Whether what is lost is the session's own: in its private temporary folder, or not there before."""
        path = self.absolute(shown)
        rule = self.confinement.rule_for(path) if path is not None else None
        if path is None or rule is None or rule.access != "write" or path == rule.path:
            return False
        if effect.kind == "disk_copy":  # into a file, as any other program writes one
            return True
        return effect.kind in _DELETES and (
            (rule.kind == "temp" and self.confinement.level == "full") or not os.path.lexists(path)
        )

    def _is_out_of_reach(self, shown: str) -> bool:
        path = self.absolute(shown)
        if path is None or self.confinement.may_write(path):
            return False
        # What lies around a writable folder cannot be removed, but the folder can be emptied on the way.
        return not any(is_below(root, path) for root in self.confinement.writable)

    def absolute(self, shown: str) -> str | None:
        """The path that a question shows as `shown`; None where part of it is not known."""
        if "…" in shown or any(mark in shown for mark in "*?["):
            return None
        if shown == "~" or shown.startswith("~/"):
            shown = self.home + shown[1:]
        return posixpath.normpath(posixpath.join(self.workspace, shown))


def leaves_border(analysis: Analysis) -> bool:
    """Whether a part of the command needs a privilege that nothing inside can have."""
    return any(command.argv[0].rsplit("/", 1)[-1] in _LEAVING for command in analysis.commands if command.argv)


def reach_analysis(action: Action) -> Analysis:
    """What has to be asked when a program of the session wants a host that nobody has granted."""
    host = str(action.details.get("host", ""))
    is_local = action.details["reach"] == "local"
    command = str(action.details.get("command", ""))
    why = f"{action.details.get('why', '')}{f', in: {command}' if command else ''}"
    place = action.text if is_local else host
    kind = "reach_local" if is_local else "reach_host"
    effect = Effect(kind, Severity.ASK, why, hosts=(action.text,), path_class=f"host:{place}")
    return Analysis(command="", normalised=action.text, commands=(), effects=(effect,), unknown=())


def write_effect(path: str, confinement: Confinement) -> Effect | None:
    """What has to be asked when a file tool writes a real path: the same as for a command. None when it may."""
    rule = deciding_rule(confinement, path)
    if rule is not None and rule.access == "write":
        return None
    if rule is not None and rule.kind in ("self-running", "protected", "git-config"):
        return Effect("runs_later", Severity.ASK, f"{rule.why}: {path}", (path,), path_class="border")
    return Effect("write_outside", Severity.ASK, f"write {path}", (path,), path_class="border")
