"""The schedule of a home put together: its store, its time zone, and what orders for jobs are checked against."""

import re
from collections.abc import Callable
from datetime import tzinfo
from functools import partial

from hermes.config.sections.cron import Section
from hermes.config.sections.top import Section as Top
from hermes.config.settings import Settings
from hermes.context.injection_scan import scan
from hermes.errors import UserError
from hermes.schedule.grammar import zone_named, zone_of
from hermes.schedule.job_book import JobBook
from hermes.schedule.job_order import JobChecks
from hermes.schedule.ledger import ScheduleLedger
from hermes.state.schedule_rows import Job, ScheduleRows

_EMOJI = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_JOINED = re.compile(f"(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])")  # how an emoji is written, and no hiding place
_REACHES = re.compile(
    r"\b(?:authorized_keys|sudoers)\b|\brm\s+-(?:rf|fr|r\s+-f|f\s+-r)\s+/(?:\s|\*|\Z)"
    r"|\b(?:read|open|print|show|dump|send|cat)\b[^\n]{0,80}(?:(?<![\w.])\.env\b|credentials\b|\.netrc\b|\.pgpass\b)",
    re.IGNORECASE,
)


def job_book(settings: Settings, rows: ScheduleRows, now: Callable[[], float]) -> JobBook:
    """The jobs of a home."""
    zone = home_zone(settings)
    checks = JobChecks(
        home=settings.home,
        zone=zone,
        refuse_prompt=refuse_prompt,
        refuse_skill=partial(_refuse_skill, settings),
        refuse_toolset=partial(_refuse_toolset, settings),
        commands=tuple(settings.of(Section).commands),
    )
    return JobBook(schedule_ledger(settings, rows), checks, now)


def schedule_ledger(settings: Settings, rows: ScheduleRows, owner: str = "") -> ScheduleLedger:
    """The account of due moments of a home."""
    zone = home_zone(settings)

    def zone_of_job(job: Job) -> tzinfo:
        try:
            return zone_named(job.timezone) if job.timezone else zone
        except UserError:  # it is gone from this machine; the job runs all the same
            return zone

    return ScheduleLedger(rows, zone_of_job, owner)


def home_zone(settings: Settings) -> tzinfo:
    """The time zone that schedules are meant in."""
    return zone_of(settings.of(Top).timezone, settings.environ)


def refuse_prompt(text: str) -> None:
    """`UserError` for words that nobody should leave to a run with nobody there."""
    finding = scan(_JOINED.sub("", text), "anywhere")
    if finding is not None:
        raise UserError(f"Blocked: the prompt reads like an attempt to take control ({finding})")
    if (found := _REACHES.search(text)) is not None:
        words = " ".join(found[0].split())[:60]
        raise UserError(f"Blocked: the prompt reaches for credentials or does harm ({words!r})")


def _refuse_skill(settings: Settings, name: str) -> None:
    from hermes.extensions.skills.skill_book import SkillBook  # paid by who names one

    SkillBook(settings, "cron").find(name)


def _refuse_toolset(settings: Settings, name: str) -> None:
    from hermes.tools.registration.groups import custom_groups, table  # paid by who names one

    if name not in table().toolsets and name not in custom_groups(settings.mapping) and not name.startswith("mcp-"):
        raise UserError(f"there is no toolset {name!r}; see: hermes tools")
