"""Unix sockets of the machine: each is a server that runs outside and does what it is told."""

from tests.border.record import Attack, Call, background, code, pty, py, sh

_CONNECT = """
import os, socket, glob
for name in glob.glob({name!r}.replace('UID', str(os.getuid()))) or [{name!r}]:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(name)
    s.send(b'hello')
"""
_PATHS = {
    "docker": "/run/docker.sock",
    "podman": "/run/podman/podman.sock",
    "containerd": "/run/containerd/containerd.sock",
    "session bus": "/run/user/UID/bus",
    "system bus": "/run/dbus/system_bus_socket",
    "systemd of the user": "/run/user/UID/systemd/private",
    "wayland": "/run/user/UID/wayland-0",
    "gpg agent": "/run/user/UID/gnupg/S.gpg-agent",
    "pulse": "/run/user/UID/pulse/native",
    "tmux": "/tmp/tmux-UID/default",
    "ssh agent": "/tmp/ssh-person/agent.1",
    "X display": "/tmp/.X11-unix/X0",
    "screen": "/run/screen/S-me/1.pts",
    "Hermes' own": "/home/me/.hermes/run/other.sock",
    "an application of the home": "/home/me/.config/app/control.sock",
    "a program in /var/tmp": "/var/tmp/cron.sock",
    "a program in /dev/shm": "/dev/shm/app.sock",
    "a plain socket": "/run/adv.sock",
}


def _attack(name: str, *steps: Call) -> Attack:
    return Attack(name=name, family="sockets", steps=steps)


_BY_PATH = tuple(_attack(f"socket of {name}", py(_CONNECT.format(name=path))) for name, path in _PATHS.items())
_C = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/syscall.h>
#include <unistd.h>
static long old_call(long n, long a, long b, long c) {
  long r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(n), "b"(a), "c"(b), "d"(c) : "memory"); return r;
}
int main(void) {
  char *low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  struct sockaddr_un *to = (struct sockaddr_un *)low;
  to->sun_family = AF_UNIX; strcpy(to->sun_path, "/run/adv.sock");
  long s = WAY_SOCKET;
  printf("socket %ld\n", s);
  printf("connect %ld\n", WAY_CONNECT);
  return 0;
}
"""


def _compiled(name: str, make: str, connect: str) -> Attack:
    source = _C.replace("WAY_SOCKET", make).replace("WAY_CONNECT", connect)
    return _attack(name, sh(f"cat > a.c <<'HERE'\n{source}\nHERE\ngcc -w -o a.out a.c && ./a.out"))


_OTHER_WAYS = (
    _attack(
        "abstract socket", py("import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0adv'); s.send(b'x')")
    ),
    _attack(
        "abstract X display", py("import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0/tmp/.X11-unix/X0')")
    ),
    _attack(
        "abstract systemd",
        py("import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0/org/freedesktop/systemd1')"),
    ),
    _attack(
        "datagram to a path",
        py("import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', '/run/adv.dgram')"),
    ),
    _attack(
        "datagram to an abstract name",
        py("import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', '\\0adv.dgram')"),
    ),
    _attack(
        "datagram from a pair",
        py(
            "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x',"
            " '/run/adv.dgram')"
        ),
    ),
    _attack(
        "message from a pair",
        py(
            "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendmsg([b'x'], [], 0,"
            " '/run/log.dgram')"
        ),
    ),
    _attack(
        "message from a pair to an abstract name",
        py(
            "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendmsg([b'x'], [], 0,"
            " '\\0adv.dgram')"
        ),
    ),
    _attack(
        "pair connected again",
        py(
            "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM);"
            " a.connect('/run/systemd/notify'); a.send(b'READY=1')"
        ),
    ),
    _attack("stream pair connected again", py("import socket; a, b = socket.socketpair(); a.connect('/run/adv.sock')")),
    _attack(
        "seqpacket",
        py("import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect('/run/adv.seq')"),
    ),
    _attack(
        "systemd's notify socket",
        sh("NOTIFY_SOCKET=/run/systemd/notify systemd-notify --ready"),
        py(
            "import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect('/run/systemd/notify');"
            " s.send(b'READY=1')"
        ),
    ),
    _attack(
        "through a link in the workspace",
        sh("ln -s /run/adv.sock s; ln -s /run r"),
        py(
            "import socket\nfor n in ('s', 'r/adv.sock', '../../../run/docker.sock'):\n  try:"
            " socket.socket(socket.AF_UNIX).connect(n)\n  except OSError as e: print(e)"
        ),
    ),
    _attack(
        "through /proc/self/root",
        py("import socket; socket.socket(socket.AF_UNIX).connect('/proc/self/root/run/adv.sock')"),
    ),
    _attack(
        "through /proc/1/root", py("import socket; socket.socket(socket.AF_UNIX).connect('/proc/1/root/run/adv.sock')")
    ),
    _attack("curl to docker", sh("curl -s -m 2 --unix-socket /run/docker.sock http://x/containers/json")),
    _attack("docker's own client", sh("docker -H unix:///run/docker.sock ps; docker ps", timeout=5)),
    _attack(
        "tmux's own client",
        sh(
            "tmux -S /tmp/tmux-$(id -u)/default list-sessions; tmux new-session -d 'touch ~/PWN'; tmux kill-server",
            timeout=5,
        ),
    ),
    _attack(
        "ssh-add lists the agent's keys",
        sh("SSH_AUTH_SOCK=/tmp/ssh-person/agent.1 timeout 3 ssh-add -l; timeout 3 ssh-add -l"),
    ),
    _attack(
        "in the background",
        background("python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('/run/adv.sock')\""),
        Call("process", {"action": "list"}),
        sh("sleep 1"),
    ),
    _attack(
        "on a terminal",
        pty("python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('/run/adv.sock')\""),
        sh("sleep 1"),
    ),
    _attack("from a script", code("import socket\nsocket.socket(socket.AF_UNIX).connect('/run/adv.sock')")),
    _attack(
        "bind over the person's socket",
        sh("rm -f /run/adv.sock; rm -f /tmp/.X11-unix/X0"),
        py("import socket; socket.socket(socket.AF_UNIX).bind('/run/new.sock')"),
    ),
    _compiled("32-bit calls", "old_call(359, AF_UNIX, SOCK_STREAM, 0)", "old_call(362, s, (long)to, sizeof *to)"),
    _compiled(
        "32-bit socket, 64-bit connect", "old_call(359, AF_UNIX, SOCK_STREAM, 0)", "connect(s, (void *)to, sizeof *to)"
    ),
    _compiled(
        "x32 calls", "syscall(41 | 0x40000000, AF_UNIX, SOCK_STREAM, 0)", "syscall(42 | 0x40000000, s, to, sizeof *to)"
    ),
    _compiled("64-bit calls from C", "socket(AF_UNIX, SOCK_STREAM, 0)", "connect(s, (void *)to, sizeof *to)"),
    Attack(
        name="io_uring, which no filter of calls sees into",
        family="sockets",
        steps=(
            py(
                "import ctypes; l = ctypes.CDLL(None, use_errno=True); b = ctypes.create_string_buffer(120); f ="
                " l.syscall(425, 4, b); print('RING-' + ('OPEN' if f >= 0 else 'SHUT'))"
            ),
        ),
        says="RING-OPEN",
    ),
)
ATTACKS = (*_BY_PATH, *_OTHER_WAYS)
