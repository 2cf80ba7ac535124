"""Hosts that the person's own deny rules name: no grant, remote or index opens one of these."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from hermes.config.host_entry import LOOPBACK
from hermes.seams import Action

DeniesHost: TypeAlias = Callable[[str, int], bool]
_TOOLS = ("terminal", "execute_code")  # whose programs connect; a rule for one of them holds for what it starts


def denies_nothing(_host: str, _port: int) -> bool:
    """Where no rule denies anything."""
    return False


def denies_here(denies: DeniesHost, port: int) -> bool:
    """Whether a port of this machine itself is denied, however a rule writes the machine."""
    return any(denies(host, port) for host in LOOPBACK)


def denied_hosts(approvals: Mapping[str, Any]) -> DeniesHost:
    """Whether a deny rule of the section `approvals` names a host; `ConfigError` for a policy that is none."""
    if not approvals.get("deny") and not approvals.get("rules"):
        return denies_nothing
    from hermes.tools.approval.border import reach_analysis  # paid by who has rules
    from hermes.tools.approval.decide import denying_rule
    from hermes.tools.approval.grants import policy_of
    from hermes.tools.network.ask_host import NETWORK_TOOL, question
    from hermes.tools.network.wish import HostWish

    policy = policy_of({"approvals": approvals})
    # A rule that names a tool and no host is about its calls, and says nothing about where programs connect.
    named = [rule for rule in policy.rules if rule.hosts]

    def denies(host: str, port: int) -> bool:
        asked = question(HostWish(host=host, port=port), Action(kind="command", tool="terminal", text=""))
        analysis = reach_analysis(asked)
        if denying_rule(analysis, policy.deny, policy.rules, NETWORK_TOOL):
            return True
        return any(denying_rule(analysis, (), named, tool) for tool in _TOOLS)

    return denies
