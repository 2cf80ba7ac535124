"""Make a session's network namespace, and sockets in it, which are handed to the runtime. Standard library only.

A child of the keeper enters the namespace, makes what was asked for, sends the descriptors over the line and ends: no
process of ours stays there. The namespace lives as long as somebody holds a descriptor of it.
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct

from hermes.tools.supervisor.confine import landlock
from hermes.tools.supervisor.keeper import start

NEW_USER, NEW_NET = 0x10000000, 0x40000000
MOST_SENT = 200  # descriptors in one message; the kernel takes 253
_SO_ATTACH_FILTER, _IP_TRANSPARENT, _ETH_P_IP = 26, 19, 0x0800
_SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8914, 0x1, 0x40


def serve(request: start.Request, fds: list[int]) -> int:
    """Fork the child that does what `request` says; its pid. The first of `fds` is the line, the rest namespaces."""
    pid = os.fork()
    if pid:
        for fd in fds:
            os.close(fd)
        return pid
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        line = socket.socket(fileno=fds.pop(0))
        line.setblocking(True)
        try:
            _answer(line, request, fds)
            code = 0
        except OSError as error:
            line.send(json.dumps({"error": f"{error.strerror or error}"}).encode())
    finally:
        os._exit(code)


def enter(namespaces: list[int]) -> None:
    """Go on in these: a user namespace, if there is one, and a network namespace."""
    for fd, kind in zip(namespaces, (NEW_USER, NEW_NET)[-len(namespaces) :], strict=True):
        if landlock.libc().setns(fd, kind):
            raise OSError(ctypes.get_errno(), "the session's network could not be entered")


def _answer(line: socket.socket, request: start.Request, namespaces: list[int]) -> None:
    wanted = request["network"]
    assert isinstance(wanted, dict)
    kinds: list[str] = []
    made: list[int] = []
    if namespaces:
        enter(namespaces)
    else:
        for name in _unshare():
            kinds.append(name)
            made.append(os.open(f"/proc/self/ns/{name}", os.O_RDONLY))
        _raise_loopback()
        for name in ("tcp", "tcp6"):
            kinds.append(name)
            made.append(os.open(f"/proc/self/net/{name}", os.O_RDONLY))
        kinds.append("netlink")
        made.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).detach())
        kinds += ["wire", "raw"]
        made += [
            _wire(wanted["not_watched"]).detach(),
            socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW).detach(),
        ]
    for word in wanted["bound"]:
        kinds.append(word)
        made.append(_bound(word).detach())
    for _ in range(int(wanted["spare"])):
        kinds.append("spare")
        made.append(_stream().detach())
    if socket.has_ipv6 and os.path.exists("/proc/self/net/if_inet6"):  # noqa: PTH110
        for _ in range(int(wanted["spare6"])):
            kinds.append("spare6")
            made.append(socket.socket(socket.AF_INET6, socket.SOCK_STREAM).detach())
    for first in range(0, len(made), MOST_SENT):
        part = slice(first, first + MOST_SENT)
        socket.send_fds(line, [json.dumps({"made": kinds[part]}).encode()], made[part])
    line.send(json.dumps({"over": True}).encode())


def _unshare() -> tuple[str, ...]:
    """Leave for a new network namespace, where that needs one in a user namespace that changes nothing else."""
    if landlock.libc().unshare(NEW_NET) == 0:
        return ("net",)
    uid, gid = os.geteuid(), os.getegid()
    if landlock.libc().unshare(NEW_USER | NEW_NET):
        raise OSError(ctypes.get_errno(), "no network namespace can be made here")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(fd, text.encode())
        os.close(fd)
    return ("user", "net")


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _IFF_UP | _IFF_RUNNING))


def _bound(word: str) -> socket.socket:
    """`udp 127.0.0.1 53` or `tcp 0.0.0.0 443`: a socket that is bound, and listens where that is what it is for."""
    kind, host, port = word.split()
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM) if kind == "udp" else _stream()
    made.bind((host, int(port)))
    if kind == "tcp":
        made.listen(128)
    return made


def _stream() -> socket.socket:
    """One that may listen at, and answer from, addresses that are nobody's own here."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.IPPROTO_IP, _IP_TRANSPARENT, 1)
    return made


def _wire(but: list[int]) -> socket.socket:
    """A socket that sees packets which begin a TCP connection, but for those to one network and to some ports."""
    network, mask, *ports = but
    none = 13 + len(ports)  # the instruction that lets nothing through; the one before it lets all through
    steps = [
        (0x30, 0, 0, 9),  # the protocol
        (0x15, 0, none - 2, socket.IPPROTO_TCP),
        (0x20, 0, 0, 16),  # where to
        (0x54, 0, 0, mask),
        (0x15, none - 5, 0, network),
        (0x28, 0, 0, 6),  # not a later part of a packet in parts
        (0x45, none - 7, 0, 0x1FFF),
        (0xB1, 0, 0, 0),  # behind the head
        (0x50, 0, 0, 13),  # the flags: SYN without ACK
        (0x54, 0, 0, 0x12),
        (0x15, 0, none - 11, 0x02),
        (0x48, 0, 0, 2),  # the port
        *((0x15, none - 13 - place, 0, port) for place, port in enumerate(ports)),
        (0x06, 0, 0, 0xFFFF),
        (0x06, 0, 0, 0),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    made = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)  # it sees nothing before it is bound
    made.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(steps), ctypes.addressof(program)))
    made.bind(("lo", _ETH_P_IP))
    return made
