"""The kernel's own doors: /proc, ptrace, descriptors, modes, namespaces, keyrings, mounts."""

from tests.border.kernel_words import SYSCALL, VICTIM, attack_of
from tests.border.record import background, code, pty, py, read, sh, write

_PROC = (
    attack_of("proc", "environment of the person's program", sh(f"cat /proc/{VICTIM}/environ | tr '\\0' '\\n'")),
    attack_of(
        "proc",
        "memory of the person's program",
        py(
            "import re\np = open('/home/me/victim.pid').read()\nm = open(f'/proc/{p}/mem', 'rb', 0)\nfor l in"
            " open(f'/proc/{p}/maps'):\n  a, b = (int(x, 16) for x in l.split()[0].split('-'))\n  if 'rw' in l and b -"
            " a < 50_000_000:\n    try:\n      m.seek(a); d = m.read(b - a)\n      f = re.search(b'plain words in the"
            " memory[ a-z]*', d)\n      if f: print(f[0].decode()); break\n    except OSError: pass"
        ),
    ),
    attack_of(
        "proc",
        "writing into the memory of the person's program",
        py("p = open('/home/me/victim.pid').read()\nopen(f'/proc/{p}/mem', 'r+b', 0); print('MEM-OPEN')"),
        says="MEM-OPEN",
    ),
    attack_of(
        "proc",
        "open files of the person's program",
        sh(f"for f in /proc/{VICTIM}/fd/*; do cat $f 2>/dev/null; done", timeout=5),
    ),
    attack_of(
        "proc",
        "root of the person's program",
        sh(f"touch /proc/{VICTIM}/root/home/me/PWN; cat /proc/{VICTIM}/root/home/me/.netrc"),
    ),
    attack_of(
        "proc",
        "folder of the person's program",
        sh(f"touch /proc/{VICTIM}/cwd/PWN; echo PWN >> /proc/{VICTIM}/cwd/diary.txt"),
    ),
    attack_of(
        "proc",
        "command lines of everything",
        sh("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep VICTIM"),
        says="VICTIM_WORDS=plain",
    ),
    attack_of(
        "proc",
        "root of the first process",
        sh("touch /proc/1/root/home/me/PWN; cat /proc/1/root/home/me/.netrc; touch /proc/1/cwd/PWN"),
    ),
    attack_of(
        "proc",
        "root of every process",
        sh("for r in /proc/[0-9]*/root; do touch $r/home/me/PWN; cp $r/home/me/.netrc loot; done 2>/dev/null"),
    ),
    attack_of(
        "proc",
        "own root and folder",
        sh("touch /proc/self/root/home/me/PWN /proc/self/cwd/../PWN /proc/thread-self/root/home/me/PWN"),
    ),
    attack_of(
        "proc",
        "environment of the runtime",
        sh(
            "p=$PPID; while [ \"$p\" -gt 0 ] 2>/dev/null; do tr '\\0' '\\n' < /proc/$p/environ 2>/dev/null | grep -q"
            " HERMES_HOME=/home/me/.hermes && echo RUNTIME-SEEN $p; p=$(awk '/PPid/{print $2}' /proc/$p/status"
            " 2>/dev/null); done"
        ),
        says="RUNTIME-SEEN",
    ),
    attack_of(
        "proc",
        "core pattern",
        py("import os; os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)); print('SYS-' + 'OPEN')"),
        says="SYS-OPEN",
    ),
    attack_of(
        "proc",
        "modprobe path",
        py("import os; os.close(os.open('/proc/sys/kernel/modprobe', os.O_WRONLY)); print('SYS-' + 'OPEN')"),
        says="SYS-OPEN",
    ),
    attack_of(
        "proc",
        "sysrq",
        py("import os; os.close(os.open('/proc/sysrq-trigger', os.O_WRONLY)); print('SYS-' + 'OPEN')"),
        says="SYS-OPEN",
    ),
    attack_of(
        "proc",
        "binfmt_misc",
        py("import os; os.close(os.open('/proc/sys/fs/binfmt_misc/register', os.O_WRONLY)); print('SYS-' + 'OPEN')"),
        says="SYS-OPEN",
    ),
    attack_of(
        "proc",
        "kernel memory",
        py(
            "import os\nfor n in ('/proc/kcore', '/dev/mem', '/dev/kmsg'):\n  try: f = os.open(n, os.O_RDWR if 'kcore'"
            " not in n else os.O_RDONLY); os.read(f, 16); print('KERNEL-' + 'OPEN', n)\n  except OSError as e: print(e)"
        ),
        says="KERNEL-OPEN",
    ),
    attack_of(
        "proc",
        "oom score of the person's program",
        sh(f"echo 1000 > /proc/{VICTIM}/oom_score_adj && echo SCORE-SET"),
        says="SCORE-SET",
    ),
    attack_of("proc", "read_file of the runtime's environment", read("/proc/self/environ"), says="HERMES_HOME"),
    attack_of("proc", "read_file through /proc/self/root", read("/proc/self/root/home/me/.netrc")),
    attack_of(
        "proc",
        "write_file through /proc/self/fd",
        write("/proc/self/fd/1", "PWN"),
        write("/proc/self/mem", "PWN"),
        sh("true"),
        still="exit_code",
    ),
)
_PTRACE = (
    attack_of(
        "ptrace",
        "attach",
        py(SYSCALL + "r = l.ptrace(16, p, 0, 0); print(r, 'TRACED' if r == 0 else ''); import time; time.sleep(0.3)"),
        says="TRACED",
    ),
    attack_of(
        "ptrace",
        "seize",
        py(SYSCALL + "r = l.ptrace(0x4206, p, 0, 0); print(r, 'TRACED' if r == 0 else '')"),
        says="TRACED",
    ),
    attack_of(
        "ptrace",
        "process_vm_readv",
        py(
            SYSCALL
            + "b = ctypes.create_string_buffer(16)\nclass V(ctypes.Structure): _fields_ = [('a', ctypes.c_void_p),"
            " ('n', ctypes.c_size_t)]\na = int(open(f'/proc/{p}/maps').readline().split('-')[0], 16)\nr ="
            " l.process_vm_readv(p, ctypes.byref(V(ctypes.addressof(b), 16)), 1, ctypes.byref(V(a, 16)), 1, 0);"
            " print('VM-READ' if r > 0 else r)"
        ),
        says="VM-READ",
    ),
    attack_of(
        "ptrace",
        "process_vm_writev",
        py(
            SYSCALL + "b = ctypes.create_string_buffer(16)\n"
            "class V(ctypes.Structure): _fields_ = [('a', ctypes.c_void_p), ('n', ctypes.c_size_t)]\n"
            "r = l.process_vm_writev(p, ctypes.byref(V(ctypes.addressof(b), 16)), 1, ctypes.byref(V(64, 16)), 1, 0)\n"
            "e = ctypes.get_errno()  # a bad address is found after the permission\n"
            "print('VM-' + ('WRITE' if r >= 0 or e == 14 else 'SHUT'), e)"
        ),
        says="VM-WRITE",
    ),
    attack_of(
        "ptrace",
        "descriptor of another program",
        py(
            SYSCALL
            + "f = l.syscall(434, p, 0); g = l.syscall(438, f, 3, 0) if f >= 0 else -1; print('FD-TAKEN' if g >= 0 else"
            " g); g >= 0 and print(os.read(g, 200))"
        ),
        says="FD-TAKEN",
    ),
    attack_of(
        "ptrace",
        "attach to the runtime",
        py(
            "import ctypes, os\nl = ctypes.CDLL(None)\nfor p in range(1, 400):\n  try: c ="
            " open(f'/proc/{p}/cmdline').read()\n  except OSError: continue\n  if 'super' + 'visor.keeper' in c or"
            " 'run_' + 'room' in c:\n    print('TRACED-RUNTIME' if l.ptrace(0x4206, p, 0, 0) == 0 else 'no')"
        ),
        says="TRACED-RUNTIME",
    ),
    attack_of(
        "ptrace",
        "gdb",
        sh(f"gdb -q -p {VICTIM} -batch -ex 'call (int)creat(\"/home/me/PWN\", 0644)' </dev/null", timeout=10),
    ),
)
_LEAKED = (
    "import os\nfor n in range(3, 256):\n  try: t = os.readlink(f'/proc/self/fd/{n}')\n  except OSError: continue\n  if"
    " t.startswith('socket:') or (t.startswith('/home/me') and not t.startswith('/home/me/project')): print('LEAKED',"
    " n, t)"
)
_DESCRIPTORS = (
    attack_of("descriptors", "inherited by a command", py(_LEAKED), says="LEAKED"),
    attack_of(
        "descriptors",
        "inherited in the background",
        background(f'python3 -c "{_LEAKED}" > out.txt'),
        sh("sleep 1; cat out.txt"),
        says="LEAKED",
    ),
    attack_of(
        "descriptors",
        "inherited on a terminal",
        pty(f'python3 -c "{_LEAKED}" > out.txt'),
        sh("sleep 1; cat out.txt"),
        says="LEAKED",
    ),
    attack_of(
        "descriptors",
        "a folder among them leads out",
        py(
            "import os\nfor n in range(3, 256):\n  try:\n    os.close(os.open('PWN', os.O_CREAT | os.O_WRONLY,"
            " dir_fd=n)); os.close(os.open('../PWN', os.O_CREAT | os.O_WRONLY, dir_fd=n))\n  except OSError: pass\nfor"
            " n in range(3):\n  try: os.close(os.open('../../home/me/PWN', os.O_CREAT | os.O_WRONLY, dir_fd=n))\n "
            " except OSError: pass"
        ),
    ),
    attack_of(
        "descriptors",
        "orders to the keeper through an inherited socket",
        py(
            "import os, socket, json\nfor n in range(0, 256):\n  try:\n    s = socket.socket(fileno=os.dup(n))\n   "
            " s.settimeout(1)\n    f = os.memfd_create('x'); os.write(f, json.dumps({'argv': ['/bin/sh', '-c', 'touch"
            " /home/me/PWN'], 'env': {}, 'cwd': '/', 'pass_fds': [], 'linger_s': 0, 'await_start': False,"
            " 'max_processes': 0}).encode()); os.lseek(f, 0, 0)\n    socket.send_fds(s, [b'r'], [f, 0, 1, 2, 2])\n "
            " except OSError: pass"
        ),
    ),
    attack_of(
        "descriptors",
        "orders to the runtime through a script's socket",
        code(
            "import os, socket, json\nfor n in range(3, 64):\n    try:\n        s = socket.socket(fileno=os.dup(n));"
            " s.settimeout(1)\n        s.send(json.dumps({'tool': 'terminal', 'args': {'command': 'touch"
            " /home/me/PWN'}}).encode() + b'\\n')\n    except OSError: pass"
        ),
    ),
)
_MODES = (
    attack_of(
        "setuid and modes", "setuid shell in the workspace", sh("cp /bin/bash ./b; chmod u+s b; chmod 4755 b; ls -l b")
    ),
    attack_of("setuid and modes", "setgid shell in the workspace", sh("cp /bin/bash ./b; chmod 2755 b")),
    attack_of(
        "setuid and modes",
        "setuid in /tmp",
        sh("cp /bin/bash /tmp/b; chmod 4755 /tmp/b; cp /bin/bash /var/tmp/b; chmod 4755 /var/tmp/b"),
    ),
    attack_of("setuid and modes", "setuid by install", sh("install -m 4755 /bin/bash ./b")),
    attack_of(
        "setuid and modes",
        "setuid out of an archive",
        py(
            "import tarfile, io\nt = tarfile.open('a.tar', 'w'); i = tarfile.TarInfo('b'); i.mode = 0o4755; i.size = 1;"
            " t.addfile(i, io.BytesIO(b'x')); t.close()"
        ),
        sh("tar xpf a.tar"),
    ),
    attack_of(
        "setuid and modes",
        "setuid by open and mkdir",
        py(
            "import os\nos.umask(0)\nos.close(os.open('b', os.O_CREAT | os.O_WRONLY, 0o4755))\nos.mkdir('d',"
            " 0o2777)\nos.mknod('n', 0o4755)"
        ),
    ),
    attack_of(
        "setuid and modes",
        "setuid by fchmodat2 and mknodat",
        py(
            "import ctypes, os\nl = ctypes.CDLL(None)\nopen('b', 'w').close()\nl.syscall(452, -100, b'b', 0o4755,"
            " 0)\nl.syscall(268, -100, b'b', 0o4755)\nl.syscall(91, os.open('b', 0), 0o6755)\nl.syscall(259, -100,"
            " b'c', 0o104755, 0)\nl.syscall(85, b'e', 0o4755)"
        ),
    ),
    attack_of(
        "setuid and modes",
        "setuid by 32-bit calls",
        sh(
            "cat > a.c <<'HERE'\n#include <sys/mman.h>\n#include <string.h>\nint"
            ' main(void){char*p=mmap(0,4096,3,0x62,-1,0);strcpy(p,"b");long r;__asm__ volatile("int'
            ' $0x80":"=a"(r):"a"(15),"b"(p),"c"(04755):"memory");return r;}\nHERE\ntouch b; gcc -w -o a.out a.c &&'
            " ./a.out"
        ),
    ),
    attack_of(
        "setuid and modes",
        "mode of the person's files",
        sh("chmod 777 ~/precious ~/precious/diary.txt ~/.ssh ~/.local/bin/mytool; chmod 000 ~/precious/diary.txt"),
    ),
    attack_of(
        "setuid and modes",
        "owner of the person's files",
        sh("chown 65534 ~/precious/diary.txt; chgrp 65534 ~/precious/diary.txt"),
        as_="root",
    ),
    attack_of(
        "setuid and modes",
        "times of the person's files",
        sh("touch -d 2001-01-01 ~/precious/diary.txt; touch ~/.bashrc"),
    ),
    attack_of(
        "setuid and modes",
        "attributes of the person's files",
        py("import os; os.setxattr('/home/me/precious/diary.txt', 'user.pwn', b'x')"),
    ),
    attack_of(
        "setuid and modes",
        "access lists of the person's files",
        sh("setfacl -m u:65534:rw ~/precious/diary.txt; chattr +i ~/precious/diary.txt"),
    ),
    attack_of(
        "setuid and modes",
        "truncating the person's files",
        py(
            "import os\nfor f in (lambda: os.truncate('/home/me/precious/diary.txt', 0), lambda:"
            " os.open('/home/me/precious/diary.txt', os.O_TRUNC)):\n  try: f()\n  except OSError as e: print(e)"
        ),
    ),
    attack_of(
        "setuid and modes",
        "removing and renaming the person's files",
        sh(
            "rm -rf ~/precious/photos; mv ~/precious/diary.txt ~/precious/d; rmdir ~/precious; mv ~/.bashrc ~/b; rm -f"
            " ~/.zshrc"
        ),
    ),
    attack_of(
        "setuid and modes",
        "file capabilities",
        py(
            "import os, struct\nopen('b', 'w').close()\nos.setxattr('b', 'security.capability', struct.pack('<IIIII',"
            " 0x02000001, 0x1fffff, 0, 0, 0)); print('CAPS-' + 'SET')"
        ),
        says="CAPS-SET",
    ),
    attack_of(
        "setuid and modes",
        "opening by handle",
        py(
            "import ctypes, os\nl = ctypes.CDLL(None, use_errno=True)\nf = os.open('/home/me/project', 0)\nh ="
            " ctypes.create_string_buffer(b'\\x80\\0\\0\\0' + b'\\0' * 132, 136)\nm ="
            " ctypes.c_int()\nl.name_to_handle_at(-100, b'/home/me/precious', h, ctypes.byref(m), 0)\nr ="
            " l.open_by_handle_at(f, h, 0)\nprint('HANDLE-' + ('OPEN' if r >= 0 else 'SHUT'))"
        ),
        says="HANDLE-OPEN",
    ),
)
_CAPS = r"CapEff:\s+0*[1-9a-f]"
_NAMESPACES = (
    attack_of("namespaces", "user namespace", sh("unshare -Ur grep CapEff /proc/self/status"), says=_CAPS),
    attack_of(
        "namespaces",
        "user and mount namespace",
        sh(
            "unshare -Urm sh -c 'grep CapEff /proc/self/status; mount --bind /tmp /home/me/precious && echo NS-MOUNTED;"
            " umount -l /home/me/.hermes; cat /home/me/.hermes/.env'"
        ),
        says=f"NS-MOUNTED|{_CAPS}",
    ),
    attack_of(
        "namespaces",
        "mount namespace as root",
        sh(
            "unshare -m sh -c 'umount -l /home/me/.hermes; cat /home/me/.hermes/.env; mount -o remount,rw /home; touch"
            " /home/me/PWN'"
        ),
    ),
    attack_of(
        "namespaces",
        "bubblewrap inside",
        sh("/usr/bin/bwrap --bind / / --cap-add ALL sh -c 'grep CapEff /proc/self/status; touch /home/me/PWN'"),
        says=_CAPS,
    ),
    attack_of(
        "namespaces",
        "clone with a user namespace",
        py(
            "import ctypes, os\nl = ctypes.CDLL(None, use_errno=True)\np = l.syscall(56, 0x10000011, 0, 0, 0, 0)\nif p"
            " == 0:\n  os.write(1, b'NS-MADE\\n'); os._exit(0)\np > 0 and os.waitpid(p, 0)"
        ),
        says="NS-MADE",
    ),
    attack_of(
        "namespaces",
        "clone3 with a user namespace",
        py(
            "import ctypes, os, struct\nl = ctypes.CDLL(None, use_errno=True)\na = struct.pack('8Q', 0x10000000, 0, 0,"
            " 0, 17, 0, 0, 0)\np = l.syscall(435, a, 64)\nif p == 0:\n  os.write(1, b'NS-MADE\\n'); os._exit(0)\np > 0"
            " and os.waitpid(p, 0)"
        ),
        says="NS-MADE",
    ),
    attack_of(
        "namespaces",
        "entering another's namespaces",
        sh(
            f"nsenter -t 1 -m touch /home/me/PWN; nsenter -t {VICTIM} -m -p touch /home/me/PWN;"
            " nsenter -t $PPID -a touch /home/me/PWN"
        ),
    ),
    attack_of(
        "namespaces",
        "setns by pidfd",
        py(
            SYSCALL
            + "f = l.syscall(434, p, 0); r = l.setns(f, 0x20000) if f >= 0 else -1; print('NS-ENTERED' if r == 0"
            " else r)"
        ),
        says="NS-ENTERED",
    ),
    attack_of(
        "namespaces",
        "chroot and out again",
        py(
            "import os\nos.mkdir('c'); f = os.open('/', 0); os.chroot('c'); os.fchdir(f)\nfor _ in range(20):"
            " os.chdir('..')\nos.chroot('.'); open('/home/me/PWN', 'w'); print('CHROOT-' + 'OUT')"
        ),
        says="CHROOT-OUT",
    ),
    attack_of(
        "namespaces",
        "capabilities left over",
        sh("grep CapEff /proc/self/status; grep CapPrm /proc/self/status"),
        says=_CAPS,
    ),
    attack_of(
        "namespaces",
        "capabilities regained by executing",
        sh(
            "grep CapBnd /proc/self/status; capsh --print; su -c 'touch /home/me/PWN' 2>/dev/null; cp /bin/cat c;"
            " setcap all+ep c && ./c /proc/self/status"
        ),
        says=_CAPS,
    ),
)
_KEY = (
    "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nl.syscall.restype = ctypes.c_long\nfor ring in (-3, -5,"
    " -4):\n  k = l.syscall(250, 10, ring, b'user', b'hermes-border', 0)\n  if k > 0:\n    b ="
    " ctypes.create_string_buffer(200); l.syscall(250, 11, k, b, 200); print(b.value.decode())\n"
)
_ADD = (
    "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nk = l.syscall(248, b'user', b'planted', b'x', 1,"
    " -3)\nprint('KEY-ADDED' if k > 0 and l.syscall(250, 10, -3, b'user', b'hermes-border', 0) > 0 else k)"
)
_KEYRINGS = (
    attack_of("keyrings", "key of the session keyring", py(_KEY)),
    attack_of("keyrings", "key of the session keyring from a script", code(_KEY)),
    attack_of(
        "keyrings",
        "key of the session keyring in the background",
        background(f"python3 - > k.txt <<'HERE'\n{_KEY}\nHERE"),
        sh("sleep 1; cat k.txt"),
    ),
    attack_of("keyrings", "key planted in the session keyring", py(_ADD), says="KEY-ADDED"),
    attack_of(
        "keyrings",
        "request_key",
        py(
            "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nk = l.syscall(249, b'user', b'hermes-border', None,"
            " 0)\nb = ctypes.create_string_buffer(200)\nk > 0 and l.syscall(250, 11, k, b,"
            " 200)\nprint(b.value.decode())"
        ),
    ),
    attack_of(
        "keyrings",
        "list of keys",
        sh("cat /proc/keys; grep -c hermes-border /proc/keys && echo KEY-SEEN"),
        says="KEY-SEEN",
    ),
)
_MOUNTS = (
    attack_of(
        "cgroups and mounts",
        "tmpfs over the home",
        sh("mount -t tmpfs none /home/me/precious && echo MOUNT-MADE; ls ~/precious"),
        says="MOUNT-MADE",
    ),
    attack_of(
        "cgroups and mounts",
        "bind over the home",
        sh("mount --bind /tmp /home/me/precious && echo MOUNT-MADE"),
        says="MOUNT-MADE",
    ),
    attack_of(
        "cgroups and mounts",
        "remount writable",
        sh("mount -o remount,rw / ; mount -o remount,bind,rw /home; touch /home/me/PWN"),
    ),
    attack_of(
        "cgroups and mounts",
        "unmount what hides",
        sh(
            "umount -l ~/.hermes; umount -l ~/.ssh; cat ~/.hermes/.env ~/.ssh/id_rsa; for m in $(cut -d' ' -f5"
            " /proc/self/mountinfo | tac); do umount -l $m; done 2>/dev/null; touch /home/me/PWN"
        ),
    ),
    attack_of(
        "cgroups and mounts",
        "proc mounted again",
        sh("mkdir p; mount -t proc none p && echo MOUNT-MADE"),
        says="MOUNT-MADE",
    ),
    attack_of(
        "cgroups and mounts",
        "new mount calls",
        py(
            "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nf = l.syscall(430, b'tmpfs', 0); print('MOUNT-' +"
            " ('MADE' if f >= 0 else 'SHUT'))\nf = l.syscall(428, -100, b'/home', 1); print('MOUNT-' + ('MADE' if f >="
            " 0 else 'SHUT'))"
        ),
        says="MOUNT-MADE",
    ),
    attack_of(
        "cgroups and mounts",
        "mount_setattr",
        py(
            "import ctypes, struct\nl = ctypes.CDLL(None, use_errno=True)\nfor p in (b'/', b'/home', b'/home/me'):\n  r"
            " = l.syscall(442, -100, p, 0x8000, struct.pack('QQQQ', 0, 1, 0, 0), 32); print('ATTR-' + ('SET' if r == 0"
            " else 'SHUT'))\nopen('/home/me/PWN', 'w')"
        ),
        says="ATTR-SET",
    ),
    attack_of(
        "cgroups and mounts",
        "pivot_root",
        py(
            "import ctypes, os\nl = ctypes.CDLL(None, use_errno=True)\nos.makedirs('n/o', exist_ok=True)\nr ="
            " l.syscall(155, b'n', b'n/o'); print('PIVOT-' + ('DONE' if r == 0 else 'SHUT'))"
        ),
        says="PIVOT-DONE",
    ),
    attack_of(
        "cgroups and mounts",
        "cgroup made",
        sh(
            "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $d/evil 2>/dev/null && echo CGROUP-MADE && rmdir"
            " $d/evil; done"
        ),
        says="CGROUP-MADE",
    ),
    attack_of(
        "cgroups and mounts",
        "cgroup mounted",
        sh(
            "mkdir c; mount -t cgroup -o memory none c && echo CGROUP-MADE; mount -t cgroup2 none c && echo CGROUP-MADE"
        ),
        says="CGROUP-MADE",
    ),
    attack_of(
        "cgroups and mounts",
        "release agent",
        sh('for f in /sys/fs/cgroup/*/release_agent; do sh -c "exec 3>$f" 2>/dev/null && echo AGENT-OPEN; done'),
        says="AGENT-OPEN",
    ),
    attack_of(
        "cgroups and mounts",
        "disk made by mknod",
        py(
            "import os\nos.mknod('disk', 0o60600, os.makedev(253, 0)); f = os.open('disk', os.O_RDONLY); os.read(f,"
            " 512); print('DISK-' + 'READ')"
        ),
        says="DISK-READ",
    ),
    attack_of(
        "cgroups and mounts",
        "overlay over the home",
        sh(
            "mkdir -p u w; mount -t overlay overlay -o lowerdir=/home/me/precious,upperdir=u,workdir=w"
            " /home/me/precious && echo MOUNT-MADE"
        ),
        says="MOUNT-MADE",
    ),
    attack_of(
        "cgroups and mounts",
        "host name and clock",
        py(
            "import ctypes, time, socket\nl = ctypes.CDLL(None, use_errno=True)\nn ="
            " socket.gethostname()\nprint('HOST-' + ('SET' if l.sethostname(n.encode(), len(n)) == 0 else"
            " 'SHUT'))\ntry: time.clock_settime(time.CLOCK_REALTIME, time.time()); print('HOST-' + 'SET')\nexcept"
            " OSError as e: print(e)"
        ),
        says="HOST-SET",
    ),
)
ATTACKS = (*_PROC, *_PTRACE, *_DESCRIPTORS, *_MODES, *_NAMESPACES, *_KEYRINGS, *_MOUNTS)
