"""A machine of the suite's own: the processes of hostile tests see a copy of this one that they cannot hurt.

`enter` puts the calling process into mount, pid, network, IPC and UTS namespaces. There everything that belongs to the
real machine is read-only, homes and temporary folders are empty file systems in memory of bounded size, devices are the
harmless ones, terminals are new, nobody else's process has a number, and the network is a loopback of its own. Whatever
happens in it is over when it ends. A test that means harm runs nowhere else: `refuse_elsewhere` is asked first.
"""

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import stat
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

ORDINARY = 1717  # a uid and gid of the suite's own; nobody needs to be created for it
HOME = "/home/me"
MARK = "/run/hermes-border"  # only a room has it; it lists what is shown of the machine in temporary folders
TEMPS = ("/tmp", "/var/tmp", "/dev/shm")

_EMPTY = {"/home": "768m", "/root": "16m", "/tmp": "256m", "/var/tmp": "64m", "/run": "64m"}
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER = 0x00020000, 0x04000000, 0x08000000, 0x10000000
_NEWPID, _NEWNET = 0x20000000, 0x40000000
_BIND, _REC, _PRIVATE = 0x1000, 0x4000, 0x40000
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY = 442, -100, 0x8000, 0x1
_PDEATHSIG, _SET_DUMPABLE = 1, 4
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1

_libc = ctypes.CDLL(None, use_errno=True)


class NoRoom(RuntimeError):
    """The room cannot be made here; the text says why."""


def why_no_room() -> str:
    """Empty where a room can be made; it is tried in a child."""
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(OSError, NoRoom):
            _unshare(_namespaces())
            code = 0
        os._exit(code)
    return "" if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 else "no namespaces to be had (unshare)"


def enter(keep: Iterable[str]) -> None:
    """Go on inside the room, as its first process; `keep` are folders of this machine that are shown there, read-only.

    Returns there. The caller's own process stays outside, waits, and ends with the room's exit code.
    """
    kept = sorted({name for name in keep if Path(name).is_dir()})
    uid, gid = os.geteuid(), os.getegid()
    _unshare(_namespaces())
    if uid:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    child = os.fork()
    if child:
        os._exit(_outlived_by(child))
    _libc.prctl(_PDEATHSIG, signal.SIGKILL)
    _arrange_files(kept)
    _raise_loopback()
    _own_accounts(uid, gid)
    Path(MARK).write_text("\n".join(str(entry) for folder in TEMPS for entry in Path(folder).iterdir()))
    refuse_elsewhere()


def become_ordinary() -> None:
    """Give up root in this process, for good."""
    os.setgroups([])
    os.setresgid(ORDINARY, ORDINARY, ORDINARY)
    os.setresuid(ORDINARY, ORDINARY, ORDINARY)
    _libc.prctl(_SET_DUMPABLE, 1)
    with contextlib.suppress(PermissionError):
        os.setuid(0)
        raise NoRoom("root could be had again")


def refuse_elsewhere() -> None:
    """Raise `NoRoom` unless this process is in a room where the machine's own files cannot be written."""
    if not Path(MARK).exists():
        raise NoRoom("this suite attacks the machine it runs on; it runs in a room of its own only")
    for folder in ("/", "/usr", "/etc", "/var", "/sys", str(Path(__file__).parent)):
        if not os.statvfs(folder).f_flag & os.ST_RDONLY:
            raise NoRoom(f"{folder} could be written here")
    for folder in _EMPTY:
        if Path(folder).stat().st_dev == Path("/").stat().st_dev:
            raise NoRoom(f"{folder} is the machine's own")
    with contextlib.suppress(OSError):
        if any(stat.S_ISBLK(file.stat().st_mode) for file in Path("/dev").iterdir()):
            raise NoRoom("there is a disk in /dev")


# -- namespaces ----------------------------------------------------------------------------------------------------


def _namespaces() -> int:
    return _NEWNS | _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | (_NEWUSER if os.geteuid() else 0)


