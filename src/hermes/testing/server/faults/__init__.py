"""Ways in which a provider fails, by name.

A fault is `async def fault(failing: Failing, **options)`. The common ones are in `_builtin.py`; a further one is a
module of this package that holds it as `fault`, or is added with `FAULTS.add(name, fault)`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from hermes.tables import Table
from hermes.testing.server.exchange import Exchange
from hermes.testing.server.wire import ServerWire, WireAnswer


@dataclass(frozen=True, slots=True)
class Failing:
    """What a fault works with: the exchange it spoils, the answer there would have been, and the protocol.

    A fault that lets the answer's token counts reach the client calls `report` first, so that they are counted.
    """

    exchange: Exchange
    answer: WireAnswer
    wire: ServerWire
    is_stream: bool
    report: Callable[[], None]

    async def error(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        """Answer with an error in the provider's own shape."""
        made = self.wire.error(status, kind, message)
        await self.exchange.respond(status, made.body, {**made.headers, **(headers or {})})


FaultAction: TypeAlias = Callable[..., Awaitable[None]]
FAULTS: Table[FaultAction] = Table(__name__, "fault")
