"""Decide about each host once per session: rules, then a question to the person; remember and tell what came of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from hermes.tools.network.denied_hosts import DeniesHost, denies_here, denies_nothing
from hermes.tools.network.host_rules import HostRules
from hermes.tools.network.wish import HostWish, place_of

log = logging.getLogger(__name__)
_MOST_TOLD = 10
_MOST_KEPT = 2000
MOST_QUESTIONS = 20  # in one call: nobody reads a hundred of them
MOST_NOES = 5  # one after the other in a call: who says no so often has said what there is to say


DecidedBy: TypeAlias = Literal["rule", "person", "nobody"]
"""Who has spoken about a host: a rule, a person, or neither."""


class HostAnswer(Struct, frozen=True):
    """The word on one host: whether it may be reached, for how long that holds, and why not."""

    allowed: bool
    lasts: Literal["session", "call"] = "session"
    why: str = ""
    who: str = ""  # whose connection it is, where it is not that of the call which is told
    by: DecidedBy = "nobody"
    was_asked: bool = False  # somebody was shown a question, and may have answered


WITHDRAWN = HostAnswer(allowed=False, lasts="call", why="the program that wanted it did not wait for the user's word")
DENIED = "a rule of the user's denies"
Ask: TypeAlias = Callable[[bool], Awaitable[HostAnswer]]
"""`ask(may_ask)`: what was granted before counts in any case, and a person is asked only where that may be."""
AskHost = Callable[[HostWish], Awaitable[HostAnswer]]
"""Asks the person through the gate. Whatever goes wrong there is a no."""


class HostDesk:
    """The decisions of one session. It lives on the loop of its network; `told` may be called from any thread."""

    def __init__(
        self, rules: HostRules, local_ports: frozenset[int] = frozenset(), denies: DeniesHost = denies_nothing
    ) -> None:
        self.rules = rules
        self.local_ports = local_ports
        self._denies = denies
        self._known: dict[str, HostAnswer] = {}
        self._asked: dict[str, asyncio.Future[HostAnswer]] = {}
        self._one_by_one = asyncio.Lock()  # guards the person: one question at a time
        self._questions = 0  # of this call
        self._noes = 0  # one after the other
        self._silence = ""  # why nobody is asked any more in this call
        self._notes: list[str] = []
        self.granted: dict[str, str] = {}  # what was reached, and why it might be
        self.refused: dict[str, str] = {}

    async def may_reach(self, host: str, port: int, ask: Ask) -> HostAnswer:
        """Whether a program may reach `host`; `ask` is used at most once at a time for one host."""
        place = place_of(host, port)
        if self._denies(host, port):
            return self._denied(place)
        if self.rules.passes(host, port):
            self._keep(self.granted, place, "by the settings, a remote or a package index")
            return HostAnswer(allowed=True)
        return await self._answer(host, place, ask)

    async def may_reach_local(self, port: int, ask: Ask) -> HostAnswer:
        """Whether a program may reach a port of this machine's own loopback."""
        place = f"127.0.0.1:{port}"
        if denies_here(self._denies, port):
            return self._denied(place)
        if port in self.local_ports:
            self._keep(self.granted, place, "terminal.network_local")
            return HostAnswer(allowed=True)
        return await self._answer(place, place, ask)

    def begin_call(self) -> None:
        """Forget what held for one call."""
        self._questions, self._noes, self._silence = 0, 0, ""
        for key, answer in list(self._known.items()):
            if answer.lasts == "call":
                del self._known[key]

    def note(self, sentence: str) -> None:
        """Have something told with the next result."""
        if sentence not in self._notes and len(self._notes) <= _MOST_TOLD:
            self._notes.append(sentence if len(self._notes) < _MOST_TOLD else "and more hosts")

    def refuse(self, place: str, why: str, grant: str = "", who: str = "") -> None:
        """Keep and tell that a place was not reached, and how a person could grant it, where that may be said."""
        self._keep(self.refused, place, why)
        how = f" (the user can grant it: {grant})" if grant else ""
        self.note(f"the network refused {place}{f' to {who}' if who else ''}: {why.rstrip('.')}{how}")

    def told(self) -> tuple[str, ...]:
        """What there is to tell since the last time."""
        notes, self._notes = self._notes, []
        return tuple(notes)

    async def _answer(self, key: str, place: str, ask: Ask) -> HostAnswer:
        answer = self._known.get(key)
        if answer is None:
            answer = await self._ask_once(key, ask)
        if answer.allowed:
            self.refused.pop(place, None)
            self._keep(self.granted, place, "by a yes")
        else:
            # What a person or a rule of theirs refused is not told with how it could be had all the same.
            grant = "" if answer.by != "nobody" else _grant(key, place)
            self.refuse(place, answer.why, grant, answer.who)
        return answer

    def _denied(self, place: str) -> HostAnswer:
        answer = HostAnswer(allowed=False, why=f"{DENIED} it", by="rule")
        self.refuse(place, answer.why)
        return answer

    async def _ask_once(self, key: str, ask: Ask) -> HostAnswer:
        """Others who want the same host wait for the same answer."""
        waiting = self._asked.get(key)
        if waiting is not None:
            return await asyncio.shield(waiting)
        waiting = self._asked[key] = asyncio.get_running_loop().create_future()
        answer = HostAnswer(allowed=False, lasts="call", why="nobody answered")
        try:
            async with self._one_by_one:
                answer = await ask(not self._silence)
                if self._silence and not answer.allowed and answer.by == "nobody":
                    answer = structs.replace(answer, why=self._silence)
                self._count(answer)
        except Exception:  # the border to whoever asks: a failure there is a no
            log.exception("asking about a host failed")
        finally:
            del self._asked[key]
            anybodys = structs.replace(answer, who="")  # of others who want it, nobody has looked who they are
            waiting.set_result(anybodys)
        if len(self._known) < _MOST_KEPT and answer is not WITHDRAWN:
            self._known[key] = anybodys
        return answer

    def _count(self, answer: HostAnswer) -> None:
        if not answer.was_asked:
            return
        self._questions += 1
        self._noes = 0 if answer.allowed else self._noes + 1
        if answer.by == "nobody":  # each further question would keep the command waiting as long
            self._silence = "the last question of this call was not answered"
        elif self._noes >= MOST_NOES:
            self._silence = "the user has refused several hosts of this call"
        elif self._questions >= MOST_QUESTIONS:
            self._silence = "too many hosts were asked about in this call"

    def _keep(self, table: dict[str, str], place: str, why: str) -> None:
        if len(table) < _MOST_KEPT:
            table.setdefault(place, why)


def _grant(key: str, place: str) -> str:
    """How a person grants it."""
    if key == place:
        return f"terminal.network_local: [{place.rpartition(':')[2]}]"
    return f"--allow-host {key} or terminal.network_hosts"
