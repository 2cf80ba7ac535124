"""Shell hooks: programs of the user's own that are told of calls and turns; they may refuse a call, add to a turn."""

import asyncio
import logging
import os
import re
import shlex
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from hermes.config.paths import write_private
from hermes.config.sections.hooks import Section, ShellHook
from hermes.config.sections.top import Section as Top
from hermes.config.settings import Settings
from hermes.confinement.outside import outside
from hermes.confinement.policy import AnyConfinement, Confinement
from hermes.errors import ToolError, UserError
from hermes.seams import Decision, SpawnSpec, Supervisor
from hermes.typed import from_json

ALLOWLIST = "shell-hooks-allowlist.json"
MOST_BYTES = 200_000
SPARE_S = 5.0  # what the bus waits beyond the program's own limit, so that the program is ended by us
OWNER = "shell hook"
log = logging.getLogger(__name__)


class HookFilter(Struct, frozen=True):
    """A hook of config.yaml and what it is called for."""

    event: str
    hook: ShellHook


class Consent(Struct, frozen=True):
    """A program that the user has allowed for an event."""

    event: str
    command: str


class Bus(Protocol):
    """The part of the session's hook bus that is needed here."""

    def add(
        self, hook: str, callback: Callable[..., Awaitable[Any]], *, owner: str, kind: Any, timeout_s: float
    ) -> None: ...


async def _nothing_confined() -> None:
    return None


class HookPlace(Struct, frozen=True, kw_only=True):
    """Where hooks run, and for which session."""

    supervisor: Callable[[], Supervisor]
    env: Mapping[str, str]
    cwd: Callable[[], str]
    session_id: str
    confinement: Callable[[], Awaitable[Confinement | None]] = _nothing_confined


def configured(settings: Settings) -> list[HookFilter]:
    """Every hook of config.yaml; one that cannot work is a `UserError`."""
    section = settings.of(Section)
    found = [HookFilter(event, hook) for event in section.__struct_fields__ for hook in getattr(section, event)]
    for wanted in found:
        try:
            re.compile(wanted.hook.matcher)
            words = shlex.split(wanted.hook.command)
        except (re.error, ValueError) as error:
            where = f"hooks.{wanted.event}, {wanted.hook.command!r}"
            raise UserError(f"{where}: {error}; see: hermes config edit") from error
        if not words:
            raise UserError(f"hooks.{wanted.event}: a hook has no command; see: hermes config edit")
        if wanted.hook.matcher and wanted.event == "pre_llm_call":
            raise UserError("hooks.pre_llm_call: there is no tool that a matcher could fit; leave it out")
    return found


def not_accepted(settings: Settings) -> list[HookFilter]:
    """The hooks that nobody has consented to; none where all are accepted unasked."""
    if settings.of(Top).hooks_auto_accept:
        return []
    allowed = set(_allowed(settings.home))
    return [one for one in configured(settings) if Consent(one.event, one.hook.command) not in allowed]


def accept(home: Path, wanted: HookFilter) -> None:
    """Remember the user's consent to this program for this event."""
    consents = [*_allowed(home), Consent(wanted.event, wanted.hook.command)]
    text = msgspec.json.format(msgspec.json.encode(list(dict.fromkeys(consents))), indent=2)
    write_private(home / ALLOWLIST, f"{text.decode()}\n")


def join(bus: Bus, settings: Settings, place: HookPlace) -> None:
    """Have the accepted hooks called by `bus`."""
    refused = not_accepted(settings)
    hooks = [one for one in configured(settings) if one not in refused]
    for event, kind, made in (
        ("pre_tool_call", "policy", _policy),
        ("post_tool_call", "observer", _observer),
        ("pre_llm_call", "transform", _context),
    ):
        of_event = [one.hook for one in hooks if one.event == event]
        if of_event:
            limit = sum(hook.timeout for hook in of_event) + SPARE_S
            bus.add(event, made(of_event, place), owner=OWNER, kind=kind, timeout_s=limit)


def _policy(hooks: list[ShellHook], place: HookPlace) -> Callable[..., Awaitable[Any]]:
    async def ask(**payload: Any) -> Any:
        for hook in _matching(hooks, payload):
            said = await _run(hook, place, "pre_tool_call", payload)
            if said.get("decision") == "block" or said.get("action") == "block":
                reason = said.get("reason") or said.get("message")
                return {"action": "block", "message": str(reason or f"refused by the hook {hook.command!r}")}
        return None

    return ask


