"""Programs whose own words tell what they do: a table of effect, programs and words."""

import re
from functools import cache
from typing import NamedTuple

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.run_state import Command
from hermes.tools.approval.tables import rows, word_list
from hermes.tools.approval.word_patterns import plain

_NOT_DONE = frozenset({"--help", "--dry-run", "--dryrun", "--dry-run=client", "--dry-run=server"})
# Verbs that destroy in whatever tool has them; `remove` and `uninstall` are what one does to a dependency.
_DESTROYS = re.compile(
    r"(?i)(?:[\w.-]*[:.-])?(?:delete|destroy|purge|terminate|wipe|erase|nuke|teardown|undeploy|obliterate|decommission"
    r"|factory-reset|drop)(?:[-_:]\w+)*"
)
_MAX_VERB = 3
_TRIES = 64  # of an expression, from each word over all that follow, in one step


class ToolRule(NamedTuple):
    kind: str
    severity: Severity
    pattern: re.Pattern[str]


@cache
def rules() -> dict[str, list[ToolRule]]:
    """What the table says, by program."""
    found: dict[str, list[ToolRule]] = {}
    for row in rows("tools.txt"):
        kind, programs, expression = row.split(": ", 2)
        severity = Severity.HARDLINE if kind.endswith("!") else Severity.ASK
        rule = ToolRule(kind.rstrip("!"), severity, re.compile(rf"(?:\A|(?<= ))(?:{expression})(?=[ =]|\Z)"))
        for program in programs.split():
            found.setdefault(program, []).append(rule)
    return found


def judge_words(cmd: Command) -> bool:
    """Record what the table says of the command; whether it prints what somebody keeps secret."""
    if _is_not_done(cmd.args):
        return False
    text = plain(" ".join("_" if " " in word or "\n" in word else word for word in cmd.args)).replace(UNKNOWN, "…")
    cmd.run.budget.spend(len(text) * len(cmd.args) // _TRIES)
    prints = False
    for kind, severity, pattern in rules()[cmd.name]:
        if pattern.search(text) is None:
            continue
        if kind == "prints":
            prints = True
        else:
            cmd.add(kind, severity=severity)
    verb = (
        next((arg for arg in cmd.args if arg[:1] != "-"), "")
        if cmd.name in word_list("tools.verb_first")
        else "".join(cmd.args[:1])
    )
    if UNKNOWN in verb:
        cmd.run.unknown(f"{cmd.name} is given a command that is only known when it runs")
    return prints


# A cloud's own command line: one of its leading words must be a verb that looks, makes or changes one thing.
CLOUDS = frozenset(words("aws gcloud az oci ibmcloud doctl linode-cli hcloud openstack scw exo vultr-cli"))
_CLOUD_VERBS = re.compile(
    r"(?:\w+:)?(?:batch-)?(?:describe|list|ls|get|show|view|head|lookup|search|filter|test|validate|estimate|query|scan|start|create|run|put"
    r"|invoke|deploy|update|tag|set|add|enable|login|logout|configure|config|cp|mv|sync|mb|presign|tail|wait|help|info|version|completion|print"
    r"|export|status|logs?|ssh|scp|connect|import|generate|init|auth|account|assume|decode|encrypt|decrypt|sign|verify|apply|build|submit"
    r"|upload|download|copy|install|up|use|current|check|diff|plan|read|write|send|publish|register|attach|associate|allocate|modify|restore"
    r"|resize|scale|url|token|open|cat|du|stat|restart|redeploy|promote|simulate|select|subscribe|receive|poll|count|monitor|watch|dump"
    r"|rename|move|tunnel|proxy|exec|activate|ps|pull|push|fetch|save|interactive|components|projects|regions|browse|admin|request|make)(?:-\S*)?"
)


def judge_cloud(cmd: Command) -> None:
    """A verb that is not on the list asks: a cloud has thousands, and half of them cannot be undone."""
    leading = [word for word in cmd.args if not word.startswith("-")][:6]
    if len(leading) > 1 and not _is_not_done(cmd.args) and not any(map(_CLOUD_VERBS.fullmatch, leading)):
        cmd.run.unknown(f"{cmd.name} is given a verb that nobody here knows ({' '.join(leading[:3])})")


def judge_verb(cmd: Command) -> None:
    """A tool without a rule: a verb among its first words may still say that it destroys."""
    if _is_not_done(cmd.args):
        return
    leading = [word for word in cmd.args if not word.startswith("-")][:_MAX_VERB]
    if any(_DESTROYS.fullmatch(word) for word in leading):
        cmd.add("infrastructure")


def _is_not_done(args: list[str]) -> bool:
    """Help, a rehearsal, or the version; `--version 1.2` names one to work on."""
    return not _NOT_DONE.isdisjoint(args) or args[-1:] == ["--version"]
