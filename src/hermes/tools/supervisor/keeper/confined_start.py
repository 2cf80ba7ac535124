"""Start a program confined: between fork and exec it gives up what it may not have. Standard library only.

The child runs nothing but the lines below before it becomes another program. Whatever fails there ends the start: no
program runs with less than was asked for.
"""

import base64
import contextlib
import ctypes
import os
import resource
import signal
import struct
from typing import NamedTuple

from hermes.tools.supervisor.confine import landlock
from hermes.tools.supervisor.keeper import cgroups, network_namespace, start

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 24, 22, 38
_PR_SET_SECUREBITS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 28, 47, 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63
_NOROOT_LOCKED = 0x3  # no capability comes back with user id 0
_MOST_RULESETS = 8

_rulesets: dict[str, int | None] = {}  # by what they grant; a descriptor each, made before the first fork that needs it


class Confining(NamedTuple):
    """What the child does to itself before it becomes another program, ready to be done."""

    places: dict[int, int]  # its descriptors, and which of ours they are
    terminal: str | None
    word: int  # where it writes why it could not
    ruleset: int | None
    seccomp: bytes  # applied here; empty when bubblewrap does it
    open_files: int
    drops_capabilities: bool
    namespaces: list[int]  # of the session's network; empty where it has none of its own


def given_namespaces(order: object, fds: list[int]) -> object:
    """`order` with the descriptors of the session's network; a start that was to get them does not go without."""
    if not isinstance(order, dict):
        return order
    if len(fds) != int(str(order.get("namespaces", 0))):
        raise PermissionError(1, "the session's network did not come along")
    return {**order, "network": fds}


def spawn_confined(
    argv: list[str], env: dict[str, str], places: dict[int, int], order: object, terminal: str | None = None
) -> int:
    """Start `argv` as `start.spawn` does, within what `order` says. Returns the pid; raises `OSError`."""
    if not isinstance(order, dict):
        raise PermissionError(1, "nothing is started without a confinement")
    if order["level"] == "none":
        return start.spawn(argv, env, places, terminal)
    program = base64.b64decode(str(order.get("seccomp", "")))
    limits = order["limits"]
    assert isinstance(limits, dict)
    is_full = order["level"] == "full"
    cgroups.prepare(int(limits.get("processes", 0)), int(limits.get("memory_mb", 0)))
    given = dict(places)
    opened = -1
    if is_full:
        prefix = order["prefix"]
        assert isinstance(prefix, list)
        argv = [*prefix, *argv]
        if program:
            opened = start.out_of_the_way([start.in_memory_file(program)], list(given))[0]
            given[int(str(order["seccomp_fd"]))] = opened
    file = start.find_program(argv[0], env)
    said, word = os.pipe()  # closed by exec: what comes out of it is why there was none
    word = start.out_of_the_way([word], list(given))[0]
    ruleset, aside = _ruleset(order), -1
    if ruleset is not None and ruleset in given:  # the child gets another descriptor under that number
        ruleset = aside = start.out_of_the_way([os.dup(ruleset)], list(given))[0]
    try:
        confining = Confining(
            places=given,
            terminal=terminal,
            word=word,
            ruleset=ruleset,
            seccomp=b"" if is_full else program,
            open_files=int(limits.get("open_files", 0)),
            drops_capabilities=not is_full,
            namespaces=list(order.get("network", ())),
        )
        pid = os.fork()
        if pid == 0:
            _become(file, argv, env, confining)
        os.close(word)
        word = -1
        told = os.read(said, 512)
    finally:
        for fd in (said, word, opened, aside):
            if fd >= 0:
                os.close(fd)
    if told:
        os.waitpid(pid, 0)
        number, _, text = told.decode("utf-8", "replace").partition(" ")
        raise OSError(int(number), text, file)
    return pid


def _become(file: str, argv: list[str], env: dict[str, str], confining: Confining) -> None:
    """In the child: never returns."""
    try:
        os.setsid()
        landlock.libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if confining.terminal is not None:
            fd = os.open(confining.terminal, os.O_RDWR)  # after setsid, so it becomes the controlling terminal
            for number in range(3):
                os.dup2(fd, number)
        for theirs, ours in confining.places.items():
            os.dup2(ours, theirs)
        for number in start.IGNORED_HERE:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        _limit(confining)
        cgroups.enter()
        if confining.namespaces:
            network_namespace.enter(confining.namespaces)
            landlock.libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if confining.drops_capabilities:
            _drop_capabilities()
        if confining.ruleset is not None:
            landlock.enter(confining.ruleset)
        if confining.seccomp:
            _filter(confining.seccomp)
        os.execve(file, argv, env)  # noqa: S606 - this is the place where programs are started
    except OSError as error:  # anything else is a mistake here, and ends the child without a word of its own
        with contextlib.suppress(OSError):
            os.write(confining.word, f"{error.errno or 0} {error.strerror or error}".encode())
    finally:
        os._exit(127)


def _ruleset(order: dict[str, object]) -> int | None:
    grants = order.get("grants")
    key = repr(grants)
    if key not in _rulesets:
        if len(_rulesets) >= _MOST_RULESETS:
            old = _rulesets.pop(next(iter(_rulesets)))
            if old is not None:
                os.close(old)
        fd = landlock.ruleset([(path, right) for path, right in grants] if isinstance(grants, list) else None)
        if fd is None and isinstance(grants, list):
            raise OSError(38, "the kernel has no Landlock")
        _rulesets[key] = None if fd is None else start.out_of_the_way([fd], [])[0]
    return _rulesets[key]


def _limit(confining: Confining) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if confining.open_files:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = confining.open_files if most == resource.RLIM_INFINITY else min(confining.open_files, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))


def _drop_capabilities() -> None:
    """Without them user id 0 is an owner of files like any other; nothing here gives them back."""
    for number in range(_LAST_CAPABILITY + 1):
        if landlock.libc().prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            break
    landlock.libc().prctl(_PR_SET_SECUREBITS, _NOROOT_LOCKED, 0, 0, 0)
    landlock.libc().prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    if landlock.libc().capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities could not be dropped")


def _filter(program: bytes) -> None:
    landlock.libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    lines = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: a count, and where the lines are.
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(lines))
    if landlock.libc().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, described, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the system call filter was not taken")
