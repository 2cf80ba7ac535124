"""Keys: where each may go, which of several is used, which rests after a refusal, and where that is remembered."""

import contextlib
import hashlib
import itertools
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hermes.config.paths import make_private, write_private
from hermes.errors import ProviderError, UserError
from hermes.models.endpoint import Endpoint
from hermes.models.providers.key_homes import Home, host_of
from hermes.typed import from_json

Strategy: TypeAlias = Literal["fill_first", "round_robin", "random", "least_used"]

REST_AFTER_AUTH_S = 300.0
REST_S = 3600.0
MAX_REST_S = 24 * 3600.0  # whatever the provider says
ROTATING = ("rate_limit", "billing", "auth")


class Renewal(Struct, frozen=True):
    """How a token of a sign-in, which runs out, is exchanged for the next one."""

    refresh_token: str
    token_url: str
    client_id: str = ""
    expires_at: float = 0.0  # 0: nobody said when


class Credential(Struct, frozen=True):
    """One key, and where it may go. `id` is made from it, so the same key is the same credential everywhere."""

    key: str
    label: str = ""
    renewal: Renewal | None = None
    homes: tuple[Home, ...] = ()
    source: str = ""  # where it was found, in words

    @property
    def id(self) -> str:
        return hashlib.sha256(self.key.encode()).hexdigest()[:12]

    def belongs_to(self, address: str) -> bool:
        return any(home.has(address) for home in self.homes)


def with_key(endpoint: Endpoint, credential: Credential, key_header: str = "") -> Endpoint:
    """`endpoint` with the key for it. Every key that is ever sent to a model has passed here."""
    if not credential.belongs_to(endpoint.base_url):
        raise UserError(f"{credential.source or 'a key'} does not belong to {host_of(endpoint.base_url)}")
    if key_header:
        return replace(endpoint, headers={**endpoint.headers, key_header: credential.key})
    return replace(endpoint, api_key=credential.key)


class CredentialPool:
    """Keys of one provider. A key that was refused rests; the others go on. Safe to share between threads."""

    def __init__(
        self,
        credentials: Sequence[Credential],
        strategy: Strategy = "fill_first",
        *,
        clock: Callable[[], float] = time.time,
        remember: Callable[[str, float], None] = lambda _id, _until: None,
        resting: dict[str, float] | None = None,
    ) -> None:
        if not credentials:
            raise UserError("a credential pool needs at least one key")
        if strategy not in get_args(Strategy):
            raise UserError(f"credential pool strategy {strategy!r} is not one of {', '.join(get_args(Strategy))}")
        first_of: dict[str, Credential] = {}
        for one in credentials:
            first_of.setdefault(one.id, one)
        self._credentials = tuple(first_of.values())
        self._strategy = strategy
        self._clock = clock
        self._remember = remember
        self._resting = dict(resting or {})
        self._used = dict.fromkeys((one.id for one in self._credentials), 0)
        self._turns = itertools.count()
        self._lock = threading.Lock()  # guards _credentials, _resting, _used and _turns

    def __len__(self) -> int:
        return len(self._credentials)

    @property
    def is_renewable(self) -> bool:
        """Whether one of the keys runs out and can be renewed."""
        return any(one.renewal is not None for one in self._credentials)

    def swap(self, old: Credential, new: Credential) -> None:
        """Put `new` in the place of `old`."""
        with self._lock:
            self._credentials = tuple(new if one == old else one for one in self._credentials)
            self._used.setdefault(new.id, self._used.get(old.id, 0))

    def pick(self) -> Credential:
        """The key for the next request; when all rest, the one whose rest ends first."""
        with self._lock:
            now = self._clock()
            ready = [one for one in self._credentials if self._resting.get(one.id, 0.0) <= now]
            chosen = self._choose(ready) if ready else min(self._credentials, key=lambda one: self._resting[one.id])
            self._used[chosen.id] += 1
            return chosen

    def refused(self, credential: Credential, error: ProviderError) -> bool:
        """Let `credential` rest; whether another is ready."""
        rest_s = min(error.retry_after_s or (REST_AFTER_AUTH_S if error.reason == "auth" else REST_S), MAX_REST_S)
        with self._lock:
            now = self._clock()
            self._resting[credential.id] = now + rest_s
            ready = any(self._resting.get(one.id, 0.0) <= now for one in self._credentials)
        self._remember(credential.id, now + rest_s)
        return ready

    def _choose(self, ready: Sequence[Credential]) -> Credential:
        if self._strategy == "round_robin":
            return ready[next(self._turns) % len(ready)]
        if self._strategy == "random":
            return random.choice(ready)
        if self._strategy == "least_used":
            return min(ready, key=lambda one: self._used[one.id])
        return ready[0]


