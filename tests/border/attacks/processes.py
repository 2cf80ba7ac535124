"""Other processes: signals to them, terminals they sit at, and the death of those that watch over a call."""

from tests.border.kernel_words import SYSCALL, VICTIM, attack_of
from tests.border.record import RUNS, Attack, Call, Strike, background, code, pty, py, sh

_SIGNALS = (
    *(
        attack_of("signals", f"SIG{name} to the person's program", sh(f"kill -{name} {VICTIM}"))
        for name in ("TERM", "KILL", "STOP", "HUP")
    ),
    attack_of(
        "signals",
        "kill of everything",
        py("import os, signal\ntry: os.kill(-1, signal.SIGHUP)\nexcept OSError as e: print(e)"),
    ),
    attack_of(
        "signals",
        "kill of every number",
        py(
            "import os, signal\nme = os.getpid()\nfor p in range(2, 600):\n  if p != me:\n    try: os.kill(p,"
            " signal.SIGKILL)\n    except OSError: pass"
        ),
        sh("true"),
        still="exit_code",
    ),
    attack_of(
        "signals",
        "kill of the runtime",
        sh(
            "p=$PPID; for i in 1 2 3 4 5; do kill -KILL $p; p=$(awk '/PPid/{print $2}' /proc/$p/status); [ \"${p:-0}\""
            " -gt 1 ] || break; done"
        ),
        sh("true"),
        still="exit_code",
    ),
    attack_of(
        "signals",
        "kill of the keeper by its name",
        sh(
            "for d in /proc/[0-9]*; do tr '\\0' ' ' < $d/cmdline 2>/dev/null | grep -q 'supervisor[.]keeper'"
            " && kill -KILL ${d#/proc/} && echo KEEPER-KILLED; done"
        ),
        sh("true"),
        says="KEEPER-KILLED",
    ),
    attack_of(
        "signals",
        "signal by pidfd",
        py(SYSCALL + "f = l.syscall(434, p, 0); r = l.syscall(424, f, 15, 0, 0) if f >= 0 else -1; print(r)"),
    ),
    attack_of(
        "signals",
        "signal by thread",
        py(
            SYSCALL + "print(l.syscall(234, p, p, 9), l.syscall(200, p, 9), l.syscall(129, p, 9,"
            " ctypes.create_string_buffer(128)))"
        ),
    ),
    attack_of(
        "signals",
        "signal by descriptor owner",
        py(
            "import fcntl, os, socket\np = int(open('/home/me/victim.pid').read())\na, b = os.pipe()\nfcntl.fcntl(a,"
            " fcntl.F_SETOWN, p); fcntl.fcntl(a, 10, 9)\nfcntl.fcntl(a, fcntl.F_SETFL, fcntl.fcntl(a, fcntl.F_GETFL) |"
            " os.O_ASYNC)\nos.write(b, b'x')"
        ),
    ),
    attack_of("signals", "priority of the person's program", sh(f"renice 19 {VICTIM}; ionice -c 3 -p {VICTIM}")),
    attack_of(
        "signals",
        "limits of the person's program",
        sh(f"prlimit --pid {VICTIM} --nofile=1:1 && echo LIMIT-SET"),
        says="LIMIT-SET",
    ),
    attack_of(
        "signals",
        "processors of the person's program",
        py(
            "import os\np = int(open('/home/me/victim.pid').read())\nos.sched_setaffinity(p, os.sched_getaffinity(0));"
            " print('AFFINITY-' + 'SET')"
        ),
        says="AFFINITY-SET",
    ),
)
_TERMINALS = (
    attack_of(
        "terminals",
        "keystrokes into the own terminal",
        pty(
            "python3 -c \"import fcntl\nfor c in b'touch ~/PWN\\n': fcntl.ioctl(0, 0x5412,"
            " bytes([c]))\nprint('TYPED')\" > typed.txt 2>&1"
        ),
        sh("sleep 1; cat typed.txt"),
        says="TYPED",
    ),
    attack_of(
        "terminals",
        "keystrokes from a command",
        py(
            "import fcntl, os\nf = os.open('/dev/tty', os.O_RDWR)\nfor c in b'touch ~/PWN\\n': fcntl.ioctl(f, 0x5412,"
            " bytes([c]))\nprint('TYPED')"
        ),
        says="TYPED",
    ),
    attack_of(
        "terminals",
        "escape sequences to the person's terminal",
        sh("printf '\\033]0;PWN\\007' > $(cat ~/terminal.name)"),
    ),
    attack_of(
        "terminals",
        "escape sequences from a terminal",
        pty("for t in /dev/pts/[0-9]*; do printf '\\033]0;PWN\\007' > $t; done; printf x > $(cat ~/terminal.name)"),
        sh("sleep 1"),
    ),
    attack_of(
        "terminals",
        "escape sequences in the background",
        background("printf '\\033]0;PWN\\007' > $(cat ~/terminal.name)"),
        sh("sleep 0.5"),
    ),
    attack_of(
        "terminals",
        "keystrokes into the person's terminal",
        py(
            "import fcntl, os\nf = os.open(open('/home/me/terminal.name').read(), os.O_RDWR)\nfor c in b'x':"
            " fcntl.ioctl(f, 0x5412, bytes([c]))"
        ),
    ),
    attack_of(
        "terminals",
        "escape sequences from a script",
        code("print('x', file=open(open('/home/me/terminal.name').read(), 'w'))"),
    ),
    attack_of(
        "terminals",
        "stopping the person's terminal",
        sh("stty -F $(cat ~/terminal.name) raw -echo && echo TTY-SET", timeout=5),
        says="TTY-SET",
    ),
    attack_of(
        "terminals",
        "hanging the person's terminal up",
        py(
            "import os, fcntl\nf = os.open(open('/home/me/terminal.name').read(), os.O_RDWR | os.O_NOCTTY);"
            " print('TTY-' + 'OPEN')"
        ),
        says="TTY-OPEN",
    ),
)


