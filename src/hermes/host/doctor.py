"""What a check of `hermes doctor` is, and what it finds."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeAlias, TypeVar

from msgspec import Struct

from hermes.host.installation import Installation
from hermes.tables import Table

Result = TypeVar("Result")
Status: TypeAlias = Literal["ok", "absent", "warning", "problem"]


class Finding(Struct, frozen=True):
    """One thing that was looked at. `next_step` is the command that mends it."""

    status: Status
    text: str
    next_step: str = ""


class Check(Struct, frozen=True, kw_only=True):
    """A question to the installation. `fix` mends what can be mended safely, and says what it did."""

    title: str
    run: Callable[[Installation], Iterable[Finding]]
    fix: Callable[[Installation], Iterable[str]] | None = None


CHECKS: Table[Check] = Table("hermes.host.doctor_checks", "CHECK")


def ok(text: str) -> Finding:
    """Nothing to do."""
    return Finding("ok", text)


def absent(text: str) -> Finding:
    """Not there, and nothing that is in use needs it."""
    return Finding("absent", text)


def warning(text: str, next_step: str = "") -> Finding:
    """Works, but not as well as it could."""
    return Finding("warning", text, next_step)


def problem(text: str, next_step: str = "") -> Finding:
    """Does not work."""
    return Finding("problem", text, next_step)


def settled(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """What `work` comes to. It gets a loop of its own, so a check may be run from anywhere."""
    with ThreadPoolExecutor(1) as one:
        return one.submit(lambda: asyncio.run(work())).result()
