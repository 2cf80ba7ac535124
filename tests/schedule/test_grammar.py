"""The words of a schedule, and when they are due: the table of the contract, and the days the clocks are changed."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from hermes.errors import UserError
from hermes.schedule.due_moments import due_between, next_due, next_dues
from hermes.schedule.grammar import parse_schedule, shown, zone_of

NOW = datetime(2026, 3, 2, 8, 15, tzinfo=UTC).timestamp()
BERLIN = ZoneInfo("Europe/Berlin")
ZONE = ZoneInfo("UTC")


@pytest.mark.parametrize(
    ("text", "kind", "due"),
    [
        ("30m", "once", "2026-03-02T08:45:00+00:00"),
        ("2h", "once", "2026-03-02T10:15:00+00:00"),
        ("1d", "once", "2026-03-03T08:15:00+00:00"),
        ("45 minutes", "once", "2026-03-02T09:00:00+00:00"),
        ("every 30m", "interval", "2026-03-02T08:45:00+00:00"),
        ("every 2 hours", "interval", "2026-03-02T10:15:00+00:00"),
        ("EVERY 1D", "interval", "2026-03-03T08:15:00+00:00"),
        ("0 9 * * *", "cron", "2026-03-02T09:00:00+00:00"),
        ("*/15 * * * *", "cron", "2026-03-02T08:30:00+00:00"),
        ("0 8 * * *", "cron", "2026-03-03T08:00:00+00:00"),
        ("0 9 * * 2-5", "cron", "2026-03-03T09:00:00+00:00"),
        ("30 4 1 * *", "cron", "2026-04-01T04:30:00+00:00"),
        ("0 0 29 2 *", "cron", "2028-02-29T00:00:00+00:00"),
        ("0 0 13 * 5", "cron", "2026-03-06T00:00:00+00:00"),
        ("2026-03-05T14:00", "once", "2026-03-05T14:00:00+00:00"),
        ("2026-03-05T14:00Z", "once", "2026-03-05T14:00:00+00:00"),
        ("2026-03-05T14:00+02:00", "once", "2026-03-05T12:00:00+00:00"),
        ("2026-03-05", "once", "2026-03-05T00:00:00+00:00"),
        ("0 9 * * mon-fri", "cron", "2026-03-02T09:00:00+00:00"),
        ("0 0 1 JAN *", "cron", "2027-01-01T00:00:00+00:00"),
        ("@daily", "cron", "2026-03-03T00:00:00+00:00"),
        ("0 0 * * fri-sun", "cron", "2026-03-06T00:00:00+00:00"),
        ("0 0 * * 7", "cron", "2026-03-08T00:00:00+00:00"),
        ("5/20 * * * *", "cron", "2026-03-02T08:25:00+00:00"),
    ],
)
def test_what_is_written_is_due_then(text: str, kind: str, due: str) -> None:
    schedule = parse_schedule(text, NOW, ZONE)
    assert schedule.kind == kind
    assert shown(next_due(schedule, NOW, ZONE), ZONE) == due


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "0 9 * *", "61 9 * * *", "every", "every soon", "5x", "-5m", "0 0 1 13 *", "1 2 3 4 5 6 7 8"),
        *(
            "every 0m",
            "0m",
            "every -1h",
            "2026-03-02T08:00",
            "9999-01-01",
            "2300-01-01",
            "2026-13-01",
            "2026-03-05T99:00",
        ),
        *(
            "0 0 31 2 *",
            "* * * * mon-",
            "*/0 * * * *",
            "5-1 * * * *",
            "@fortnightly",
            "every 99999999d",
            "٣0m",
            "0 9 * * mo",
        ),
        *("every 1m; rm -rf /", "\x00", "* * * * *\n* * * * * x", "1,,2 * * * *", "every 1.5h"),
    ],
)
def test_what_nobody_can_read_is_one_sentence(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_schedule(text, NOW, ZONE)
    assert "\n" not in str(caught.value).replace("\\n", "")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("expr", "after", "dues"),
    [
        ("0 9 * * *", "2026-03-28T12:00", ["2026-03-29T09:00:00+02:00", "2026-03-30T09:00:00+02:00"]),
        ("0 9 * * *", "2026-10-24T12:00", ["2026-10-25T09:00:00+01:00", "2026-10-26T09:00:00+01:00"]),
        ("30 2 * * *", "2026-03-28T12:00", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
        ("30 2 * * *", "2026-10-24T12:00", ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        ("*/20 2 * * *", "2026-03-29T00:00", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]),
        ("0 3 * * *", "2026-03-29T00:00", ["2026-03-29T03:00:00+02:00", "2026-03-30T03:00:00+02:00"]),
    ],
)
def test_the_clock_on_the_wall_counts_when_it_is_changed(expr: str, after: str, dues: list[str]) -> None:
    schedule = parse_schedule(expr, NOW, BERLIN)
    start = datetime.fromisoformat(after).replace(tzinfo=BERLIN).timestamp()
    assert [shown(at, BERLIN) for at in next_dues(schedule, start, BERLIN, 2)] == dues


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC"])
@pytest.mark.parametrize("expr", ["*/15 * * * *", "30 2 * * *", "17 1-3 * * *", "0 9 * * mon-fri", "0 0 * * *"])
def test_counting_moments_is_the_same_as_walking_through_them(zone: str, expr: str) -> None:
    place, schedule = ZoneInfo(zone), parse_schedule(expr, NOW, ZONE)
    for year, month in ((2011, 12), (2026, 3), (2026, 4), (2026, 10), (2026, 11)):
        start = datetime(year, month, 1, 13, 7, tzinfo=place).timestamp()
        until = start + 31 * 86_400
        walked, at = [], next_due(schedule, start, place)
        while at is not None and at <= until:
            walked.append(at)
            at = next_due(schedule, at, place)
        span = due_between(schedule, start, until, place)
        assert span is not None
        assert (span.first, span.last, span.count) == (walked[0], walked[-1], len(walked))


def test_the_zone_is_that_of_the_settings_else_of_the_machine() -> None:
    assert zone_of("Asia/Kathmandu", {"TZ": "Europe/Berlin"}) == ZoneInfo("Asia/Kathmandu")
    assert zone_of("", {"TZ": "Europe/Berlin"}) == BERLIN
    assert zone_of("", {"TZ": "nowhere"}) is not None
    with pytest.raises(UserError, match="no time zone 'Mars'"):
        zone_of("Mars", {})
