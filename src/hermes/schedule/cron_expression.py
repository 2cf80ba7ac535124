"""Cron expressions of five fields, with names, ranges, lists and steps: which minutes of a calendar they mean. Pure."""

import calendar
from bisect import bisect_left, bisect_right
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from msgspec import Struct

from hermes.errors import UserError

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_DAYS = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_SEARCHED_DAYS = 366 * 9  # 29 February may be eight years away
_LAST_DAY = date(9998, 12, 31)


class CronExpression(Struct, frozen=True):
    """The minutes that an expression means, in wall-clock time. Days are those of the month or of the week, where both
    are limited.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_either: bool

    @property
    def times(self) -> int:
        """How many there are on a day that it means."""
        return len(self.minutes) * len(self.hours)

    def has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (in_month or in_week) if self.is_either else (in_month and in_week)

    def after(self, wall: datetime) -> datetime | None:
        """The first minute after this one; None when there is none for years."""
        day, from_time = wall.date(), (wall.hour, wall.minute)
        limit = min(_LAST_DAY, day + timedelta(days=_SEARCHED_DAYS)) if day < _LAST_DAY else day
        while day <= limit:
            if day.month not in self.months:
                day, from_time = day.replace(day=1) + timedelta(days=_month_days(day)), (-1, -1)
                continue
            if self.has(day) and (found := self._time_after(from_time)) is not None:
                return datetime.combine(day, found)
            day, from_time = day + timedelta(days=1), (-1, -1)
        return None

    def before(self, day: date, until: tuple[int, int] = (24, 0)) -> datetime | None:
        """The last minute of this day that comes before a time of it."""
        if not self.has(day):
            return None
        hour, minute = until
        place = bisect_left(self.hours, hour)
        if place < len(self.hours) and self.hours[place] == hour:
            at = bisect_left(self.minutes, minute)
            if at:
                return datetime.combine(day, time(hour, self.minutes[at - 1]))
        return datetime.combine(day, time(self.hours[place - 1], self.minutes[-1])) if place else None

    def count_until(self, until: tuple[int, int]) -> int:
        """How many minutes of a day that it means come before this time."""
        hour, minute = until
        place = bisect_left(self.hours, hour)
        whole = place * len(self.minutes)
        if place < len(self.hours) and self.hours[place] == hour:
            whole += bisect_left(self.minutes, minute)
        return whole

    def of_day(self, day: date) -> list[datetime]:
        """All its minutes of a day."""
        if not self.has(day):
            return []
        return [datetime.combine(day, time(hour, minute)) for hour in self.hours for minute in self.minutes]

    def _time_after(self, from_time: tuple[int, int]) -> time | None:
        hour, minute = from_time
        place = bisect_left(self.hours, hour)
        if place < len(self.hours) and self.hours[place] == hour:
            at = bisect_right(self.minutes, minute)
            if at < len(self.minutes):
                return time(hour, self.minutes[at])
            place += 1
        return time(self.hours[place], self.minutes[0]) if place < len(self.hours) else None


@lru_cache(maxsize=4096)
def cron_expression(text: str) -> CronExpression:
    """Read an expression; `UserError` says in one sentence what is wrong with it."""
    words = MACROS.get(text.strip().lower(), text).split()
    if len(words) != len(_FIELDS):
        raise UserError(
            "a cron expression has five fields (minute, hour, day of month, month, day of week); "
            f"{text!r} has {len(words)}"
        )
    minutes, hours, days, months, weekdays = (_field(word, *field) for word, field in zip(words, _FIELDS, strict=True))
    made = CronExpression(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(day % 7 for day in weekdays),
        is_either=not words[2].startswith("*") and not words[4].startswith("*"),
    )
    if made.after(datetime.combine(date(2023, 12, 31), time())) is None:
        raise UserError(f"the cron expression {text!r} names a day that never comes")
    return made


def _field(word: str, name: str, low: int, high: int, names: dict[str, int]) -> set[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, name, 1, high, {}) if slash else 1
        if span == "*":
            first, last = low, high
        else:
            begin, dash, end = span.partition("-")
            first = _number(begin, name, low, high, names)
            last = _number(end, name, low, high, names) if dash else (high if slash else first)
            if last == 0 and first > 0 and name == "day of week":
                last = 7  # fri-sun
        if first > last:
            raise UserError(f"the {name} {part!r} of the cron expression goes backwards")
        found.update(range(first, last + 1, step))
    return found


def _number(text: str, name: str, low: int, high: int, names: dict[str, int]) -> int:
    if (known := names.get(text.lower()[:3])) is not None and text.isalpha() and len(text) == 3:
        return known
    if not (text.isascii() and text.isdigit() and len(text) <= 3):
        raise UserError(f"the {name} of a cron expression cannot be {text!r}")
    if not low <= (number := int(text)) <= high:
        raise UserError(f"the {name} of a cron expression is between {low} and {high}, not {number}")
    return number


def _month_days(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]
