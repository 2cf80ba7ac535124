"""Serve a session's network from the runtime: names, connections, ports of either loopback. One thread, one loop.

Programs resolve every name here and get an address that leads back here, so each connection comes with the name it was
meant for. No name is looked up and no packet sent for a host before it is granted.
"""

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from ipaddress import ip_address
from typing import Any

from msgspec import Struct, structs

from hermes.config.host_entry import is_host_name, plain_name
from hermes.errors import ToolError
from hermes.tools.network import dns_message, proxy_words
from hermes.tools.network.denied_hosts import DeniesHost, denies_nothing
from hermes.tools.network.held_packets import IDLE_S, Begun, HeldPackets
from hermes.tools.network.host_desk import DENIED, WITHDRAWN, AskHost, HostAnswer, HostDesk
from hermes.tools.network.host_rules import HostRules
from hermes.tools.network.local_ports import LocalPorts
from hermes.tools.network.made_up_names import MOST_NAMES, MadeUpNames
from hermes.tools.network.relay import Relay, fit, refuse
from hermes.tools.network.space import PROXY_PORT, MakesNetworks, NetworkSpace, more_sockets
from hermes.tools.network.waiting_programs import WaitingPrograms
from hermes.tools.network.wish import NO_PROGRAM, ConnectingProgram, HostWish, meant_to_send, place_of, program_of
from hermes.tools.supervisor.threads import in_daemon_thread
from hermes.tools.web.addresses import is_metadata, look_up, numeric, real_address

log = logging.getLogger(__name__)
_CONNECT_LIMIT_S = 15.0
_FIRST_WORDS_S = 30.0
_PEEK = 2048
_MOST_CONNECTIONS = 1000
_SHARE = 8  # of the files that this process may have open: a connection takes several, and others live here, too
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_S = 0.1
_NOBODY = HostAnswer(allowed=False, lasts="call", why="it needs the user's yes, and no call runs in which to ask")


class NetworkWishes(Struct, frozen=True, kw_only=True):
    """What the settings say about a session's network."""

    rules: HostRules = HostRules()
    local_ports: tuple[int, ...] = ()
    denies: DeniesHost = denies_nothing
    lookup: Callable[[str, int], Any] = look_up


