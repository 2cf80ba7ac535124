"""Shell hooks: programs of the user's own that are told of calls and turns; they may refuse a call, add to a turn."""

import asyncio
import hashlib
import logging
import os
import re
import shlex
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/opt/homebrew/")
log = logging.getLogger(__name__)


class HookFilter(Struct, frozen=True):
    """A hook of config.yaml and what it is called for."""

    event: str
    hook: ShellHook


class Consent(Struct, frozen=True, kw_only=True):
    """A program that the user has allowed for an event, as it was then."""

    event: str
    command: str
    sha256: str = ""  # of the files that the command names; one without it was given by another program, and is no yes
    approved_at: float = 0.0


class _Allowlist(Struct):
    approvals: list[Consent] = []


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
        if wanted.hook.matcher and wanted.event not in ("pre_tool_call", "post_tool_call"):
            raise UserError(f"hooks.{wanted.event}: there is no tool that a matcher could fit; leave it out")
    return found


def not_accepted(settings: Settings) -> list[HookFilter]:
    """The hooks that nobody has consented to as they are now; none where all are accepted unasked."""
    if settings.of(Top).hooks_auto_accept:
        return []
    allowed = {(one.event, one.command): one.sha256 for one in _allowed(settings.home)}
    return [one for one in configured(settings) if allowed.get((one.event, one.hook.command)) != digest_of(one.hook)]


def has_changed(settings: Settings, wanted: HookFilter) -> bool:
    """Whether somebody has consented to this hook, and it is another program by now."""
    given = [one for one in _allowed(settings.home) if (one.event, one.command) == (wanted.event, wanted.hook.command)]
    return bool(given) and all(one.sha256 != digest_of(wanted.hook) for one in given)


def accept(home: Path, wanted: HookFilter) -> None:
    """Remember the user's consent to this program, as it is now, for this event."""
    named = (wanted.event, wanted.hook.command)
    kept = [one for one in _allowed(home) if (one.event, one.command) != named]
    yes = Consent(event=named[0], command=named[1], sha256=digest_of(wanted.hook), approved_at=time.time())
    text = msgspec.json.format(msgspec.json.encode(_Allowlist([*kept, yes])), indent=2)
    write_private(home / ALLOWLIST, f"{text.decode()}\n")


def _argv(hook: ShellHook) -> tuple[str, ...]:
    return tuple(os.path.expanduser(word) for word in shlex.split(hook.command))  # noqa: PTH111 - any user's


def digest_of(hook: ShellHook) -> str:
    """A hash of the command and of every file that it names, programs of the system apart: those change by updates."""
    told = hashlib.sha256(hook.command.encode("utf-8", "surrogatepass"))
    for number, word in enumerate(shlex.split(hook.command)):
        path = os.path.expanduser(word)  # noqa: PTH111 - no error for an unknown user
        found = shutil.which(path) if number == 0 else path
        if found is None or not os.path.isabs(found) or found.startswith(_SYSTEM):  # noqa: PTH117
            continue
        try:
            with open(found, "rb") as file:  # noqa: PTH123 - of a word that may be anything
                told.update(hashlib.file_digest(file, "sha256").digest())
        except OSError:
            continue
    return told.hexdigest()


def join(bus: Bus, settings: Settings, place: HookPlace) -> None:
    """Have the accepted hooks called by `bus`. A guard that is another program than the one allowed denies."""
    refused = not_accepted(settings)
    is_bound = not settings.of(Top).hooks_auto_accept
    hooks = [one for one in configured(settings) if one not in refused]
    changed = [one for one in refused if one.event == "pre_tool_call" and has_changed(settings, one)]
    for event in dict.fromkeys(one.event for one in (*hooks, *changed)):
        of_event = [BoundHook(one.hook, digest_of(one.hook) if is_bound else "") for one in hooks if one.event == event]
        of_event += [BoundHook(one.hook, "changed") for one in changed if one.event == event]
        kind, made = _KINDS.get(event, ("observer", _observer))
        limit = sum(bound.hook.timeout for bound in of_event) + SPARE_S
        bus.add(event, made(of_event, place, event), owner=OWNER, kind=kind, timeout_s=limit)


class BoundHook(Struct, frozen=True):
    """A hook and the hash of what was allowed; empty where everything is."""

    hook: ShellHook
    sha256: str


def _policy(hooks: list[BoundHook], place: HookPlace, event: str) -> Callable[..., Awaitable[Any]]:
    async def ask(**payload: Any) -> Any:
        for bound in _matching(hooks, payload):
            said = await _run(bound, place, event, payload)
            if said.get("decision") == "block" or said.get("action") == "block":
                reason = said.get("reason") or said.get("message")
                return {"action": "block", "message": str(reason or f"refused by the hook {bound.hook.command!r}")}
        return None

    return ask


def _observer(hooks: list[BoundHook], place: HookPlace, event: str) -> Callable[..., Awaitable[Any]]:
    async def tell(**payload: Any) -> None:
        for bound in _matching(hooks, payload):
            await _quietly(bound, place, event, payload)

    return tell


def _context(hooks: list[BoundHook], place: HookPlace, event: str) -> Callable[..., Awaitable[Any]]:
    async def ask(**payload: Any) -> str:
        said = [await _quietly(bound, place, event, payload) for bound in hooks]
        return "\n\n".join(str(one["context"]) for one in said if one.get("context"))

    return ask


_KINDS: dict[str, tuple[str, Callable[..., Callable[..., Awaitable[Any]]]]] = {
    "pre_tool_call": ("policy", _policy),
    "pre_llm_call": ("transform", _context),
}


def _matching(hooks: list[BoundHook], payload: Mapping[str, Any]) -> list[BoundHook]:
    name = str(payload.get("tool_name") or "")
    return [one for one in hooks if not one.hook.matcher or re.fullmatch(one.hook.matcher, name)]


async def _quietly(bound: BoundHook, place: HookPlace, event: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """One that fails says nothing; whoever only looks on stops nobody."""
    try:
        return await _run(bound, place, event, payload)
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


async def _run(bound: BoundHook, place: HookPlace, event: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the program answers, an empty object for none; `ToolError` when it fails or takes too long."""
    hook = bound.hook
    if bound.sha256 and digest_of(hook) != bound.sha256:
        raise ToolError(
            f"the hook {hook.command!r} is another program than the one that was allowed; hermes asks again"
        )
    told: dict[str, Any] = {
        "hook_event_name": event,
        "tool_name": payload.get("tool_name"),
        "tool_input": payload.get("args"),
        "session_id": payload.get("session_id") or payload.get("parent_session_id") or place.session_id,
        "cwd": place.cwd(),
        "extra": {name: value for name, value in payload.items() if name not in ("tool_name", "args", "session_id")},
    }
    spec = SpawnSpec(
        argv=_argv(hook),
        cwd=_here(told["cwd"]),
        env=dict(place.env),
        stdin=msgspec.json.encode(told, enc_hook=_plain),
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


def _plain(value: Any) -> Any:
    """A value that is no JSON, as one: a list that is made when it is looked at, else its text."""
    return list(value) if isinstance(value, Sequence) else str(value)


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
        found = from_json(file.read_bytes(), _Allowlist | list[Consent])
        return found.approvals if isinstance(found, _Allowlist) else found
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        raise UserError(f"cannot read {file}: {error}; delete it to be asked again") from error
