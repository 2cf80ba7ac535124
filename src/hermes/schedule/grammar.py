"""From the words of a person or a model to a schedule: durations, `every`, cron expressions, dates. Pure."""

import os
import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from hermes.errors import UserError
from hermes.schedule.cron_expression import MACROS, cron_expression
from hermes.schedule.due_moments import LATEST
from hermes.state.schedule_rows import Schedule

LATE_S = 120.0  # a single moment may be this long past
MAX_SPAN_S = 10 * 365 * 86_400
FORMS = (
    "write a delay (30m, 2h, 1d), an interval (every 30m), five cron fields (0 9 * * mon-fri), @daily, "
    "or a date (2026-03-05T14:00)"
)
_UNITS = {
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
}
_DURATION = re.compile(r"(\d{1,9})\s*([a-z]+)", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def parse_schedule(text: str, now: float, zone: tzinfo) -> Schedule:
    """The schedule that `text` means; `UserError` says in one sentence why it means none."""
    words = " ".join(text.split())
    lower = words.lower()
    if not words:
        raise UserError(f"the schedule is empty; {FORMS}")
    if lower == "every" or lower.startswith("every "):
        seconds = _seconds(lower.removeprefix("every").strip(), words)
        return Schedule(kind="interval", at=now, seconds=seconds, display=f"every {_minutes(seconds)}")
    if _DURATION.fullmatch(lower):
        seconds = _seconds(lower, words)
        return Schedule(kind="once", at=now + seconds, display=f"once in {words}")
    if _DATE.match(words):
        return _dated(words, now, zone)
    if lower.startswith("@"):
        if lower not in MACROS:
            raise UserError(f"there is no schedule {words!r}; there are {', '.join(MACROS)}")
        return _cron(MACROS[lower], lower)
    if words[0] in "*0123456789" and (" " in words or "*" in words):
        return _cron(words, words)
    raise UserError(f"nobody can tell when {_short(words)!r} is; {FORMS}")


def parse_span(text: str) -> int:
    """The seconds of a duration such as `5m`; `UserError` when it is none."""
    return _seconds(" ".join(text.lower().split()), text)


def parse_time(text: str, now: float, zone: tzinfo) -> float:
    """A moment: a date, or a duration from now."""
    words = " ".join(text.split())
    if _DURATION.fullmatch(words.lower()):
        return now + _seconds(words.lower(), words)
    return _moment(words, zone)


def zone_named(name: str) -> tzinfo:
    """A time zone by its name; `UserError` when there is none."""
    try:
        return _zone(name)
    except (KeyError, ValueError, OSError) as error:
        raise UserError(f"there is no time zone {name!r}; write one such as Europe/Berlin") from error


def zone_of(configured: str, environ: Mapping[str, str]) -> tzinfo:
    """The zone of the settings, else that of the machine."""
    if configured:
        return zone_named(configured)
    for name in (environ.get("TZ", "").removeprefix(":"), _linked_zone(), "UTC"):
        if name:
            try:
                return _zone(name)
            except (KeyError, ValueError, OSError):
                continue
    return _zone("UTC")


def shown(at: float | None, zone: tzinfo) -> str | None:
    """A moment as ISO text with its offset."""
    return None if at is None else datetime.fromtimestamp(at, zone).isoformat(timespec="seconds")


@cache
def _zone(name: str) -> tzinfo:
    return ZoneInfo(name)


@cache
def _linked_zone() -> str:
    try:
        return os.path.realpath(Path("/etc/localtime")).partition("/zoneinfo/")[2]
    except OSError:
        return ""


def _cron(expr: str, display: str) -> Schedule:
    cron_expression(expr)  # refuses what it cannot read
    return Schedule(kind="cron", expr=expr, display=display)


def _seconds(text: str, whole: str) -> int:
    found = _DURATION.fullmatch(text)
    unit = _UNITS.get(found[2]) if found else None
    if found is None or unit is None:
        raise UserError(f"{_short(whole)!r} holds no duration; write a number and m, h or d, such as 30m")
    seconds = int(found[1]) * unit
    if not 0 < seconds <= MAX_SPAN_S:
        raise UserError(f"the duration in {_short(whole)!r} must be between a minute and ten years")
    return seconds


def _dated(words: str, now: float, zone: tzinfo) -> Schedule:
    at = _moment(words, zone)
    if at < now - LATE_S:
        raise UserError(f"{words} is in the past; a single run needs a moment to come")
    return Schedule(kind="once", at=at, display=f"once at {shown(at, zone)}")


def _moment(words: str, zone: tzinfo) -> float:
    try:
        when = datetime.fromisoformat(words.replace("Z", "+00:00") if words.endswith("Z") else words)
        at = (when if when.tzinfo is not None else _in_zone(when, zone)).timestamp()
    except (ValueError, OverflowError) as error:
        raise UserError(f"{_short(words)!r} is no date; write one such as 2026-03-05T14:00") from error
    if at >= LATEST:
        raise UserError(f"{words} is too far away; nothing is planned after the year 2199")
    return at


def _in_zone(when: datetime, zone: tzinfo) -> datetime:
    if when.year < 1971:
        raise ValueError("out of range")
    return when.replace(tzinfo=zone)


def _minutes(seconds: int) -> str:
    for unit, name in ((86_400, "d"), (3_600, "h")):
        if seconds % unit == 0:
            return f"{seconds // unit}{name}"
    return f"{seconds // 60}m"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
