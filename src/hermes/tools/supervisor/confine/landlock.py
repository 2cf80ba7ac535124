"""Landlock by its three system calls: a ruleset from a list of grants, and how to enter it. Standard library only.

Used in the keeper, where nothing else is imported.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from functools import lru_cache

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every processor
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

LIST = READ_DIR
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = READ | WRITE_FILE | _REMOVE_AND_MAKE | REFER | TRUNCATE
DEVICE = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV
ALL = WRITE | IOCTL_DEV
RIGHTS = {"list": LIST, "read": READ, "write": WRITE, "device": DEVICE}
_SINCE = {2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
SCOPES = 3  # abstract Unix sockets, and signals
SCOPES_SINCE = 6

Grant = tuple[str, str]  # a path, and a name in RIGHTS


@lru_cache(maxsize=1)
def libc() -> ctypes.CDLL:
    """The C library of this process, for calls that Python does not make."""
    return ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """What the kernel offers; 0 when it has no Landlock, or it is switched off."""
    return max(0, int(libc().syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION_FLAG)))


def ruleset(grants: Iterable[Grant] | None) -> int | None:
    """A descriptor of the rules: what is not granted is refused. Without grants it is about sockets and signals alone.

    What a grant names and is not there is left out. None when the kernel has nothing to offer.
    """
    offered = version()
    scoped = SCOPES if offered >= SCOPES_SINCE else 0
    if offered == 0 or (grants is None and not scoped):
        return None
    handled = ALL & ~sum(right for since, right in _SINCE.items() if offered < since) if grants is not None else 0
    attributes = struct.pack("=QQQ", handled, 0, scoped)
    size = 24 if offered >= SCOPES_SINCE else 8
    fd = int(libc().syscall(_CREATE, attributes, ctypes.c_size_t(size), 0))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "no Landlock ruleset could be made")
    for path, right in grants or ():
        _grant(fd, path, RIGHTS[right] & handled)
    return fd


def _grant(ruleset_fd: int, path: str, rights: int) -> None:
    try:
        at = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        kind = os.fstat(at).st_mode & 0o170000
        if kind == 0o120000:
            return  # what a link leads to has a grant of its own, or none
        rule = struct.pack("=QI", rights if kind == 0o040000 else rights & _ON_FILES, at)
        if rights and libc().syscall(_ADD, ruleset_fd, _PATH_BENEATH, rule, 0) != 0:
            raise OSError(ctypes.get_errno(), "Landlock did not take a rule", path)
    finally:
        os.close(at)


def enter(ruleset_fd: int) -> None:
    """Confine this process, and all it starts, for good."""
    libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc().syscall(_RESTRICT, ruleset_fd, 0) != 0:
        raise OSError(ctypes.get_errno(), "Landlock could not be entered")