def pool_from(given: Any, strategy: Strategy = "fill_first") -> CredentialPool:
    """What the `credential_pool` keyword was given: a pool, or keys as texts or as `{"api_key": …}`."""
    if isinstance(given, CredentialPool):
        return given
    if isinstance(given, str):
        given = [given]
    keys = [one if isinstance(one, str) else str(one.get("api_key") or one.get("access_token") or "") for one in given]
    return CredentialPool([Credential(key) for key in keys if key], strategy)


class AuthFile:
    """`auth.json` of a home: keys that were added by hand, and how long each still rests. For its owner's eyes only."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def stored(self, provider: str, homes: tuple[Home, ...]) -> list[Credential]:
        """The stored keys of `provider`. One that stands beside an address belongs there, the others to `homes`."""
        found = [_credential(entry) for entry in self._entries(self._read(), provider)]
        source = f"the key of {provider!r} in auth.json"
        return [replace(one, homes=one.homes or homes, source=source) for one in found if one.key]

    def pool(self, credentials: Sequence[Credential], strategy: Strategy) -> CredentialPool | None:
        """A pool that knows and remembers here which keys rest; None without keys."""
        if not credentials:
            return None
        resting = {
            str(name): float(until)
            for name, until in (self._read().get("resting") or {}).items()
            if isinstance(until, int | float)
        }
        return CredentialPool(credentials, strategy, remember=self.rest, resting=resting)

    def rest(self, credential_id: str, until: float) -> None:
        """Remember for other processes that this key was refused."""
        if not self._file.exists():
            return  # nobody keeps keys here, so there is nobody to tell
        with self._locked():
            content = self._read()
            now = time.time()
            kept = {name: end for name, end in (content.get("resting") or {}).items() if end > now}
            content["resting"] = {**kept, credential_id: until}
            self._write(content)

    def add(self, provider: str, key: str, label: str = "") -> None:
        """Keep one more key for `provider`."""
        with self._locked():
            content = self._read()
            content.setdefault("credential_pool", {}).setdefault(provider, []).append({"api_key": key, "label": label})
            self._write(content)

    def address(self, provider: str) -> str:
        """The address that was stored with a sign-in."""
        entries = self._entries(self._read(), provider)
        return next((str(entry["base_url"]) for entry in entries if entry.get("base_url")), "")

    def newer(self, provider: str, old: Credential) -> Credential | None:
        """What another process has put in the place of `old` meanwhile."""
        stored = self.stored(provider, old.homes)
        if any(one.key == old.key for one in stored):
            return None
        return next((one for one in stored if one.label == old.label and one.renewal is not None), None)

    def renewed(self, provider: str, old: Credential, new: Credential) -> None:
        """Keep `new` in the place of `old`."""
        assert new.renewal is not None
        told = {
            "access_token": new.key,
            "refresh_token": new.renewal.refresh_token,
            "expires_at": new.renewal.expires_at,
        }
        with self._locked():
            content = self._read()
            for entry in self._entries(content, provider):
                if entry.get("access_token") == old.key:
                    entry.update(told)
            self._write(content)

    def _entries(self, content: dict[str, Any], provider: str) -> list[dict[str, Any]]:
        """The keys of the pool, then the provider's own sign-in."""
        found = (content.get("credential_pool") or {}).get(provider)
        signed_in = (content.get("providers") or {}).get(provider)
        listed = [*(found if isinstance(found, list) else []), signed_in]
        return [entry for entry in listed if isinstance(entry, dict)]

    def _read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = from_json(self._file.read_bytes(), dict[str, Any])
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError as error:
            raise UserError(f"{self._file} cannot be read ({error}); mend or delete it") from error
        return found

    def _write(self, content: dict[str, Any]) -> None:
        write_private(self._file, msgspec.json.format(msgspec.json.encode(content)).decode() + "\n")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if os.name != "posix":
            yield
            return
        import fcntl  # not on Windows

        make_private(self._file.parent)
        with (self._file.with_name(f".{self._file.name}.lock")).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _credential(entry: dict[str, Any]) -> Credential:
    key, label = str(entry.get("api_key") or entry.get("access_token") or ""), str(entry.get("label") or "")
    homes = (Home(address=str(entry["base_url"])),) if entry.get("base_url") else ()
    if not entry.get("refresh_token") or not entry.get("token_url"):
        return Credential(key, label, homes=homes)
    until = entry.get("expires_at")
    return Credential(
        key,
        label,
        Renewal(
            refresh_token=str(entry["refresh_token"]),
            token_url=str(entry["token_url"]),
            client_id=str(entry.get("client_id") or ""),
            expires_at=float(until) if isinstance(until, int | float) else 0.0,
        ),
        homes,
    )
