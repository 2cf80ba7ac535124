"""Which sessions a command is about: the same options for exporting, hiding and deleting many at once."""

import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from hermes.errors import UserError

if TYPE_CHECKING:
    from hermes.state import SessionDB

    _Seconds = click.ParamType[float]
else:
    _Seconds = click.ParamType  # older releases of click take no type here

F = TypeVar("F", bound=Callable[..., Any])
Row = Mapping[str, Any]

_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw]?)")
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "": 86_400.0, "w": 604_800.0}
_COUNTS = {"messages": "message_count", "tool_calls": "tool_call_count"}


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


class Filter(Struct, frozen=True, kw_only=True):
    """What a session must be like; whatever is None does not matter."""

    source: str | None = None
    older_than: float | None = None
    newer_than: float | None = None
    before: float | None = None
    after: float | None = None
    title: str | None = None
    end_reason: str | None = None
    cwd: str | None = None
    model: str | None = None
    provider: str | None = None
    user: str | None = None
    chat_id: str | None = None
    branch: str | None = None
    min_messages: int | None = None
    max_messages: int | None = None
    min_tool_calls: int | None = None
    max_tool_calls: int | None = None
    min_tokens: int | None = None
    max_tokens: int | None = None
    min_cost: float | None = None
    max_cost: float | None = None

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, name) is None for name in self.__struct_fields__)

    def select(self, db: "SessionDB") -> list[Row]:
        """The sessions that match, oldest first, archived ones included."""
        rows = db.search_sessions(self.source, limit=-1)
        return [row for row in reversed(rows) if self.matches(row)]

    def matches(self, row: Row) -> bool:
        """Whether one session is meant. Its age is counted from its end, or from its start while it is open."""
        return self._has_words(row) and self._has_time(row) and self._has_size(row)

    def _has_words(self, row: Row) -> bool:
        parts = (
            (self.title, row.get("title")),
            (self.cwd, row.get("cwd")),
            (self.model, row.get("model")),
            (self.branch, row.get("git_branch")),
        )
        wholes = (
            (self.end_reason, row.get("end_reason")),
            (self.provider, row.get("billing_provider")),
            (self.user, row.get("user_id")),
            (self.chat_id, row.get("chat_id")),
        )
        return all(wanted is None or wanted.lower() in str(have or "").lower() for wanted, have in parts) and all(
            wanted is None or wanted == have for wanted, have in wholes
        )

    def _has_time(self, row: Row) -> bool:
        at = float(row.get("ended_at") or row["started_at"])
        age = time.time() - at
        return (
            (self.older_than is None or age >= self.older_than)
            and (self.newer_than is None or age < self.newer_than)
            and (self.before is None or at < self.before)
            and (self.after is None or at >= self.after)
        )

    def _has_size(self, row: Row) -> bool:
        sizes: dict[str, float | None] = {name: float(row.get(column) or 0) for name, column in _COUNTS.items()}
        sizes["tokens"] = float((row.get("input_tokens") or 0) + (row.get("output_tokens") or 0))
        cost = row.get("actual_cost_usd") if row.get("actual_cost_usd") is not None else row.get("estimated_cost_usd")
        sizes["cost"] = cost
        for name, size in sizes.items():
            least, most = getattr(self, f"min_{name}"), getattr(self, f"max_{name}")
            if least is None and most is None:
                continue
            if size is None:  # a price that nobody knows is neither small nor large
                return False
            if (least is not None and size < least) or (most is not None and size > most):
                return False
        return True


_AGE_OR = "90 (days), 12h, 3d, 2w"
_OPTIONS = (
    click.option("--source", metavar="TAG", help="From there: cli, cron, telegram …"),
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


def taken_filter(options: dict[str, Any]) -> Filter:
    """The filter out of a command's options, which keep the others."""
    found = Filter(**{name: options.pop(name) for name in Filter.__struct_fields__})
    for what in ("messages", "tool_calls", "tokens", "cost"):
        least, most = getattr(found, f"min_{what}"), getattr(found, f"max_{what}")
        if least is not None and most is not None and least > most:
            raise UserError(f"--min-{what} is above --max-{what}, so nothing can match")
    return found
