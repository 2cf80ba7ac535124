"""Which sessions a command is about: the same options for exporting, hiding and deleting many at once."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes.errors import UserError
from hermes.host.session_select import SessionChoice

if TYPE_CHECKING:
    _Seconds = click.ParamType[float]
else:
    _Seconds = click.ParamType  # older releases of click take no type here

F = TypeVar("F", bound=Callable[..., Any])

_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw]?)")
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "": 86_400.0, "w": 604_800.0}


class Age(_Seconds):
    """`90` (days), `30m`, `12h`, `3d` or `2w`, as seconds."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = _AGE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no age; write 90 (days), 12h, 3d or 2w", param, ctx)
        return float(match[1]) * _UNITS_S[match[2]]


class Moment(_Seconds):
    """A day or a time of this machine, `2026-01-31` or `2026-01-31T15:00`, as seconds since the epoch."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return datetime.fromisoformat(str(value)).timestamp()
        except ValueError:
            self.fail(f"{value!r} is no time; write 2026-01-31 or 2026-01-31T15:00", param, ctx)


_AGE_OR = "90 (days), 12h, 3d, 2w"
_OPTIONS = (
    click.option("--source", metavar="TAG", help="From there: cli, cron, acp …"),
    click.option("--older-than", type=Age(), help=f"Ended longer ago: {_AGE_OR}."),
    click.option("--newer-than", type=Age(), help="Ended less long ago."),
    click.option("--before", type=Moment(), help="Ended before this day or time."),
    click.option("--after", type=Moment(), help="Ended after it."),
    click.option("--title", metavar="TEXT", help="With this in the title."),
    click.option("--end-reason", metavar="NAME", help="That ended so, such as cli_close."),
    click.option("--cwd", metavar="TEXT", help="With this in the folder it worked in."),
    click.option("--model", metavar="TEXT", help="With this in the model's name."),
    click.option("--provider", metavar="NAME", help="Served by this provider."),
    click.option("--user", metavar="ID", help="Of this user."),
    click.option("--chat-id", metavar="ID", help="Of this chat."),
    click.option("--branch", metavar="TEXT", help="With this in the git branch."),
    *(
        click.option(f"--{end}-{what}", type=click.FloatRange(min=0) if what == "cost" else click.IntRange(min=0))
        for what in ("messages", "tool-calls", "tokens", "cost")
        for end in ("min", "max")
    ),
)


def filter_options(command: F) -> F:
    """Add the options of a filter; `taken_filter` makes one of what they got."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def taken_filter(options: dict[str, Any]) -> SessionChoice:
    """The filter out of a command's options, which keep the others."""
    found = SessionChoice(**{name: options.pop(name) for name in SessionChoice.__struct_fields__})
    for what in ("messages", "tool_calls", "tokens", "cost"):
        least, most = getattr(found, f"min_{what}"), getattr(found, f"max_{what}")
        if least is not None and most is not None and least > most:
            raise UserError(f"--min-{what} is above --max-{what}, so nothing can match")
    return found