def _observer(hooks: list[ShellHook], place: HookPlace) -> Callable[..., Awaitable[Any]]:
    async def tell(**payload: Any) -> None:
        for hook in _matching(hooks, payload):
            await _quietly(hook, place, "post_tool_call", payload)

    return tell


def _context(hooks: list[ShellHook], place: HookPlace) -> Callable[..., Awaitable[Any]]:
    async def ask(**payload: Any) -> str:
        said = [await _quietly(hook, place, "pre_llm_call", payload) for hook in hooks]
        return "\n\n".join(str(one["context"]) for one in said if one.get("context"))

    return ask


def _matching(hooks: list[ShellHook], payload: Mapping[str, Any]) -> list[ShellHook]:
    name = str(payload.get("tool_name") or "")
    return [hook for hook in hooks if not hook.matcher or re.fullmatch(hook.matcher, name)]


async def _quietly(hook: ShellHook, place: HookPlace, event: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """One that fails says nothing; whoever only looks on stops nobody."""
    try:
        return await _run(hook, place, event, payload)
    except ToolError as error:
        log.warning("%s", error)
        return {}


async def _border(hook: ShellHook, place: HookPlace, cwd: str) -> AnyConfinement:
    """Outside, for a program of the person's own. One that commands may write to runs as they do."""
    confined = await place.confinement()
    if confined is not None and _is_writable(hook, place, cwd, confined):
        return confined
    return outside("shell hook")


def _is_writable(hook: ShellHook, place: HookPlace, cwd: str, confined: Confinement) -> bool:
    """Whether any word of the command names a file that commands may change."""
    for number, word in enumerate(shlex.split(hook.command)):
        found = shutil.which(word, path=place.env.get("PATH")) if number == 0 and "/" not in word else None
        path = os.path.realpath(os.path.join(cwd, os.path.expanduser(found or word)))  # noqa: PTH111, PTH118
        if confined.may_write(path) and os.path.isfile(path):  # noqa: PTH113
            return True
    return False


async def _run(hook: ShellHook, place: HookPlace, event: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the program answers, an empty object for none; `ToolError` when it fails or takes too long."""
    told: dict[str, Any] = {
        "hook_event_name": event,
        "tool_name": payload.get("tool_name"),
        "tool_input": payload.get("args"),
        "session_id": payload.get("session_id") or place.session_id,
        "cwd": place.cwd(),
        "extra": {name: value for name, value in payload.items() if name not in ("tool_name", "args", "session_id")},
    }
    spec = SpawnSpec(
        argv=tuple(shlex.split(hook.command)),
        cwd=_here(told["cwd"]),
        env=dict(place.env),
        stdin=msgspec.json.encode(told, enc_hook=str),
        owner=place.session_id,
        merge_stderr=False,
        confinement=await _border(hook, place, told["cwd"]),
    )
    child = await place.supervisor().spawn(Decision.own(f"the hook {hook.command!r}, accepted by the user"), spec)
    out = bytearray()
    try:
        async with asyncio.timeout(hook.timeout):
            async for chunk in child.output():
                out += chunk[: MOST_BYTES - len(out)]
            code = await child.wait()
    except TimeoutError as error:
        raise ToolError(f"the hook {hook.command!r} took longer than {hook.timeout:g} s") from error
    finally:
        child.release()
    if code:
        why = child.stderr_tail().decode("utf-8", "replace").strip()
        raise ToolError(f"the hook {hook.command!r} ended with exit code {code}{f': {why[-200:]}' if why else ''}")
    return _answer(bytes(out))


def _here(folder: str) -> str:
    """A folder of this machine to run in: that of the session, unless the session is elsewhere."""
    return folder if Path(folder).is_dir() else "/"


def _answer(out: bytes) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(out)
    except msgspec.DecodeError:
        return {}  # words for nobody
    return found if isinstance(found, Mapping) else {}


def _allowed(home: Path) -> list[Consent]:
    file = home / ALLOWLIST
    try:
        return from_json(file.read_bytes(), list[Consent])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        raise UserError(f"cannot read {file}: {error}; delete it to be asked again") from error
