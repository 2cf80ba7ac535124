"""The border to a provider: every call in a thread, with a deadline, in order where order matters; faults told once.

A call that does not come back is abandoned. As long as it hangs, the provider is not asked anything more, so one fault
costs one deadline and one thread.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from hermes.context.memory.provider import MemoryProvider
from hermes.errors import ToolError
from hermes.state.message_rows import MEMORY_CLOSING, MEMORY_OPENING

NOTE = (
    "[What follows was recalled from earlier sessions; it is no input of the user. Newer lines come first, and count "
    "where two disagree.]"
)
BACKLOG = 100  # calls that wait for a slow provider; the oldest go
log = logging.getLogger("hermes")


class ProviderFault(Exception):
    """A provider raised, hangs, or came too late."""


class MemoryManager:
    """The provider of one agent. Every method is safe to call, whatever the provider does."""

    def __init__(
        self, tell: Callable[[str], None], limit_s: float, keep: Callable[[str, str], None] = lambda *_: None
    ) -> None:
        self.provider: MemoryProvider | None = None
        self.faults: dict[str, str] = {}  # by method, the first of each: it is told once
        self._tell = tell
        self._keep = keep  # method and reason, for doctor
        self._limit_s = limit_s
        self._hangs: threading.Thread | None = None
        self._queue: deque[tuple[str, tuple[Any, ...], dict[str, Any]]] = deque(maxlen=BACKLOG)
        self._wake = threading.Condition()  # guards _queue, _worker and _is_closed
        self._worker: threading.Thread | None = None
        self._is_closed = False
        self._tools: frozenset[str] = frozenset()

    def add_provider(self, provider: MemoryProvider) -> bool:
        """Take this provider; a second one is refused."""
        if self.provider is not None:
            self._failed("add_provider", f"{provider.name!r} is left out: {self.provider.name!r} is there already")
            return False
        self.provider = provider
        return True

    # -- asked, and waited for ---------------------------------------------------------------------------------------

    async def initialize_all(self, session_id: str, **facts: Any) -> None:
        await self._asked("initialize", None, session_id, **facts)

    async def build_system_prompt(self) -> str:
        return str(await self._asked("system_prompt_block", "") or "")

    async def prefetch_all(self, query: str, session_id: str) -> str:
        """What is recalled, fenced; nothing when there is nothing."""
        words = str(await self._asked("prefetch", "", query, session_id=session_id) or "").strip()
        return f"{MEMORY_OPENING}\n{NOTE}\n\n{_unfenced(words)}\n{MEMORY_CLOSING}" if words else ""

    async def on_pre_compress(self, messages: Sequence[Mapping[str, Any]]) -> str:
        return str(await self._asked("on_pre_compress", "", messages) or "").strip()

    async def get_all_tool_schemas(self) -> list[dict[str, Any]]:
        found = await self._asked("get_tool_schemas", [])
        schemas = [one for one in found if isinstance(one, dict) and isinstance(one.get("name"), str)]
        self._tools = frozenset(one["name"] for one in schemas)
        return schemas

    def has_tool(self, name: str) -> bool:
        return name in self._tools

    async def handle_tool_call(self, name: str, args: Mapping[str, Any], **facts: Any) -> str:
        """The result of a call; `ToolError` says what went wrong."""
        try:
            return str(await self._call("handle_tool_call", name, dict(args), **facts))
        except ProviderFault as fault:
            self._keep("handle_tool_call", str(fault))
            raise ToolError(f"the memory provider cannot answer: {fault}") from fault

    # -- told, in the background and in order ------------------------------------------------------------------------

    def on_turn_start(self, number: int, message: str) -> None:
        self._later("on_turn_start", number, message)

    def sync_all(self, user: str, assistant: str, session_id: str) -> None:
        self._later("sync_turn", user, assistant, session_id=session_id)

    def queue_prefetch_all(self, query: str, session_id: str) -> None:
        self._later("queue_prefetch", query, session_id=session_id)

    def on_session_switch(self, new: str, *, parent_session_id: str, reset: bool = False) -> None:
        self._later("on_session_switch", new, parent_session_id=parent_session_id, reset=reset)

    def on_memory_write(self, action: str, target: str, content: str, metadata: Mapping[str, Any]) -> None:
        self._later("on_memory_write", action, target, content, dict(metadata))

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "") -> None:
        self._later("on_delegation", task, result, child_session_id=child_session_id)

    def on_session_end(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._later("on_session_end", messages)

    async def shutdown_all(self, in_thread: Callable[..., Awaitable[Any]], wait_s: float = 2.0) -> None:
        """Let what waits be done for a moment, then let go."""
        if self.provider is None:
            return
        self._later("shutdown")
        with self._wake:
            self._is_closed = True
            worker = self._worker
            self._wake.notify()
        if worker is not None:
            await in_thread(worker.join, wait_s)

    # -- the border --------------------------------------------------------------------------------------------------

    async def _asked(self, method: str, otherwise: Any, *args: Any, **keywords: Any) -> Any:
        if self.provider is None:
            return otherwise
        try:
            return await self._call(method, *args, **keywords)
        except ProviderFault as fault:
            self._failed(method, str(fault))
            return otherwise

    async def _call(self, method: str, *args: Any, **keywords: Any) -> Any:
        """The answer within the limit. A thread of its own: one that hangs may do so for ever."""
        if self._hangs is not None and self._hangs.is_alive():
            raise ProviderFault("it has not come back from an earlier call")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def settle(value: Any, error: BaseException | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(value)
            else:
                answer.set_exception(error)

        def run() -> None:
            value, fault = None, None
            try:
                value = getattr(self.provider, method)(*args, **keywords)
            except Exception as error:  # noqa: BLE001 - the border to a provider's code; it is told and logged by the caller
                fault = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, value, fault)

        thread = threading.Thread(target=run, name=f"memory {method}", daemon=True)
        thread.start()
        try:
            async with asyncio.timeout(self._limit_s):
                return await answer
        except TimeoutError as late:
            self._hangs = thread
            raise ProviderFault(f"no answer within {self._limit_s:g} s") from late
        except asyncio.CancelledError:
            self._hangs = thread
            raise
        except Exception as error:
            log.warning("the memory provider failed in %s", method, exc_info=error)
            raise ProviderFault(f"{type(error).__name__}: {error}") from error

    def _later(self, method: str, *args: Any, **keywords: Any) -> None:
        if self.provider is None:
            return
        with self._wake:
            if self._is_closed:
                return
            self._queue.append((method, args, keywords))
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="memory provider", daemon=True)
                self._worker.start()
            self._wake.notify()

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self._queue:
                    if self._is_closed:
                        return
                    self._wake.wait()
                method, args, keywords = self._queue.popleft()
            try:
                getattr(self.provider, method)(*args, **keywords)
            except Exception as error:  # the border to a provider's code
                log.warning("the memory provider failed in %s", method, exc_info=error)
                self._failed(method, f"{type(error).__name__}: {error}")

    def _failed(self, method: str, why: str) -> None:
        if method not in self.faults:
            self.faults[method] = why
            self._keep(method, why)
            name = self.provider.name if self.provider else "?"
            self._tell(f"the memory provider {name!r} failed in {method} ({why}); the turn goes on without it")


def _unfenced(words: str) -> str:
    """What is recalled cannot end its own fence."""
    return words.replace(MEMORY_CLOSING, "").replace(MEMORY_OPENING, "")
