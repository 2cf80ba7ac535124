"""How much a model reads at once: what settings and tables say, else what its server tells, else an assumption.

A server is asked beside the first request that goes to it, never before there is one, and what it told is kept for a
day per address and model. Nothing here fails a call: whoever tells nothing is taken to read what the settings assume.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from hermes.config.sections import context as context_section
from hermes.errors import HermesError, ProviderError
from hermes.models.daemon_thread import in_daemon_thread
from hermes.models.endpoint import Endpoint
from hermes.models.providers.local import ServerProbe, keep_probe, kept_probe, probe_name

if TYPE_CHECKING:
    from hermes.models.providers.server_facts import JsonHttp

ASK_S = 5.0  # in all, however many pages of the server are read
GRACE_S = 1.0  # that an answer waits for what its server has to tell
DAY_S = 86_400.0
FAILED_S = 300.0  # until a server that could not be asked is asked again
UNLOADED_S = 10.0  # until one is asked again that has yet to load the model
ASK_MODES = ("chat_completions", "codex_responses")  # those whose servers list their models under `/models`
MIN_CONTEXT = 64_000  # tokens a model should be able to read
BOX = "local"  # the model in the box is small, and spoken to as such
NO_LIST = (404, 405, 501)  # by which a server says that it has no list of models
_log = logging.getLogger(__name__)

Result = TypeVar("Result")


class Window(NamedTuple):
    """Tokens that fit, and whether anybody has said so."""

    tokens: int
    is_assumed: bool = False


class Told(Struct, frozen=True):
    """What is known of one model at one address, and until when it is believed."""

    window: int | None = None
    until: float = 0.0
    is_announced: bool = False  # a person was told that nobody knows


NOTHING_TOLD = Told()


class WindowMemory:
    """What servers told this process, and a file of what they told earlier ones."""

    def __init__(self, http: "JsonHttp", now: Callable[[], float] = time.time) -> None:
        self._http = http
        self._now = now
        self._told: dict[tuple[str, str], Told] = {}
        # One asks, the others on its loop wait for what it learns.
        self._asking: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], asyncio.Lock]] = (
            WeakKeyDictionary()
        )

    def told(self, file: str, endpoint: Endpoint) -> Told:
        """What is known now; nobody is asked."""
        key = (file, probe_name(endpoint.base_url, endpoint.model))
        found = self._told.get(key)
        if found is None:
            kept = kept_probe(Path(file), key[1])
            found = Told(kept.window, kept.asked_at + DAY_S, kept.is_announced) if kept else NOTHING_TOLD
            self._told[key] = found
        return found

    def is_due(self, file: str, endpoint: Endpoint) -> bool:
        """Whether the server is to be asked: it never was, or long ago, or it had not loaded the model yet."""
        return self.told(file, endpoint).until <= self._now()

    async def ask(self, file: str, endpoint: Endpoint) -> None:
        """Ask, unless somebody just did. Takes `ASK_S` at most, and raises nothing but a cancellation."""
        key = (file, probe_name(endpoint.base_url, endpoint.model))
        locks = self._asking.setdefault(asyncio.get_running_loop(), {})
        async with locks.setdefault(key, asyncio.Lock()):
            if not self.is_due(file, endpoint):
                return
            from hermes.models.providers.server_facts import ServerFacts, auth_headers, look  # once a day

            before = self._told[key]
            # Whatever ends the question early, it is not put again with every call.
            self._told[key] = replace(before, until=self._now() + FAILED_S)
            try:
                async with asyncio.timeout(ASK_S):
                    facts = await look(self._http, endpoint.base_url, auth_headers(endpoint), endpoint.model)
            except (HermesError, TimeoutError) as error:
                _log.info("%s does not tell its window: %s", endpoint.base_url, error)
                if not isinstance(error, ProviderError) or error.status not in NO_LIST:
                    return
                facts = ServerFacts()
            except Exception:  # noqa: BLE001 - the border to somebody else's server
                _log.exception("what %s tells of itself cannot be read", endpoint.base_url)
                return
            window, now = facts.window(endpoint.model), self._now()
            is_final = endpoint.model not in facts.unloaded
            self._told[key] = replace(before, window=window, until=now + (DAY_S if is_final else UNLOADED_S))
        if is_final:
            await self._keep(key, asked_at=now, window=window)

    async def announce(self, file: str, endpoint: Endpoint) -> None:
        """A person has been told that nobody knows; never again, in any process."""
        key = (file, probe_name(endpoint.base_url, endpoint.model))
        self._told[key] = replace(self.told(file, endpoint), is_announced=True)
        await self._keep(key, is_announced=True)

    async def _keep(self, key: tuple[str, str], **changes: Any) -> None:
        file, name = Path(key[0]), key[1]
        try:
            await in_daemon_thread(
                lambda: keep_probe(file, name, replace(kept_probe(file, name) or ServerProbe(), **changes)), "windows"
            )
        except (HermesError, OSError) as error:
            _log.warning("what was learnt about a model's window cannot be kept: %s", error)


class Windows:
    """The windows of one agent's models. A window that a refusal named is the real one, as long as the agent lives."""

    def __init__(
        self, memory: WindowMemory | None = None, file: Path | None = None, assumed: int | None = None
    ) -> None:
        self._memory = memory
        self._file = None if file is None else str(file)  # which is cheaper to look up by than a path
        self._assumed = Window(assumed or context_section.Section().assumed_window, is_assumed=True)
        self._named: dict[str, int] = {}
        self._weighed: set[str] = set()  # models whose window is known, and was told if it is small

    def of(self, name: str, endpoint: Endpoint | None) -> Window:
        """What the model reads at once, as far as that is known now. One without an address has a name alone."""
        if self._named and (named := self._named.get(_key(name, endpoint))) is not None:
            return Window(named)
        if endpoint is None:
            return self._assumed
        told = self._told(endpoint).window if endpoint.asks_window else None
        tokens = told or endpoint.context_length
        return Window(tokens) if tokens else self._assumed

    def named(self, name: str, endpoint: Endpoint | None, tokens: int) -> None:
        """A refusal has named the window."""
        self._named[_key(name, endpoint)] = tokens

    def is_due(self, endpoint: Endpoint | None) -> bool:
        """Whether the server should be asked."""
        memory, file = self._memory, self._file
        if endpoint is None or not endpoint.asks_window or memory is None or file is None:
            return False
        return bool(endpoint.model) and endpoint.api_mode in ASK_MODES and memory.is_due(file, endpoint)

    async def ask(self, endpoint: Endpoint) -> None:
        """Ask the server, when that is due."""
        assert self._memory is not None
        assert self._file is not None
        await self._memory.ask(self._file, endpoint)

    def has_news(self, endpoint: Endpoint | None) -> bool:
        """Whether `announcement` may have something to say."""
        if endpoint is None or not endpoint.asks_window or not endpoint.model or self._memory is None:
            return False
        return not self._told(endpoint).is_announced and self.of(endpoint.model, endpoint).is_assumed

    async def announcement(self, endpoint: Endpoint) -> str:
        """What a person is told of an assumption, once per address and model."""
        assert self._memory is not None
        assert self._file is not None
        await self._memory.announce(self._file, endpoint)
        return (
            f"nobody says how much {endpoint.model} reads at once: {self._assumed.tokens:,} tokens are assumed. "
            "Set model.context_length if you know it"
        )

    def warning(self, name: str, endpoint: Endpoint | None) -> str:
        """What a person is told of a window that is small, once and as soon as it is known; empty otherwise."""
        key = _key(name, endpoint)
        if key in self._weighed:
            return ""
        window = self.of(name, endpoint)
        if window.is_assumed:
            return ""
        self._weighed.add(key)
        if window.tokens >= MIN_CONTEXT or (endpoint is not None and endpoint.provider == BOX):
            return ""
        return (
            f"{name} reads {window.tokens:,} tokens at most; work with tools wants {MIN_CONTEXT:,}. "
            "Raise the server's context length, or expect the conversation to be summed up often"
        )

    def _told(self, endpoint: Endpoint) -> Told:
        if self._memory is None or self._file is None:
            return NOTHING_TOLD
        return self._memory.told(self._file, endpoint)


async def beside(main: Coroutine[Any, Any, Result], aside: Coroutine[Any, Any, None]) -> Result:
    """What `main` returns or raises. `aside`, which raises nothing, is let go soon after."""
    failed: Exception | None = None
    async with asyncio.TaskGroup() as group:
        other = group.create_task(aside)
        try:
            result = await main
        except Exception as error:  # noqa: BLE001 - raised below as it is, not inside a group
            failed = error
        if not other.done():
            await asyncio.wait((other,), timeout=0 if failed else GRACE_S)
            other.cancel()
    if failed is not None:
        raise failed
    return result


def _key(name: str, endpoint: Endpoint | None) -> str:
    return probe_name(endpoint.base_url, endpoint.model) if endpoint is not None else name
