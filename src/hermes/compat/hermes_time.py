"""`hermes_time`: the time in the person's zone."""

from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hermes.config.load import load_settings
from hermes.config.sections.top import Section


def get_timezone() -> tzinfo | None:
    """The zone of the setting `timezone`; None is that of the machine."""
    name = load_settings().of(Section).timezone
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None


def now() -> datetime:
    """The time now, in that zone."""
    zone = get_timezone()
    return datetime.now(zone) if zone is not None else datetime.now().astimezone()


__all__ = ["get_timezone", "now"]
