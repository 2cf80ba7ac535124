"""Decide: analysis, policy and grants in, one verdict out. Pure; asking and recording happen elsewhere."""

from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Literal

from msgspec import Struct

from hermes.config.sections.terminal import CONTAINERS
from hermes.tools.approval.border import BORDER_KINDS, NOT_MOVED, BorderView
from hermes.tools.approval.command_text import MAX_BYTES
from hermes.tools.approval.effects_model import Analysis, Effect, Severity, SimpleCommand
from hermes.tools.approval.patterns import search
from hermes.tools.approval.policy import (
    Grant,
    Policy,
    PolicyRule,
    allowlist_entry,
    covers_place,
    effects_within,
    path_class,
    rule_matches,
    words_match,
)

REFUSED = (
    "This was not allowed. Reach the goal another way, or tell the user what you need; "
    "do not try it again in other words."
)
"""What the model reads when an action is denied: never how the rule could be lifted."""


def for_person(reason: str) -> str:
    """The reason of a decision without what only the model is told."""
    for told in (f": {REFUSED[0].lower()}{REFUSED[1:]}", f". {REFUSED}"):
        reason = reason.replace(told, "")
    return reason.replace(REFUSED, "not allowed")


_NEVER_BROAD = frozenset(
    {
        *("unknown", "intricate", "unknown_program", "inline_code", "decoded_code", "remote_code"),
        *("own_files", "own_runtime"),
    }
)


class Context(Struct, frozen=True, kw_only=True):
    """Where the action comes from and runs."""

    tool: str = "terminal"
    backend: str = "local"
    has_host_mounts: bool = False
    session_id: str = ""
    task_id: str = ""
    binding: str = ""  # see `policy.binding`
    is_bypassed: bool = False  # a person switched asking off for this session
    border: BorderView | None = None  # what the session's programs are held by


class Verdict(Struct, frozen=True, kw_only=True):
    """The decision. `effects` are those that led to it; `scopes` are the kinds of yes that may be offered."""

    outcome: Literal["allow", "ask", "deny"]
    reason: str
    rule: str = ""
    effects: tuple[Effect, ...] = ()
    keys: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    is_hardline: bool = False
    outside: bool = False  # it is to run outside the border
    read_only: bool = False  # it may change nothing


def decide(analysis: Analysis, policy: Policy, grants: Sequence[Grant], context: Context) -> Verdict:
    """Allow, ask or deny. Deny always wins; the hardline floor holds in every mode; unknown parts ask."""
    in_container = context.backend in CONTAINERS and not context.has_host_mounts
    blocked = _hardline(analysis)
    if blocked and not in_container:
        return Verdict(
            outcome="deny",
            reason=f"BLOCKED (hardline): {blocked}",
            rule="hardline",
            effects=analysis.dangers,
            is_hardline=True,
        )
    denied = _denied(analysis, policy, context)
    if denied is not None:
        return denied
    if in_container and policy.containers.inside == "allow":
        return Verdict(outcome="allow", reason="inside a container without host mounts", rule="containers.inside")
    if is_judged(analysis.effects) and (policy.mode == "off" or context.is_bypassed):
        return _unasked(analysis.dangers, policy, grants, context)
    asked = next(
        (rule for rule in policy.rules if rule.action == "ask" and rule_matches(rule, analysis, tool=context.tool)),
        None,
    )
    sent_out = asked is None and _sent_outside(analysis, policy, context)
    if sent_out:
        return Verdict(
            outcome="allow", reason="a rule sends it outside", rule=sent_out, effects=analysis.effects, outside=True
        )
    found = _dangers(analysis)
    dangers = tuple(effect for effect in found if context.border is None or not context.border.holds(effect))
    if not dangers and asked is None:
        if found:
            return Verdict(outcome="allow", reason="the border holds what it could do", rule="border", effects=found)
        return Verdict(outcome="allow", reason="no dangerous effect", rule="effects", effects=analysis.effects)
    covered = asked is None and _allowed_by_rules(analysis, dangers, policy, context)
    if covered:
        return Verdict(outcome="allow", reason="every part is allowed", rule=covered, effects=analysis.effects)
    return _with_grants(dangers, asked, policy, grants, context)


