"""What skills are lent by other capabilities: who judges the commands in them, and which variables stay with us."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.config.sections.top import Section as Top
from hermes.config.settings import Settings
from hermes.extensions.skills.skill_desk import SkillServices
from hermes.extensions.skills.skill_scan import CommandEffect, ScanReaders

if TYPE_CHECKING:
    from hermes.tools.approval.effects_model import Analysis


def skill_services(settings: Settings) -> SkillServices:
    """For the skills of a home with these settings."""
    return SkillServices(readers=scan_readers, own_keys=lambda: keys_of_providers(settings))


def scan_readers() -> ScanReaders:
    """The gate's own reader of commands and scripts; it runs nothing and looks at no disk."""
    from hermes.tools.approval.analysis import View  # paid by whoever installs or writes a skill

    def command(text: str) -> Sequence[CommandEffect]:
        return _effects(View().command(text))

    def code(text: str) -> Sequence[CommandEffect]:
        return _effects(View().code(text))

    return ScanReaders(command, code, _orders)


def _orders(text: str) -> Sequence[tuple[int, str, str]]:
    from hermes.context.injection_scan import scan

    found = scan(text)
    is_hidden = found is not None and found.rule.startswith("U+")  # which the scan of skills tells better
    return [(found.line, found.rule, found.words)] if found is not None and not is_hidden else []


def keys_of_providers(settings: Settings) -> frozenset[str]:
    """The variables that hold keys of models' providers: the usual ones, and those that the configuration names."""
    from hermes.models.providers.catalogue import providers  # paid by the first skill that asks for a variable

    top = settings.of(Top)
    usual = {name for entry in providers().values() for name in entry.env}
    own = {each.key_env for each in (*top.providers.values(), *top.custom_providers)}
    return frozenset(usual | own | {each.key_env for each in top.fallback_providers})


def _effects(analysis: "Analysis") -> list[CommandEffect]:
    """What a person would be asked about, and which hosts are contacted."""
    from hermes.tools.approval.effects_model import Severity

    dangers = [
        CommandEffect(one.kind, one.key, one.severity is Severity.HARDLINE, tuple(one.hosts))
        for one in analysis.dangers
    ]
    hosts = tuple(host for host in analysis.hosts if host)
    return [*dangers, CommandEffect("network", "contacts a host", hosts=hosts)] if hosts else dangers
