"""What somebody asks of a job, checked field by field: one clear sentence for each thing that cannot be."""

from collections.abc import Callable, Collection
from datetime import tzinfo
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from hermes.dicts import storable
from hermes.errors import UserError
from hermes.schedule.due_moments import next_dues
from hermes.schedule.grammar import parse_schedule, parse_span, parse_time, zone_named
from hermes.state.schedule_rows import CatchUp, Overlap, Schedule
from hermes.types import JsonObject

NAME_CHARS = 50
MAX_PROMPT_CHARS = 100_000
MAX_JITTER_S = 3_600
CATCH_UPS: tuple[CatchUp, ...] = ("skip", "once", "all")
OVERLAPS: tuple[Overlap, ...] = ("skip", "queue", "parallel")
GATEWAY = (
    "delivering to {!r} needs the messaging gateway, which this version does not have; "
    "use local, origin or command:NAME"
)

Text = str | UnsetType
Names = tuple[str, ...] | UnsetType


class JobOrder(Struct, frozen=True, kw_only=True):
    """What is asked of a job that is made or changed; what is left out stays as it is. An empty value clears."""

    schedule: Text = UNSET
    prompt: Text = UNSET
    name: Text = UNSET
    repeat: int | UnsetType = UNSET
    deliver: Text = UNSET
    skills: Names = UNSET
    model: Text = UNSET
    provider: Text = UNSET
    base_url: Text = UNSET
    script: Text = UNSET
    no_agent: bool | UnsetType = UNSET
    context_from: Names = UNSET
    enabled_toolsets: Names = UNSET
    workdir: Text = UNSET
    timezone: Text = UNSET
    expires: Text = UNSET
    catch_up: Text = UNSET
    overlap: Text = UNSET
    jitter: Text = UNSET
    run_usd: float | UnsetType = UNSET
    month_usd: float | UnsetType = UNSET
    allow: Names = UNSET
    origin: JsonObject | UnsetType = UNSET


class JobChecks(Struct, frozen=True, kw_only=True):
    """What orders are checked against."""

    home: Path
    zone: tzinfo
    refuse_prompt: Callable[[str], None]
    refuse_skill: Callable[[str], None]
    refuse_toolset: Callable[[str], None]
    commands: Collection[str] = ()  # that deliveries may go to


def job_fields(order: JobOrder, checks: JobChecks, now: float, has_job: Callable[[str], bool]) -> dict[str, Any]:
    """The fields of a job that the order sets; `UserError` for the first thing that cannot be."""
    found: dict[str, Any] = {}
    for name in order.__struct_fields__:
        value = getattr(order, name)
        if value is UNSET:
            continue
        if isinstance(value, str):
            value = storable(value)
        elif isinstance(value, tuple):
            value = tuple(storable(each) for each in value)
        match name:
            case "schedule":
                zone = zone_named(order.timezone) if order.timezone else checks.zone
                found["schedule"] = parse_schedule(value, now, zone)
            case "expires":
                found["expires_at"] = _expiry(value, now, checks.zone)
            case "jitter":
                found["jitter_s"] = _jitter(value)
            case "repeat":
                found["repeat"] = value if value > 0 else None
            case "run_usd" | "month_usd":
                found[name] = _amount(name, value)
            case _:
                found[name] = _CHECKS.get(name, _as_it_is)(value, checks)
    for job_id in found.get("context_from", ()):
        if not has_job(job_id):
            raise UserError(f"context_from names the job {job_id!r}, which does not exist")
    return found


def refuse_contradiction(fields: dict[str, Any], now: float, zone: tzinfo) -> None:
    """`UserError` for a job that could do nothing, or whose parts do not fit each other."""
    if not (fields.get("prompt") or fields.get("skills") or fields.get("no_agent")):
        raise UserError("a job needs a prompt or a skill; or a script with no_agent")
    if fields.get("no_agent") and not fields.get("script"):
        raise UserError("a job with no_agent needs a script")
    schedule: Schedule = fields["schedule"]
    if jitter := fields.get("jitter_s"):
        first, *more = [*next_dues(schedule, now, zone, 2), 0.0]
        if more[0] and jitter > (more[0] - first) / 2:
            raise UserError("the jitter is at most half of the time between two runs")
    expires = fields.get("expires_at")
    if expires is not None and not [at for at in next_dues(schedule, now - 1, zone, 1) if at <= expires]:
        raise UserError("the job would expire before its first run")