def _unasked(dangers: tuple[Effect, ...], policy: Policy, grants: Sequence[Grant], context: Context) -> Verdict:
    """With asking switched off: what the reader sees is let pass, but nothing moves the border without a yes."""
    border = context.border
    moved = (
        [effect for effect in dangers if effect.kind in BORDER_KINDS] if border is not None and border.stands else []
    )
    left = tuple(effect for effect in moved if not _is_granted(effect, policy, grants, context))
    if left and not any(is_exact(grant, context) for grant in grants):
        keys = "; ".join(dict.fromkeys(effect.key for effect in left))
        return Verdict(outcome="deny", reason=f"{keys}: {NOT_MOVED}", rule="border", effects=left)
    return Verdict(outcome="allow", reason="asking is switched off", rule="mode", effects=dangers)


def is_judged(effects: Sequence[Effect]) -> bool:
    """Whether the judgement came to an end. What did not may be on the floor: asking cannot be switched off for it."""
    return all(effect.kind != "intricate" for effect in effects)


def _hardline(analysis: Analysis) -> str | None:
    dangers = analysis.dangers
    if dangers and dangers[0].severity is Severity.HARDLINE:
        return dangers[0].key
    return search(analysis.command, is_hard=True)


def _dangers(analysis: Analysis) -> tuple[Effect, ...]:
    if analysis.dangers:
        return analysis.dangers
    key = search(analysis.command) if len(analysis.command) <= MAX_BYTES else None
    return (Effect("unknown", Severity.ASK, f"looks like: {key}"),) if key else ()


def _denied(analysis: Analysis, policy: Policy, context: Context) -> Verdict | None:
    label = denying_rule(analysis, policy.deny, policy.rules, context.tool)
    if not label:
        return None
    return Verdict(outcome="deny", reason="a deny rule matches", rule=label, effects=analysis.dangers)


def denying_rule(analysis: Analysis, globs: Sequence[str], rules: Sequence[PolicyRule], tool: str) -> str:
    """The name of the first rule that denies it, or "" where none does."""
    for glob in globs:
        if fnmatch(analysis.normalised.lower(), glob.lower()):
            return f"deny {glob}"
    found = (rule for rule in rules if rule.action == "deny" and rule_matches(rule, analysis, tool=tool))
    return next((rule.label for rule in found), "")


def _sent_outside(analysis: Analysis, policy: Policy, context: Context) -> str:
    is_border = context.border is not None and context.border.stands
    return rules_outside(analysis, policy, context.tool) if is_border else ""


def rules_outside(analysis: Analysis, policy: Policy, tool: str) -> str:
    """The rules that send every part of a command outside, or "" when one stays. What cannot be read stays."""
    if analysis.unknown or not analysis.commands:
        return ""
    if any(">" in effect.detail and effect.paths for effect in analysis.effects):
        return ""  # the rule names a program; what the shell writes beside it would be written outside, too
    if analysis.assigns:
        return ""  # PATH, LD_PRELOAD and their like lead to other programs, which commands inside may have made
    rules = [rule for rule in policy.rules if rule.outside and fnmatch(tool, rule.tool)]
    used: list[str] = []
    for command in analysis.commands:
        rule = next((rule for rule in rules if _rule_sends(rule, command, analysis)), None)
        if rule is None:
            return ""
        used.append(rule.label)
    return ", ".join(dict.fromkeys(used))


def _rule_sends(rule: PolicyRule, command: SimpleCommand, analysis: Analysis) -> bool:
    """`sudo apt *` sends what sudo starts along with it."""
    if _is_named(rule, command):
        return effects_within(rule, analysis.effects)
    return (
        bool(command.via)
        and "/" not in command.argv[0]
        and any(
            _is_named(rule, outer) and outer.argv[-len(command.argv) :] == command.argv
            for outer in analysis.commands
            if outer is not command
        )
    )