def _unshare(flags: int) -> None:
    if _libc.unshare(flags):
        raise NoRoom(f"unshare: {os.strerror(ctypes.get_errno())}")


def _outlived_by(child: int) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.kill(child, signal.SIGKILL))
    while True:
        try:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF
        except InterruptedError:
            continue


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        name = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(probe, _SIOCGIFFLAGS, name))[1]
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | _IFF_UP))


# -- files ---------------------------------------------------------------------------------------------------------


def _arrange_files(keep: list[str]) -> None:
    _mount("none", "/", "", _REC | _PRIVATE)
    kept = {name: os.open(name, os.O_PATH | os.O_DIRECTORY) for name in keep}  # mounts of this namespace, not the other
    devices = {name: os.open(f"/dev/{name}", os.O_PATH) for name in _DEVICES}
    attributes = struct.pack("QQQQ", _ATTR_RDONLY, 0, 0, 0)
    if _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, attributes, len(attributes)):
        raise NoRoom(f"mount_setattr: {os.strerror(ctypes.get_errno())}")
    for folder, size in _EMPTY.items():
        mode = "1777" if folder.endswith("tmp") else "755"
        _mount("tmpfs", folder, "tmpfs", 0, f"size={size},mode={mode}")
    _mount("tmpfs", "/dev", "tmpfs", 0, "size=64m,mode=755")
    for name, fd in devices.items():
        Path(f"/dev/{name}").touch()
        _bind(fd, f"/dev/{name}")
    for name in ("pts", "shm"):
        Path(f"/dev/{name}").mkdir()
    _mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=0620")
    Path("/dev/shm").chmod(0o1777)
    for link, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0")):
        Path(f"/dev/{link}").symlink_to(target)
    for link, number in (("stdout", 1), ("stderr", 2)):
        Path(f"/dev/{link}").symlink_to(f"/proc/self/fd/{number}")
    _mount("proc", "/proc", "proc", 0)
    for name, fd in kept.items():
        if name.startswith(tuple(f"{folder}/" for folder in _EMPTY)):
            Path(name).mkdir(parents=True, exist_ok=True)
            _bind(fd, name)
    for fd in (*kept.values(), *devices.values()):
        os.close(fd)


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    if _libc.mount(source.encode(), target.encode(), kind.encode() or None, flags, data.encode() or None):
        raise NoRoom(f"mount {target}: {os.strerror(ctypes.get_errno())}")


def _bind(fd: int, target: str) -> None:
    _mount(f"/proc/self/fd/{fd}", target, "", _BIND | _REC)


def _own_accounts(uid: int, gid: int) -> None:
    """Accounts whose home is the room's: ssh and git ask the system, not HOME."""
    folder = Path("/run/accounts")
    folder.mkdir()
    mine = (uid, gid) if uid else (ORDINARY, ORDINARY)
    lines = {
        "passwd": [
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
            "sshd:x:100:65534::/run/sshd:/usr/sbin/nologin",
        ],
        "group": ["nogroup:x:65534:"],
    }
    if mine[0]:
        lines["passwd"].append(f"me:x:{mine[0]}:{mine[1]}::{HOME}:/bin/bash")
        lines["group"].append(f"me:x:{mine[1]}:")
    lines["passwd"].append(f"root:x:0:0:root:{HOME}:/bin/bash")
    lines["group"].append("root:x:0:")
    for name, text in lines.items():
        (folder / name).write_text("\n".join(text) + "\n")
        fd = os.open(folder / name, os.O_PATH)
        _bind(fd, f"/etc/{name}")
        os.close(fd)


def interpreter_folders() -> list[str]:
    """Where this interpreter, its packages and this repository are."""
    found = {sys.prefix, sys.base_prefix, str(Path(__file__).resolve().parents[2])}
    found |= {str(Path(os.path.realpath(sys.executable)).parent.parent)}
    return sorted(found)


def processes() -> dict[int, str]:
    """What runs in the room: number and command line."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX":
                    found[int(folder.name)] = (
                        (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    )
    return found


def end(pid: int) -> None:
    """End one process of the room, if it is still there."""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
