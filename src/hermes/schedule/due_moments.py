"""When a schedule is due, and how often it was between two times. Pure; moments are seconds since 1970.

A cron expression speaks of wall-clock time. A time that does not exist on the day the clocks go forward is due at the
first moment after the gap; one that exists twice is due the first time only. So two times of an expression can be one
moment, and every moment is due once.
"""

import math
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache

from msgspec import Struct

from hermes.schedule.cron_expression import CronExpression, cron_expression
from hermes.state.schedule_rows import Schedule

LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()  # nothing is planned beyond


class DueSpan(Struct, frozen=True):
    """The due moments of a stretch of time: the first, the last, and how many."""

    first: float
    last: float
    count: int


def next_due(schedule: Schedule, after: float, zone: tzinfo) -> float | None:
    """The first due moment after this time; None when there is none."""
    if schedule.kind == "once":
        return schedule.at if schedule.at > after else None
    if schedule.kind == "interval":
        steps = max(1, math.floor((after - schedule.at) / schedule.seconds) + 1)
        return _planned(schedule.at + steps * schedule.seconds)
    expression = cron_expression(schedule.expr)
    wall: datetime | None = _wall(after, zone)
    while wall is not None and (wall := expression.after(wall)) is not None:
        if (at := _moment(wall, zone)) > after:
            return _planned(at)
    return None


def due_between(schedule: Schedule, after: float, until: float, zone: tzinfo) -> DueSpan | None:
    """The due moments after `after` and not after `until`; None when there are none."""
    first = next_due(schedule, after, zone)
    if first is None or first > until:
        return None
    if schedule.kind == "once":
        return DueSpan(first, first, 1)
    if schedule.kind == "interval":
        more = math.floor((until - first) / schedule.seconds)
        return DueSpan(first, first + more * schedule.seconds, more + 1)
    return _cron_span(cron_expression(schedule.expr), first, until, zone)


def next_dues(schedule: Schedule, after: float, zone: tzinfo, count: int) -> list[float]:
    """The next due moments, at most so many."""
    found: list[float] = []
    at: float | None = after
    while len(found) < count and at is not None and (at := next_due(schedule, at, zone)) is not None:
        found.append(at)
    return found


def _cron_span(expression: CronExpression, first: float, until: float, zone: tzinfo) -> DueSpan:
    """Whole days are counted, not walked through; only the days around a change of the clocks are."""
    last, count = first, 0
    day, end = _wall(first, zone).date(), _wall(until, zone).date()
    while day <= end:
        if expression.has(day):
            if _is_plain(day, zone) and _midnight(day, zone) >= first and _midnight(day + _DAY, zone) <= until:
                count += expression.times
                wall = expression.before(day)
                last = _moment(wall, zone) if wall is not None else last
            else:
                moments = {at for wall in expression.of_day(day) if first <= (at := _moment(wall, zone)) <= until}
                moments.discard(last if count else -1.0)
                count += len(moments)
                last = max(moments, default=last)
        day += _DAY
    return DueSpan(first, last, count)


_DAY = timedelta(days=1)


def _planned(at: float) -> float | None:
    return at if at < LATEST else None


def _wall(at: float, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0)


@lru_cache(maxsize=4096)
def _midnight(day: date, zone: tzinfo) -> float:
    return _moment(datetime.combine(day, time()), zone)


@lru_cache(maxsize=4096)
def _is_plain(day: date, zone: tzinfo) -> bool:
    """Whether the clocks are left alone from a day before to a day after."""
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=zone)
    return (noon - _DAY).utcoffset() == noon.utcoffset() == (noon + _DAY).utcoffset()


def _moment(wall: datetime, zone: tzinfo) -> float:
    """When the clocks show this, the first time; the end of the gap when they never do."""
    early = wall.replace(tzinfo=zone, fold=0)
    at = early.timestamp()
    if datetime.fromtimestamp(at, zone).replace(tzinfo=None) == wall:
        return at
    before, after = wall.replace(tzinfo=zone, fold=1).timestamp(), at
    low, high = math.floor(before), math.ceil(after)  # the clocks are changed somewhere in between
    offset = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return float(high)
