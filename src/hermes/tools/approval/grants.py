"""Where a yes is kept: for a task or a session in the home's approvals.json, for good in `command_allowlist`.

Both are files that a person can look at and that every process of the home sees, so what is revoked in one terminal
stops counting in all of them. No tool can write them: they are on the hardline floor.
"""

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hermes.config import paths
from hermes.config.load import load_settings
from hermes.config.paths import write_private
from hermes.config.write import set_key, unset_key
from hermes.errors import ConfigError, StoreError
from hermes.tools.approval.policy import Grant, Policy, allowlist_entry, check_examples
from hermes.typed import convert, json_decoder

KEPT_S = 30 * 86_400.0
MAX_KEPT = 2_000
ALLOWLIST = "command_allowlist"


class Kept(Struct, frozen=True, kw_only=True):
    """A grant of a task or session, and when it was given."""

    grant: Grant
    at: float = 0.0


_DECODER = json_decoder(tuple[Kept, ...])


def approvals_file(home: Path) -> Path:
    """The yeses of tasks and sessions."""
    return home / "approvals.json"


class HomeGrants:
    """`Grants` of one home. Reading costs one look at the file's time, writing takes a lock between processes."""

    def __init__(self, home: Path, now: Callable[[], float] = time.time) -> None:
        self._home = home
        self._file = approvals_file(home)
        self._now = now
        self._lock = threading.Lock()  # guards _seen and _kept
        self._seen: tuple[int, int] | None = None
        self._kept: tuple[Kept, ...] = ()

    async def given(self, session_id: str) -> Sequence[Grant]:
        return [one.grant for one in self.kept() if one.grant.session_id == session_id]

    async def add(self, grant: Grant) -> None:
        self.keep(grant)

    async def use_once(self, grant: Grant) -> None:
        self.revoke(grant.id)

    def keep(self, grant: Grant) -> None:
        """Keep the grant where its scope says."""
        if grant.scope == "always":
            allow_always(self._home, allowlist_entry(grant.key, grant.path_class))
            return
        named = msgspec.structs.replace(grant, id=grant.id or f"g{secrets.token_hex(4)}")
        same = (named.scope, named.key, named.path_class, named.binding, named.session_id, named.task_id)
        with self._changing() as kept:
            if not any(_same(one.grant) == same for one in kept):
                kept.append(Kept(grant=named, at=self._now()))

    def revoke(self, *ids: str) -> int:
        """Take back the grants with these ids; how many there were."""
        with self._changing() as kept:
            before = len(kept)
            kept[:] = [one for one in kept if one.grant.id not in ids]
            return before - len(kept)

    def carry(self, session_id: str, to: str) -> None:
        """What was granted to a session holds for the one that takes its place, too."""
        for one in self.kept():
            if one.grant.session_id == session_id:
                self.keep(msgspec.structs.replace(one.grant, session_id=to, id=""))

    def clear(self, session_id: str) -> int:
        """Take back everything that was granted to a session."""
        return self.revoke(*(one.grant.id for one in self.kept() if one.grant.session_id == session_id))

    def kept(self) -> tuple[Kept, ...]:
        """What holds now, oldest first; a grant ends thirty days after it was given."""
        with self._lock:
            stamp = stamp_of(self._file)
            if stamp != self._seen:
                self._seen, self._kept = stamp, self._read()
            oldest = self._now() - KEPT_S
            return tuple(one for one in self._kept if one.at >= oldest)

    @contextmanager
    def _changing(self) -> Iterator[list[Kept]]:
        with _locked(self._file):
            kept = [one for one in self._read() if one.at >= self._now() - KEPT_S]
            before = list(kept)
            yield kept
            if kept != before:
                text = msgspec.json.format(msgspec.json.encode(kept[-MAX_KEPT:]), indent=1).decode()
                write_private(self._file, f"{text}\n")

    def _read(self) -> tuple[Kept, ...]:
        try:
            return _DECODER.decode(self._file.read_bytes())
        except FileNotFoundError:
            return ()
        except (msgspec.MsgspecError, OSError) as error:
            raise StoreError(f"cannot read {str(self._file)!r} ({error}); move it away and approve anew") from error


class HomePolicy:
    """The policy in force. What was allowed for good is read anew when config.yaml has changed."""

    def __init__(self, home: Path, settings: Mapping[str, Any]) -> None:
        self._file = paths.config_file(home)
        self._home = home
        self._policy = policy_of(settings)
        self._seen = stamp_of(self._file)

    def __call__(self) -> Policy:
        stamp = stamp_of(self._file)
        if stamp != self._seen:
            allowed = read_allowlist(self._home)
            if allowed is not None:
                self._policy = msgspec.structs.replace(self._policy, allowlist=allowed)
            self._seen = stamp
        return self._policy


def policy_of(settings: Mapping[str, Any]) -> Policy:
    """The policy that the settings hold; `ConfigError` for a rule that contradicts its own examples."""
    section = dict(settings.get("approvals") or {})
    known = {name: section[name] for name in Policy.__struct_fields__ if name in section}
    try:
        policy = convert({**known, "allowlist": list(settings.get(ALLOWLIST) or ())}, Policy)
    except msgspec.ValidationError as error:
        raise ConfigError(f"approvals: {error}") from error
    check_examples(policy)
    return policy


def read_allowlist(home: Path) -> tuple[str, ...] | None:
    """`command_allowlist` as config.yaml has it now; None while the file cannot be read."""
    try:
        found: Any = load_settings(home).mapping.get(ALLOWLIST)
    except ConfigError:
        return None
    return tuple(found or ())


def allow_always(home: Path, entry: str) -> None:
    """Add an entry to `command_allowlist`; comments and other keys stay as they are."""
    with _locked(approvals_file(home)):
        held = read_allowlist(home) or ()
        if entry not in held:
            write_allowlist(home, (*held, entry))


def write_allowlist(home: Path, entries: Sequence[str]) -> None:
    """Make `command_allowlist` these entries."""
    if entries:
        set_key(home, ALLOWLIST, msgspec.json.encode(list(entries)).decode())
    else:
        unset_key(home, ALLOWLIST)


def forbid_again(home: Path, entry: str) -> bool:
    """Take an entry out of `command_allowlist`; whether it was there."""
    with _locked(approvals_file(home)):
        held = read_allowlist(home) or ()
        if entry not in held:
            return False
        write_allowlist(home, [one for one in held if one != entry])
        return True


def stamp_of(file: Path) -> tuple[int, int] | None:
    """What changes when the file does."""
    try:
        info = file.stat()
    except OSError:
        return None
    return info.st_mtime_ns, info.st_ino


def _same(grant: Grant) -> tuple[str, ...]:
    return (grant.scope, grant.key, grant.path_class, grant.binding, grant.session_id, grant.task_id)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold the lock beside `file`, which keeps other processes and threads from changing it meanwhile."""
    import fcntl  # the package must import where there is none

    paths.made(file.parent)
    handle = os.open(file.with_name(f".{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