class SessionNetwork:
    """One session's network, from the first command to the end of the session."""

    def __init__(self, space: NetworkSpace, supervisor: MakesNetworks, wishes: NetworkWishes) -> None:
        self.space = space
        self.desk = HostDesk(wishes.rules, frozenset(wishes.local_ports), wishes.denies)
        self._relay = Relay()
        self._programs = WaitingPrograms(self._is_held)
        self.ports = LocalPorts(space, self.desk, self._relay)
        self.ports.refill = self._refill_soon
        self._supervisor = supervisor
        self._wishes = wishes
        self._names = MadeUpNames()
        self._held_packets = HeldPackets(space, self._take_from, self._tell_taken)
        self._listeners: list[socket.socket] = []
        self._connections: set[socket.socket] = set()
        self._asker: tuple[asyncio.AbstractEventLoop, AskHost] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._group: asyncio.TaskGroup | None = None
        self._over: asyncio.Event | None = None
        self._most_connections = min(_MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _SHARE)
        self._is_refilled = True
        self._is_tidied = False  # idle listeners are looked for

    # -- from the session's own loop -------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to serve; returns when that is so."""
        is_served = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve(is_served)), name="hermes-network", daemon=True).start()
        is_served.wait(10.0)

    def asks(self, ask: AskHost) -> None:
        """Who is asked about hosts from now on, on the running loop; a new call begins."""
        self._asker = asyncio.get_running_loop(), ask
        self._call(self.desk.begin_call)
        self._call(self._offer_services)

    def watch_ports(self) -> None:
        """A background process was started: offer what it listens on to the person."""
        self._call(self.ports.watch)

    def lines(self) -> tuple[str, ...]:
        """What came of it so far, for a person."""
        told = [f"granted    {place} ({why})" for place, why in sorted(self.desk.granted.items())]
        told += [f"refused    {place} ({why})" for place, why in sorted(self.desk.refused.items())]
        told += [f"offered    {where}" for _, where in sorted(self.ports.offered.items())]
        return tuple(told)

    def close(self) -> None:
        """Serve nobody any more."""
        if self._over is not None:
            self._call(self._over.set)

    def _call(self, function: Callable[[], object]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # closed just now
                self._loop.call_soon_threadsafe(function)

    # -- on the network's loop ---------------------------------------------------------------------------------------

    async def _serve(self, is_served: threading.Event) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with asyncio.TaskGroup() as self._group:
                for word, bound in self.space.bound.items():
                    self._attend(word, bound)
                self._loop.add_reader(self.space.wire, self._look_at_wire)
                for network in self._wishes.rules.networks():
                    self.space.routes.lead_here(str(network.network_address), network.prefixlen)
                self._offer_services()
                served = self._group.create_task(self.ports.serve(self._spawn))
                is_served.set()
                await self._over.wait()
                served.cancel()
                for task in asyncio.all_tasks():
                    if task is not asyncio.current_task():
                        task.cancel()
        finally:
            is_served.set()
            for each in (*self._listeners, *self._connections):  # also what was taken and not yet looked at
                each.close()
            self._held_packets.close()
            with contextlib.suppress(OSError):
                self.space.routes.refuse_all()
            self.ports.close()
            self.space.close()

    def _attend(self, word: str, bound: socket.socket) -> None:
        assert self._loop is not None
        bound.setblocking(False)
        kind, _, port = word.split()
        if kind == "udp":
            self._loop.add_reader(bound, self._answer_datagram, bound)
        elif port == "53":
            self._loop.add_reader(bound, self._accept, bound, self._answer_stream)
        elif int(port) == PROXY_PORT:
            self._loop.add_reader(bound, self._accept, bound, self._lead)
        else:
            self._loop.add_reader(bound, self._accept, bound, self._carry)

    def _listen(self, host: str, port: int) -> None:
        made, _ = self.space.listen(host, port)
        if made is not None:
            assert self._loop is not None
            self._listeners.append(made)
            self.ports.own.add((host, port))
            self._loop.add_reader(made, self._accept, made, self._carry)
        self._refill_soon()

    def _refill_soon(self) -> None:
        if self.space.few_left and self._is_refilled:
            self._is_refilled = False
            self._spawn(self._refill)

    async def _refill(self) -> None:
        try:
            await more_sockets(self._supervisor, self.space)
        except ToolError as error:
            log.warning("%s", error)
        finally:
            self._is_refilled = True

    def _spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        assert self._group is not None
        self._group.create_task(self._guarded(work, args))

    async def _guarded(self, work: Callable[..., Coroutine[Any, Any, None]], args: tuple[Any, ...]) -> None:
        try:
            await work(*args)
        except (OSError, EOFError, TimeoutError) as error:
            log.debug("a connection ended: %s", error)
        except Exception:  # the border to programs inside: a failure of one connection ends that connection
            log.exception("a connection of the session's network failed")

    def _accept(self, listener: socket.socket, then: Callable[[socket.socket], Coroutine[Any, Any, None]]) -> None:
        with contextlib.suppress(OSError):
            try:
                connection, _ = listener.accept()
            except OSError as error:
                if error.errno in _EXHAUSTED:  # the connection waits, and we would be called again at once
                    self._loop_of().remove_reader(listener)
                    self._loop_of().call_later(_PAUSE_S, self._accept_again, listener, then)
                raise
            if len(self._connections) >= self._most_connections:
                self.desk.note(f"more than {self._most_connections} connections at once were refused")
                refuse(connection)
                return
            self._connections.add(connection)
            self._spawn(self._held, fit(connection), then)

    def _accept_again(
        self, listener: socket.socket, then: Callable[[socket.socket], Coroutine[Any, Any, None]]
    ) -> None:
        if listener.fileno() >= 0:
            self._loop_of().add_reader(listener, self._accept, listener, then)

    async def _held(
        self, connection: socket.socket, then: Callable[[socket.socket], Coroutine[Any, Any, None]]
    ) -> None:
        try:
            await then(connection)
        finally:
            self._connections.discard(connection)
            if connection.fileno() >= 0:
                refuse(connection)

    # -- names -------------------------------------------------------------------------------------------------------

    def _answer_datagram(self, bound: socket.socket) -> None:
        for _ in range(64):
            try:
                message, sender = bound.recvfrom(4096)
                bound.sendto(self._answered(message), sender)
            except OSError:
                return

    async def _answer_stream(self, connection: socket.socket) -> None:
        async with asyncio.timeout(_FIRST_WORDS_S):
            while True:
                size = int.from_bytes(await _exactly(connection, 2), "big")
                text = self._answered(await _exactly(connection, size))
                await _loop().sock_sendall(connection, len(text).to_bytes(2, "big") + text)

    def _answered(self, message: bytes) -> bytes:
        question = dns_message.read_question(message)
        if question is None:
            return dns_message.refusal(message)
        name = plain_name(question.name)
        if name == "localhost" or name.endswith(".localhost"):
            return dns_message.answer(question, bytes((127, 0, 0, 1)) if question.kind == dns_message.A else None)
        if name.endswith((".in-addr.arpa", ".ip6.arpa")):
            return dns_message.answer(question, error=dns_message.NO_SUCH_NAME)
        made = self._address(name)
        if made is None:
            return dns_message.answer(question, error=dns_message.NO_SUCH_NAME)
        return dns_message.answer(question, socket.inet_aton(made) if question.kind == dns_message.A else None)

    def _address(self, name: str) -> str | None:
        found = self._names.address_of(name)
        if found is None:
            if self._names.is_full:
                self.desk.note(f"no more than {MOST_NAMES} names of hosts can be looked up in a session")
            return None
        address, is_new = found
        if is_new:
            self.space.routes.lead_here(address)
        return address

    # -- connections to any port -------------------------------------------------------------------------------------

    def _look_at_wire(self) -> None:
        self._held_packets.look()
        self._refill_soon()

    def _take_from(self, listener: socket.socket) -> None:
        self.ports.own.add(listener.getsockname())
        self._loop_of().add_reader(listener, self._accept, listener, self._carry_held)
        if not self._is_tidied:
            self._is_tidied = True
            self._loop_of().call_later(IDLE_S, self._tidy)

    def _tidy(self) -> None:
        if self._over is None or self._over.is_set():
            return
        for listener in self._held_packets.idle():
            self.ports.own.discard(listener.getsockname())
            self._loop_of().remove_reader(listener)
            listener.close()
        self._is_tidied = self._held_packets.is_listening
        if self._is_tidied:
            self._loop_of().call_later(IDLE_S, self._tidy)

    async def _carry_held(self, connection: socket.socket) -> None:
        self._held_packets.used(*connection.getsockname()[:2])
        await self._carry(connection)

    def _tell_taken(self, begun: Begun) -> None:
        name = self._names.name_of(begun.address) or begun.address
        self.desk.note(
            f"{name}:{begun.port} could not be reached, since a program of this session listens on port {begun.port} "
            f"of every address (let it listen on 127.0.0.1, or go through the proxy at 127.0.0.1:{PROXY_PORT})"
        )

    # -- connections -------------------------------------------------------------------------------------------------

    async def _carry(self, connection: socket.socket) -> None:
        """A connection to a made-up address or one that a rule names, or to our own loopback in the namespace."""
        address, port = connection.getsockname()[:2]
        name = self._names.name_of(address)
        if name is not None:
            await self._reach(connection, name, port, b"", b"")
        elif not address.startswith("127."):
            await self._reach(connection, address, port, b"", b"")
        elif port >= 1024 or port in self.desk.local_ports:
            await self._reach_local(connection, port)
        else:
            refuse(connection)

    async def _lead(self, connection: socket.socket) -> None:
        """A connection to the proxy's port."""
        loop = _loop()
        try:
            async with asyncio.timeout(_FIRST_WORDS_S):
                asked = await proxy_words.read_request(
                    lambda size: _exactly(connection, size), lambda text: loop.sock_sendall(connection, text)
                )
        except proxy_words.NotUnderstood as wrong:
            await loop.sock_sendall(connection, wrong.answer)
            connection.close()
            return
        host = self._names.name_of(asked.host) or numeric(asked.host) or asked.host
        is_own = host == "localhost" or host.endswith(".localhost") or host.startswith("127.")
        if is_own or not (is_host_name(host) or numeric(host)):
            await loop.sock_sendall(connection, asked.refused)  # their own loopback needs no proxy
            connection.close()
            return
        await self._reach(connection, host, asked.port, asked.led, asked.refused)

    async def _reach(self, connection: socket.socket, host: str, port: int, led: bytes, refused: bytes) -> None:
        other = None
        if numeric(host) == host and not self._wishes.rules.usable(host, port, [host]):
            self._refuse_private(host, port, [host])  # where a yes opens nothing, nobody is asked
        else:
            wish = HostWish(host=host, port=port)
            with self._programs.waiting(wish.host, connection):
                answer = await self.desk.may_reach(host, port, lambda may_ask: self._ask(connection, wish, may_ask))
            other = await self._connected(host, port) if answer.allowed else None
        if other is None:
            if refused:
                await _loop().sock_sendall(connection, refused)
            refuse(connection)
            return
        with contextlib.closing(other):
            if led:
                await _loop().sock_sendall(connection, led)
            await self._relay.carry(connection, other)
            connection.close()

    async def _reach_local(self, connection: socket.socket, port: int) -> None:
        wish = HostWish(host="127.0.0.1", port=port, kind="local")
        with self._programs.waiting(wish.place, connection):
            answer = await self.desk.may_reach_local(port, lambda may_ask: self._ask(connection, wish, may_ask))
        if not answer.allowed:
            refuse(connection)
            return
        with contextlib.closing(socket.socket()) as other:
            await _loop().sock_connect(fit(other), ("127.0.0.1", port))
            await self._relay.carry(connection, other)
            connection.close()

    async def _connected(self, host: str, port: int) -> socket.socket | None:
        """A connection to a granted host, at an address that was looked at; None when there is none, which is told."""
        place = place_of(host, port)
        found = [host] if numeric(host) == host else await in_daemon_thread(self._wishes.lookup, host, port)
        usable = self._wishes.rules.usable(host, port, found)
        if found and not usable:
            self._refuse_private(host, port, found)
            return None
        if any(self._wishes.denies(address, port) for address in usable):
            self.desk.refuse(place, f"it leads to an address that {DENIED}")
            return None
        why = "the name is not known" if not found else ""
        for address in usable:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            other = fit(socket.socket(family, socket.SOCK_STREAM))
            try:
                async with asyncio.timeout(_CONNECT_LIMIT_S):
                    await _loop().sock_connect(other, (address, port))
            except (OSError, TimeoutError) as error:
                other.close()
                why = getattr(error, "strerror", None) or str(error) or "no answer in time"
            except BaseException:
                other.close()
                raise
            else:
                return other
        self.desk.note(f"{place} could not be reached from this machine: {why}")
        return None

    def _refuse_private(self, host: str, port: int, found: Sequence[str]) -> None:
        addresses = [real_address(ip_address(text.partition("%")[0])) for text in found]
        # How a machine's own credentials are opened is nothing to tell a model.
        grant = "" if any(map(is_metadata, addresses)) else f"terminal.network_hosts: [{host}]"
        is_name = found != [host]
        why = f"it {'leads to' if is_name else 'is'} an address that is not public"
        self.desk.refuse(place_of(host, port), why, grant)

    # -- questions ---------------------------------------------------------------------------------------------------

    async def _ask(self, connection: socket.socket, wish: HostWish, may_ask: bool) -> HostAnswer:
        """The person's word, asked on the loop of the session's call."""
        if self._asker is None or self._asker[0].is_closed():
            return _NOBODY
        loop, ask = self._asker
        program = await in_daemon_thread(self._program, connection)
        first = b""
        with contextlib.suppress(OSError):
            first = connection.recv(_PEEK, socket.MSG_PEEK)
        sends = meant_to_send(program.words, first)
        full = structs.replace(wish, who=program.words, pid=program.pid, sends=sends, may_ask=may_ask)
        try:
            asked = asyncio.run_coroutine_threadsafe(_awaited(ask(full)), loop)
        except RuntimeError:  # the call is over, and its loop, too
            return _NOBODY
        assert self._group is not None
        key = wish.place if wish.kind == "local" else wish.host
        answered, gone = asyncio.wrap_future(asked), self._group.create_task(self._programs.none_left(key))
        try:
            await asyncio.wait((answered, gone), return_when=asyncio.FIRST_COMPLETED)
            if answered.cancelled():  # the call is over
                return _NOBODY
            return answered.result() if answered.done() else WITHDRAWN
        finally:
            asked.cancel()  # no question stands for longer than somebody wants to know
            gone.cancel()

    def _is_held(self, connection: socket.socket) -> bool:
        """Whether a program has the other end; nobody can tell of one that is broken."""
        try:
            return self.space.inode_of(connection.getpeername()[:2], connection.getsockname()[:2]) != 0
        except OSError:
            return False

    def _program(self, connection: socket.socket) -> ConnectingProgram:
        try:
            return program_of(self.space.inode_of(connection.getpeername()[:2], connection.getsockname()[:2]))
        except OSError:
            return NO_PROGRAM

    def _offer_services(self) -> None:
        """Listen for the ports of the machine's own loopback that may be asked for, and for no others."""
        wanted = self.ports.services()
        for listener in [each for each in self._listeners if each.getsockname()[0] == "127.0.0.1"]:
            port = listener.getsockname()[1]
            if port not in wanted:
                self._loop_of().remove_reader(listener)
                self._listeners.remove(listener)
                self.ports.own.discard(("127.0.0.1", port))
                listener.close()
        for port in wanted:
            if ("127.0.0.1", port) not in self.ports.own:
                self._listen("127.0.0.1", port)

    def _loop_of(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None
        return self._loop


def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def _awaited(waiting: Awaitable[HostAnswer]) -> HostAnswer:
    return await waiting


async def _exactly(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = await _loop().sock_recv(connection, size - len(found))
        if not part:
            raise EOFError
        found += part
    return bytes(found)