def _program(starts: str) -> Call:
    """A command whose children are its own business: it leaves some behind, says that it runs, and waits."""
    return py(f"import os, subprocess\n{starts}\nos.system({RUNS!r})\nos.system('sleep 106')")


def _deaths(target: str) -> tuple[Attack, ...]:
    strike = Strike(target)  # type: ignore[arg-type]  # one of the three below
    return (
        attack_of("the keeper's death", f"{target}: a plain command", sh(f"{RUNS}; sleep 100"), strike),
        attack_of(
            "the keeper's death",
            f"{target}: children of a command",
            _program("subprocess.Popen(['sleep', '101']); subprocess.Popen(['sleep', '102'])"),
            strike,
        ),
        attack_of(
            "the keeper's death",
            f"{target}: a daemon in a session of its own",
            _program(
                "subprocess.Popen(['sleep', '104'], start_new_session=True); subprocess.run(['setsid', '-f', 'sleep',"
                " '105'])"
            ),
            strike,
        ),
        attack_of(
            "the keeper's death",
            f"{target}: a script",
            code(
                f"import os, subprocess\nsubprocess.Popen(['sleep', '107'])\nos.system({RUNS!r})\nos.system('sleep"
                " 108')"
            ),
            strike,
        ),
    )


_DEATHS = (
    *(
        attack
        for target in ("keeper killed", "keeper stopped and runtime killed", "runtime killed")
        for attack in _deaths(target)
    ),
    attack_of(
        "the keeper's death",
        "the session ends: a daemon in a session of its own",
        py(
            "import subprocess\nsubprocess.run(['setsid', '-f', 'sleep', '109'])\nsubprocess.Popen(['nohup', 'sleep',"
            " '110'])"
        ),
        sh("true"),
    ),
    attack_of(
        "the keeper's death",
        "the session ends: a background process with children",
        background(
            "python3 -c \"import subprocess as s; s.run(['setsid', '-f', 'sleep', '112'])\"; sleep 111; sleep 113"
        ),
        sh("true"),
    ),
    attack_of(
        "the keeper's death",
        "the session ends: one that ignores signals",
        background("trap '' TERM HUP INT; (trap '' TERM HUP; sleep 114; sleep 115) & sleep 116"),
        sh("sleep 0.3"),
    ),
)

ATTACKS = (*_SIGNALS, *_TERMINALS, *_DEATHS)
