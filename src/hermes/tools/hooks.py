"""The hook bus of a session. Until somebody listens it is an empty set; the rest is `hermes.tools.hook_bus`."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hermes.seams import HookBus
from hermes.tools.calling.pool import DaemonPool
from hermes.types import JsonObject

if TYPE_CHECKING:
    from hermes.tools.hook_bus import Approve, Hook, HookTable

HookKind: TypeAlias = Literal["policy", "observer", "transform"]
HOOK_LIMIT_S = 10.0
BEFORE = ("pre_tool_call", "edit_approval")
AFTER = ("post_tool_call", "transform_tool_result")
AROUND = (*BEFORE, *AFTER, "tool_request", "tool_execution")


class Hooks:
    """`HookBus` over callbacks, sync or async, that are handed copies of the payload's keys they name.

    A policy refuses with `{"action": "block", "message": text}`, or has a person asked with `approve`. One that raises,
    asks for an unknown action, or takes too long refuses too, and so does one that was announced with `require` and
    never came. Observers are told beside the call; those and transforms that fail are listed in `faults`.
    """

    def __init__(self, pool: DaemonPool | None = None) -> None:
        self._pool = pool
        self._table: HookTable | None = None  # made for the first callback
        self.heard: set[str] = set()  # hooks and middleware that somebody listens to
        self.faults: dict[tuple[str, str], str] = {}
        self.tell: Callable[[str], None] | None = None  # of a fault, once each
        self.keep: Callable[[], None] | None = None  # what went wrong, when the bus is closed

    @property
    def table(self) -> "HookTable":
        """Who does the work, once there is some."""
        if self._table is None:
            from hermes.tools.hook_bus import HookTable  # paid by the first hook

            self._table = HookTable(self, self._pool or DaemonPool(size=8, name="hermes-hook"))
        return self._table

    def add(
        self, hook: str, callback: Callable[..., Any], *, owner: str, kind: HookKind, timeout_s: float = HOOK_LIMIT_S
    ) -> None:
        """Call `callback` for every `hook` event from now on."""
        self.table.add(hook, callback, owner=owner, kind=kind, timeout_s=timeout_s)

    def add_middleware(
        self, kind: str, callback: Callable[..., Any], *, owner: str, timeout_s: float = HOOK_LIMIT_S
    ) -> None:
        """Put `callback` around every call or request of this kind from now on."""
        self.table.add_middleware(kind, callback, owner=owner, timeout_s=timeout_s)

    def middleware(self, kind: str) -> "Sequence[Hook]":
        """Those of this kind, the outermost first."""
        return self._table.middleware(kind) if self._table is not None else ()

    def require(self, hook: str, owner: str) -> None:
        """Refuse every `hook` until a policy of `owner` is there: a guard that failed to load must not be a gap."""
        self.table.require(hook, owner)

    def remove(self, owner: str) -> None:
        """Forget everything of `owner`, also that it was required."""
        self.table.remove(owner)

    async def allow(self, hook: str, payload: JsonObject, approve: "Approve | None" = None) -> str | None:
        """None to go on, else the reason to refuse. `approve` asks a person; without it there is nobody."""
        return await self._table.allow(hook, payload, approve) if self._table is not None else None

    async def observe(self, hook: str, payload: JsonObject) -> None:
        """Tell the observers; nobody waits for them."""
        if self._table is not None:
            self._table.notify(hook, payload)

    async def transform(self, hook: str, value: str, payload: JsonObject) -> str:
        """`value` as the callbacks leave it, each after the other; one that fails changes nothing."""
        return await self._table.transform(hook, value, payload) if self._table is not None else value

    async def gather(self, hook: str, payload: JsonObject) -> list[Any]:
        """What the callbacks answer, in order, without None; one that fails answers nothing."""
        return await self._table.gather(hook, payload) if self._table is not None else []

    @property
    def lost(self) -> dict[str, int]:
        """By owner, the events that did not fit the queue of its observers."""
        return self._table.lost if self._table is not None else {}

    async def close(self) -> None:
        """Let the observers take what waits for them, for a short while."""
        if self._table is not None:
            await self._table.close()
            if self.keep is not None:
                self.keep()


def nobody_listens(hooks: HookBus, names: tuple[str, ...]) -> bool:
    """Whether a payload for these need not even be made."""
    return isinstance(hooks, Hooks) and hooks.heard.isdisjoint(names)
