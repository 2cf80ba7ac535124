"""Decide about each host once per session: rules, then a question to the person; remember and tell what came of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec import Struct

from hermes.tools.network.host_rules import HostRules
from hermes.tools.network.wish import HostWish

log = logging.getLogger(__name__)
_MOST_TOLD = 10
_MOST_KEPT = 2000
MOST_QUESTIONS = 20  # in one call: nobody reads a hundred of them


class HostAnswer(Struct, frozen=True):
    """The word on one host: whether it may be reached, for how long that holds, and why not."""

    allowed: bool
    lasts: Literal["session", "call"] = "session"
    why: str = ""


_TOO_MANY = HostAnswer(allowed=False, lasts="call", why="too many hosts were asked about in this call")
AskHost = Callable[[HostWish], Awaitable[HostAnswer]]
"""Asks the person through the gate. Whatever goes wrong there is a no."""


class HostDesk:
    """The decisions of one session. It lives on the loop of its network; `told` may be called from any thread."""

    def __init__(self, rules: HostRules, local_ports: frozenset[int] = frozenset()) -> None:
        self.rules = rules
        self.local_ports = local_ports
        self._known: dict[str, HostAnswer] = {}
        self._asked: dict[str, asyncio.Future[HostAnswer]] = {}
        self._one_by_one = asyncio.Lock()  # guards the person: one question at a time
        self._questions = 0  # of this call
        self._notes: list[str] = []
        self.granted: dict[str, str] = {}  # what was reached, and why it might be
        self.refused: dict[str, str] = {}

    async def may_reach(self, host: str, port: int, ask: Callable[[], Awaitable[HostAnswer]]) -> HostAnswer:
        """Whether a program may reach `host`; `ask` is used at most once at a time for one host."""
        if self.rules.passes(host, port):
            self._keep(self.granted, f"{host}:{port}", "by the settings, a remote or a package index")
            return HostAnswer(allowed=True)
        return await self._answer(host, f"{host}:{port}", ask)

    async def may_reach_local(self, port: int, ask: Callable[[], Awaitable[HostAnswer]]) -> HostAnswer:
        """Whether a program may reach a port of this machine's own loopback."""
        place = f"127.0.0.1:{port}"
        if port in self.local_ports:
            self._keep(self.granted, place, "terminal.network_local")
            return HostAnswer(allowed=True)
        return await self._answer(place, place, ask)

    def begin_call(self) -> None:
        """Forget what held for one call."""
        self._questions = 0
        for key, answer in list(self._known.items()):
            if answer.lasts == "call":
                del self._known[key]

    def note(self, sentence: str) -> None:
        """Have something told with the next result."""
        if sentence not in self._notes and len(self._notes) <= _MOST_TOLD:
            self._notes.append(sentence if len(self._notes) < _MOST_TOLD else "and more hosts")

    def told(self) -> tuple[str, ...]:
        """What there is to tell since the last time."""
        notes, self._notes = self._notes, []
        return tuple(notes)

    async def _answer(self, key: str, place: str, ask: Callable[[], Awaitable[HostAnswer]]) -> HostAnswer:
        answer = self._known.get(key)
        if answer is None:
            answer = await self._ask_once(key, ask)
        if answer.allowed:
            self.refused.pop(place, None)
            self._keep(self.granted, place, "by a yes")
        else:
            self._keep(self.refused, place, answer.why)
            self.note(refusal_note(key, place, answer.why))
        return answer

    async def _ask_once(self, key: str, ask: Callable[[], Awaitable[HostAnswer]]) -> HostAnswer:
        """Others who want the same host wait for the same answer."""
        waiting = self._asked.get(key)
        if waiting is not None:
            return await asyncio.shield(waiting)
        waiting = self._asked[key] = asyncio.get_running_loop().create_future()
        answer = HostAnswer(allowed=False, lasts="call", why="nobody answered")
        try:
            async with self._one_by_one:
                self._questions += 1
                answer = await ask() if self._questions <= MOST_QUESTIONS else _TOO_MANY
        except Exception:  # the border to whoever asks: a failure there is a no
            log.exception("asking about a host failed")
        finally:
            del self._asked[key]
            waiting.set_result(answer)
        if len(self._known) < _MOST_KEPT:
            self._known[key] = answer
        return answer

    def _keep(self, table: dict[str, str], place: str, why: str) -> None:
        if len(table) < _MOST_KEPT:
            table.setdefault(place, why)


def refusal_note(key: str, place: str, why: str) -> str:
    """What the model and the person read about a refused host."""
    if key == place:
        grant = f"terminal.network_local: [{place.rpartition(':')[2]}]"
    else:
        grant = f"--allow-host {key} or terminal.network_hosts"
    return f"the network refused {place}: {why.rstrip('.')} (the user can grant it: {grant})"