def script_file(home: Path, script: str) -> Path:
    """The file of a script; `UserError` when it is none of the folder for scripts."""
    folder = home / "scripts"
    if not script or script.startswith(("/", "~")) or "\0" in script:
        raise UserError(f"the script {script!r} is named by its path inside {str(folder)!r}, such as check.sh")
    file = (folder / script).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise UserError(f"the script {script!r} is not inside {str(folder)!r}")
    if not file.is_file():
        raise UserError(f"there is no script {script!r} in {str(folder)!r}")
    return file


def refuse_target(target: str, commands: Collection[str]) -> None:
    """`UserError` unless this version can deliver there."""
    if target in ("local", "origin"):
        return
    kind, _, name = target.partition(":")
    if kind != "command" or "," in target:
        raise UserError(GATEWAY.format(target))
    if name not in commands:
        known = f"; there are {', '.join(sorted(commands))}" if commands else ""
        raise UserError(f"there is no command {name!r} to deliver to (cron.commands in config.yaml){known}")


def _prompt(value: str, checks: JobChecks) -> str:
    if len(value) > MAX_PROMPT_CHARS:
        raise UserError(f"the prompt has {len(value):,} characters; {MAX_PROMPT_CHARS:,} are the most")
    checks.refuse_prompt(value)
    return value.strip()


def _skills(value: tuple[str, ...], checks: JobChecks) -> tuple[str, ...]:
    for name in (names := _names(value)):
        checks.refuse_skill(name)
    return names


def _toolsets(value: tuple[str, ...], checks: JobChecks) -> tuple[str, ...]:
    for name in (names := _names(value)):
        checks.refuse_toolset(name)
    return names


def _names(value: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in value if name.strip()))


def _script(value: str, checks: JobChecks) -> str:
    if value.strip():
        script_file(checks.home, value.strip())
    return value.strip()


def _workdir(value: str, _checks: JobChecks) -> str:
    if value and not (Path(value).is_absolute() and Path(value).is_dir()):
        raise UserError(f"the workdir {value!r} is no absolute path of a folder that exists")
    return value


def _deliver(value: str, checks: JobChecks) -> str:
    target = value.strip() or "local"
    refuse_target(target, checks.commands)
    return target


def _timezone(value: str, _checks: JobChecks) -> str:
    if value:
        zone_named(value)
    return value


def _among(name: str, allowed: tuple[str, ...]) -> Callable[[str, JobChecks], str]:
    def check(value: str, _checks: JobChecks) -> str:
        if value not in allowed:
            raise UserError(f"{name} is one of {', '.join(allowed)}, not {value!r}")
        return value

    return check


def _as_it_is(value: Any, _checks: JobChecks) -> Any:
    return value.strip() if isinstance(value, str) else value


_CHECKS: dict[str, Callable[[Any, JobChecks], Any]] = {
    "prompt": _prompt,
    "skills": _skills,
    "enabled_toolsets": _toolsets,
    "script": _script,
    "workdir": _workdir,
    "deliver": _deliver,
    "timezone": _timezone,
    "catch_up": _among("catch_up", CATCH_UPS),
    "overlap": _among("overlap", OVERLAPS),
    "name": lambda value, _checks: " ".join(value.split())[:200],
    "context_from": lambda value, _checks: _names(value),
    "allow": lambda value, _checks: _names(value),
}


def _expiry(value: str, now: float, zone: tzinfo) -> float | None:
    if not value.strip():
        return None
    at = parse_time(value, now, zone)
    if at <= now:
        raise UserError(f"{value!r} is in the past; a job expires at a time to come")
    return at


def _jitter(value: str) -> int:
    seconds = 0 if value.strip() in ("", "0") else parse_span(value)
    if seconds > MAX_JITTER_S:
        raise UserError(f"the jitter is at most an hour, not {value!r}")
    return seconds


def _amount(name: str, value: float) -> float | None:
    if not 0 <= value < 1e9:
        raise UserError(f"{name} is an amount of US dollars, not {value!r}")
    return value or None