def _is_named(rule: PolicyRule, command: SimpleCommand) -> bool:
    """Whether a rule means this very program: one of that name in some folder may be anybody's."""
    program, _, rest = rule.command.partition(" ")
    if "/" not in program:
        return "/" not in command.argv[0] and words_match(rule.command, command)
    is_it = command.argv[0] == program
    return is_it and words_match(f"{program.rsplit('/', 1)[-1]} {rest}".strip(), command)


def _allowed_by_rules(analysis: Analysis, dangers: Sequence[Effect], policy: Policy, context: Context) -> str:
    """The rules that together cover every dangerous part, or "" when one is left over."""
    if analysis.unknown or not analysis.commands:
        return ""
    rules = [rule for rule in policy.rules if rule.action == "allow" and fnmatch(context.tool, rule.tool)]
    used: list[str] = []
    for effect in dangers:
        if not 0 <= effect.source < len(analysis.commands):
            return ""
        command = analysis.commands[effect.source]
        rule = next((rule for rule in rules if _rule_covers(rule, command, effect)), None)
        if rule is None:
            return _allowlisted(analysis, policy)
        used.append(rule.label)
    return ", ".join(dict.fromkeys(used))


def _rule_covers(rule: PolicyRule, command: SimpleCommand, effect: Effect) -> bool:
    return (not rule.command or words_match(rule.command, command)) and effects_within(rule, [effect])


def _allowlisted(analysis: Analysis, policy: Policy) -> str:
    if len(analysis.commands) != 1:
        return ""
    command = analysis.normalised.strip()
    return next((f"command_allowlist {entry}" for entry in policy.allowlist if fnmatch(command, entry)), "")


def _with_grants(
    dangers: tuple[Effect, ...], asked: PolicyRule | None, policy: Policy, grants: Sequence[Grant], context: Context
) -> Verdict:
    exact = any(is_exact(grant, context) for grant in grants)
    if exact:
        return Verdict(outcome="allow", reason="this was approved as shown", rule="grant", effects=dangers)
    left = tuple(effect for effect in dangers if not _is_granted(effect, policy, grants, context))
    if not left and asked is None:
        return Verdict(outcome="allow", reason="this kind of effect was approved", rule="grant", effects=dangers)
    scopes = (
        ("once", "task")
        if any(effect.kind in _NEVER_BROAD for effect in left) or asked
        else ("once", "task", "session", "always")
    )
    keys = tuple(dict.fromkeys(effect.key for effect in left))
    reason = "; ".join(keys) or (asked.label if asked else "")
    return Verdict(
        outcome="ask", reason=reason, rule=asked.label if asked else "effects", effects=left, keys=keys, scopes=scopes
    )


def is_exact(grant: Grant, context: Context) -> bool:
    """Whether the grant is for exactly this: the same text, place and scripts, in the same task."""
    if not context.binding or grant.binding != context.binding:
        return False
    if grant.scope == "once":
        return True
    return grant.scope == "task" and grant.task_id == context.task_id


def _is_granted(effect: Effect, policy: Policy, grants: Sequence[Grant], context: Context) -> bool:
    if effect.severity is Severity.HARDLINE or effect.kind in _NEVER_BROAD:
        return False
    place = path_class(effect)
    if effect.key in policy.allowlist or allowlist_entry(effect.key, place) in policy.allowlist:
        return True
    allowed = (entry.partition(" @ ") for entry in policy.allowlist)
    if any(key == effect.key and granted and covers_place(granted, place) for key, _, granted in allowed):
        return True
    return any(
        grant.key == effect.key
        and covers_place(grant.path_class, place)
        and (grant.scope == "always" or (grant.scope == "session" and grant.session_id == context.session_id))
        for grant in grants
    )
