"""Which system calls a confined program may not make, as a seccomp program: pure, from tables to bytes.

What is here has no place in everyday work and is a way out, or a way to stay: mounts and new namespaces, the kernel's
keyrings, handles instead of paths, set-user-id bits, bytes typed into a terminal, rare kinds of sockets. A filter sees
the numbers a call is made with and never what they point to, so calls that hide theirs in memory (`clone3`, `openat2`,
io_uring) are "not implemented", which every library takes as the word of an older kernel.
"""

import struct
from typing import NamedTuple

EPERM, ENOSYS, EACCES, EAFNOSUPPORT = 1, 38, 13, 97

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LD, _JEQ, _JSET, _JGE, _AND, _RET = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000  # calls of the x32 kind have this bit, and numbers of their own

_NAMESPACES = 0x7E020000 | 0x80  # user, mount, pid, net, ipc, uts, cgroup, time
_SET_ID = 0o6000
_CREATES = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE: only then is there a mode
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_KIND = 1, 5, 0xF
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


class Machine(NamedTuple):
    """A processor: how the kernel names it, and the numbers of its system calls."""

    audit: int
    calls: dict[str, int]


def _numbers(text: str) -> dict[str, int]:
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


_SHARED = """
    clone3 435 openat2 437 fchmodat2 452 io_uring_setup 425 io_uring_enter 426 io_uring_register 427 open_tree 428
    move_mount 429 fsopen 430 fsconfig 431 fsmount 432 fspick 433 mount_setattr 442 open_tree_attr 467 file_setattr 469
"""
MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        _numbers(f"""{_SHARED}
            open 2 creat 85 openat 257 chmod 90 fchmod 91 fchmodat 268 mknod 133 mknodat 259 ioctl 16 socket 41
            socketpair 53 clone 56 unshare 272 setns 308 mount 165 umount2 166 pivot_root 155 chroot 161 keyctl 250
            add_key 248 request_key 249 bpf 321 perf_event_open 298 userfaultfd 323 kexec_load 246 kexec_file_load 320
            init_module 175 finit_module 313 delete_module 176 open_by_handle_at 304 swapon 167 swapoff 168 reboot 169
            settimeofday 164 clock_settime 227 sethostname 170 setdomainname 171 quotactl 179 acct 163 syslog 103
            fanotify_init 300 iopl 172 ioperm 173 vhangup 153 lookup_dcookie 212 quotactl_fd 443 uselib 134
        """),
    ),
    "aarch64": Machine(
        0xC00000B7,
        _numbers(f"""{_SHARED}
            openat 56 fchmod 52 fchmodat 53 mknodat 33 ioctl 29 socket 198 socketpair 199 clone 220 unshare 97 setns 268
            mount 40 umount2 39 pivot_root 41 chroot 51 keyctl 219 add_key 217 request_key 218 bpf 280
            perf_event_open 241 userfaultfd 282 kexec_load 104 kexec_file_load 294 init_module 105 finit_module 273
            delete_module 106 open_by_handle_at 265 swapon 224 swapoff 225 reboot 142 settimeofday 170 clock_settime 112
            sethostname 161 setdomainname 162 quotactl 60 acct 89 syslog 116 fanotify_init 262 vhangup 58
            lookup_dcookie 18 quotactl_fd 443
        """),
    ),
}

_NEVER = tuple(
    """
    mount umount2 pivot_root chroot setns open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
    open_tree_attr keyctl add_key request_key bpf perf_event_open userfaultfd kexec_load kexec_file_load init_module
    finit_module delete_module open_by_handle_at swapon swapoff reboot settimeofday clock_settime sethostname
    setdomainname quotactl quotactl_fd acct syslog fanotify_init iopl ioperm vhangup lookup_dcookie uselib
    """.split()  # noqa: SIM905 - forty names read better as words
)
_NOT_IMPLEMENTED = ("clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register", "file_setattr")
_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
_OPENS = {"open": (1, 2), "openat": (2, 3)}


class SocketRules(NamedTuple):
    """Which sockets may be made, beside those of pairs."""

    unix: bool = True
    network: bool = True


def filter_program(machine: str, sockets: SocketRules) -> bytes | None:
    """The filter in the form that `seccomp` and bubblewrap take; None for a processor that is not in the table."""
    known = MACHINES.get(machine)
    if known is None:
        return None
    calls = known.calls
    lines = [(_LD, 0, 0, _ARCHITECTURE), (_JEQ, 1, 0, known.audit), _ret(EPERM), (_LD, 0, 0, _NUMBER)]
    if machine == "x86_64":
        lines += [(_JGE, 0, 1, _X32), _ret(ENOSYS)]
    for names, error in ((_NEVER, EPERM), (_NOT_IMPLEMENTED, ENOSYS)):
        for name in names:
            if name in calls:
                lines += [(_JEQ, 0, 1, calls[name]), _ret(error)]
    for name in ("clone", "unshare"):
        lines += _call(calls[name], [*_argument(0), (_JSET, 0, 1, _NAMESPACES), _ret(EPERM)])
    for name, place in _MODES.items():
        if name in calls:
            lines += _call(calls[name], [*_argument(place), (_JSET, 0, 1, _SET_ID), _ret(EPERM)])
    for name, (flags, mode) in _OPENS.items():
        if name in calls:
            wanted = [*_argument(mode), (_JSET, 0, 1, _SET_ID), _ret(EPERM)]
            lines += _call(calls[name], [*_argument(flags), (_JSET, 0, len(wanted), _CREATES), *wanted])
    typed = [line for code in (_TIOCSTI, _TIOCLINUX) for line in ((_JEQ, 0, 1, code), _ret(EPERM))]
    lines += _call(calls["ioctl"], [*_argument(1), *typed])
    lines += _call(calls["socket"], _families(sockets))
    if not sockets.unix:
        # A pair of datagram sockets could still send to any path, so pairs are of the kinds that stay connected.
        stays = [*_argument(1), (_AND, 0, 0, _SOCK_KIND), (_JEQ, 2, 0, _SOCK_STREAM), (_JEQ, 1, 0, _SOCK_SEQPACKET)]
        lines += _call(calls["socketpair"], [*stays, _ret(EACCES)])
    lines.append((_RET, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


_Line = tuple[int, int, int, int]


def _ret(error: int) -> _Line:
    return (_RET, 0, 0, _ERRNO | error)


def _argument(place: int) -> list[_Line]:
    """The low half of an argument: the kernel reads modes, flags and families as 32 bits."""
    return [(_LD, 0, 0, _ARGUMENTS + 8 * place)]


def _call(number: int, block: list[_Line]) -> list[_Line]:
    """`block` for one call alone; it ends with the call's number in the register again."""
    block = [*block, (_LD, 0, 0, _NUMBER)]
    return [(_JEQ, 0, len(block), number), *block]


def _families(sockets: SocketRules) -> list[_Line]:
    refused = [] if sockets.unix else [(_AF_UNIX, EACCES)]
    refused += [] if sockets.network else [(_AF_INET, EACCES), (_AF_INET6, EACCES)]
    lines = _argument(0)
    for family, error in refused:
        lines += [(_JEQ, 0, 1, family), _ret(error)]
    allowed = (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)
    for left, family in zip(range(len(allowed), 0, -1), allowed, strict=True):
        lines.append((_JEQ, left, 0, family))  # over those that are left and the refusal
    return [*lines, _ret(EAFNOSUPPORT)]
