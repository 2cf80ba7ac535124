"""Files, archives, text, databases, servers, ssh, and the two things that are refused in so many words."""

from tests.border.everyday import Task
from tests.border.record import background, pty, read, search, sh, write

_PG = (
    "export PGDATA=$PWD/pg && initdb -A trust -E UTF8 --locale=C -U me >/dev/null && "
    "pg_ctl -o '-p 5544 -h 127.0.0.1 -k /tmp' -w -l pg.log start >/dev/null"
)


def _do(name: str, command: str, expects: str = "", *needs: str, before: str = "", after: str = "") -> Task:
    return Task(name=name, steps=(sh(command, timeout=90),), expects=expects, needs=needs, before=before, after=after)


def _refused(name: str, command: str, expects: str) -> Task:
    return Task(name=name, steps=(sh(command),), expects=expects, refused=True)


_FILES = (
    _do("files: ls", "ls -la", "main.py"),
    _do("files: find", "find . -name '*.py' -not -path './.venv/*'", "app.py"),
    _do("files: make and remove", "mkdir -p a/b && touch a/b/c && rm a/b/c && rmdir a/b a && ls", "main.py"),
    _do("files: remove what was made", "mkdir -p out && touch out/x && rm -r out && ls", "main.py"),
    _do("files: copy and move", "cp main.py copy.py && mv copy.py moved.py && cat moved.py", "hello"),
    _do("files: copy a tree", "cp -r src src2 && diff -r src src2 && echo same", "same"),
    _do("files: links", "ln -s main.py link && readlink link && cat link", "hello"),
    _do("files: hard links in the workspace", "ln main.py hard && stat -c %h hard", "2"),
    _do("files: modes", "touch x && chmod 755 x && stat -c %a x && chmod u-x,g-w x && stat -c %a x", "655"),
    _do("files: times", "touch -d 2020-01-01 old && ls -l --time-style=long-iso old", "2020-01-01"),
    _do(
        "files: temporary files",
        "t=$(mktemp) && echo x > $t && cat $t && d=$(mktemp -d) && ls -d $d && rm -r $t $d",
        "tmp",
    ),
    _do("files: /tmp is there between commands", "echo kept > /tmp/kept.txt && cat /tmp/kept.txt", "kept"),
    _do("files: disk usage", "du -sh . && df -h . && stat -f .", "project"),
    _do("files: rsync", "rsync -a src/ backup/ && ls backup", "app.py", "rsync"),
    _do("files: tee and redirects", "echo a | tee t1 > t2 && cat t1 t2 && echo e 2> err >&2 && cat err", "e"),
    _do("files: sed in place", "sed -i 's/hello/goodbye/' main.py && cat main.py", "goodbye"),
    _do(
        "files: truncate and dd",
        "truncate -s 1M big && dd if=/dev/zero of=z bs=1k count=4 status=none && ls -l big z",
        "1048576",
    ),
    _do("files: read the person's settings", "cat ~/.gitconfig ~/.config/pip/pip.conf", "timeout"),
    _do("files: read another project", "cat ~/other-project/main.py && ls ~/other-project", "Makefile"),
    _do(
        "files: fifo of one's own",
        "mkfifo f && exec 3<>f && echo through >&3 && read -r line <&3 && echo $line",
        "through",
    ),
    _do("files: lock", "flock l echo locked && ls l", "locked"),
    _do(
        "files: checksum",
        "md5sum main.py && sha256sum main.py > s && sha256sum -c s",
        "OK",
    ),
    Task(
        name="files: state between commands",
        steps=(sh("cd src && export NAME=value && alias hi='echo hi'"), sh("pwd && echo $NAME && hi")),
        expects="project/src.*value.*hi",
    ),
    Task(name="files: read_file", steps=(read("main.py"),), expects="hello"),
    Task(name="files: read_file of another project", steps=(read("~/other-project/main.py"),), expects="hello"),
    Task(name="files: search_files", steps=(search("def app", "."),), expects="app.py"),
    Task(
        name="files: write_file in a new folder",
        steps=(write("docs/guide/intro.md", "# Intro\n"), sh("cat docs/guide/intro.md")),
        expects="Intro",
    ),
    Task(
        name="files: write_file over an old one",
        steps=(read("README.md"), write("README.md", "# New\n"), sh("cat README.md")),
        expects="# New",
    ),
    Task(
        name="files: write_file to /tmp",
        steps=(write("/tmp/scratch.txt", "scratch\n"), read("/tmp/scratch.txt")),
        expects="scratch",
    ),
    Task(
        name="files: /tmp by tool and by command is one",
        steps=(write("/tmp/both.txt", "both\n"), sh("cat /tmp/both.txt")),
        expects="both",
    ),
)
_ARCHIVES = (
    _do("archives: tar and gzip", "tar czf a.tgz src && mkdir x && tar xzf a.tgz -C x && ls x/src", "app.py"),
    _do("archives: tar and xz", "tar cJf a.txz src && tar tJf a.txz", "app.py", "xz"),
    _do("archives: zip", "zip -qr a.zip src && unzip -l a.zip && unzip -qo a.zip -d x && ls x", "src", "zip"),
    _do("archives: gzip of a file", "gzip -k main.py && zcat main.py.gz", "hello"),
    _do("archives: python's zip", "python3 -m zipfile -c a.zip main.py && python3 -m zipfile -l a.zip", "main.py"),
    _do("archives: bzip2", "bzip2 -k main.py && bunzip2 -c main.py.bz2", "hello", "bzip2"),
    _do("archives: tar with modes and owners", "tar cpf a.tar src && tar xpf a.tar -C /tmp && ls /tmp/src", "app.py"),
    _do("archives: cpio", "find src | cpio -o 2>/dev/null > a.cpio && cpio -t < a.cpio", "app.py", "cpio"),
)
_TEXT = (
    _do("text: grep", "grep -rn hello --include=*.py . | grep -v venv", "main.py"),
    _do("text: ripgrep", "rg -n hello", "main.py", "rg"),
    _do("text: jq", "jq -r .name package.json", "project", "jq"),
    _do("text: sort, uniq, cut", "printf 'b x\\na y\\nb z\\n' | cut -d' ' -f1 | sort | uniq -c", "2 b"),
    _do(
        "text: diff and patch",
        "cp main.py n.py && echo x >> n.py && { diff -u main.py n.py > p || true; } && patch main.py p && tail -1"
        " main.py",
        "x",
        "patch",
    ),
    _do("text: xargs", "ls *.py | xargs -n1 wc -l", "main.py"),
    _do("text: bc", "echo '2^10' | bc", "1024", "bc"),
    _do("text: openssl", "echo x | openssl dgst -sha256 && openssl rand -hex 4", "[0-9a-f]{8}", "openssl"),
    _do("text: base64 and xxd", "echo hello | base64 | base64 -d && printf hi | od -c", "h   i"),
    _do("text: file", "file main.py", "text", "file"),
    _do("text: date, seq, printf", "date +%Y && seq 3 | tr '\\n' ' ' && printf '%03d\\n' 7", "007"),
    _do("text: here document", "cat > note.txt <<'END'\n$HOME stays\nEND\ncat note.txt", "\\$HOME stays"),
    _do("text: less and head", "head -1 README.md && tail -1 README.md && less README.md | cat", "Project", "less"),
)
_DATA = (
    _do(
        "sqlite: make and ask",
        "sqlite3 d.db 'create table t(a); insert into t values (1), (2); select sum(a) from t'",
        "3",
        "sqlite3",
    ),
    _do(
        "sqlite: from python",
        "python3 -c \"import sqlite3; d = sqlite3.connect('d.db'); d.execute('pragma journal_mode=wal');"
        " d.execute('create table t(a)'); d.execute('insert into t values (5)'); d.commit(); print(d.execute('select a"
        " from t').fetchall())\"",
        "5",
    ),
    _do(
        "sqlite: dump and load",
        "sqlite3 d.db 'create table t(a); insert into t values (9)' && sqlite3 d.db .dump | sqlite3 e.db && sqlite3"
        " e.db 'select a from t'",
        "9",
        "sqlite3",
    ),
    _do(
        "postgres: start, ask, stop",
        f"{_PG} && psql -h 127.0.0.1 -p 5544 -U me -d postgres -c 'select 6 * 7 as n' && pg_ctl stop",
        "42",
        "initdb",
        "psql",
    ),
    _do(
        "postgres: over a socket of one's own",
        f"{_PG} && psql -h /tmp -p 5544 -U me -d postgres -c 'create table t(a int)' -c 'insert into t values (1)' -c"
        " 'select count(*) from t'; pg_ctl stop",
        "1",
        "initdb",
        "psql",
    ),
    _do(
        "postgres: createdb and dump",
        f"{_PG} && createdb -h 127.0.0.1 -p 5544 -U me app && psql -q -h 127.0.0.1 -p 5544 -U me -d app -c 'create"
        " table t(a int)' && pg_dump -h 127.0.0.1 -p 5544 -U me app | grep 'CREATE TABLE'; pg_ctl stop",
        "CREATE TABLE",
        "initdb",
        "psql",
    ),
    _do(
        "redis: start, ask, stop",
        "redis-server --port 6399 --bind 127.0.0.1 --daemonize yes --dir $PWD >/dev/null && sleep 0.3 && redis-cli -p"
        " 6399 set a 1 && redis-cli -p 6399 get a && redis-cli -p 6399 shutdown",
        "1",
        "redis-server",
    ),
    Task(
        name="redis: in the background",
        steps=(
            background("redis-server --port 6398 --bind 127.0.0.1"),
            sh("for i in $(seq 50); do redis-cli -p 6398 ping && break; sleep 0.1; done"),
        ),
        expects="PONG",
        needs=("redis-server",),
    ),
)
_SERVERS = (
    _do(
        "server: one that answers once",
        'python3 -c "import http.server as h, threading, urllib.request as u\n'
        "s = h.HTTPServer(('127.0.0.1', 8770), h.SimpleHTTPRequestHandler)\n"
        "threading.Thread(target=s.handle_request).start()\n"
        "print(u.urlopen('http://127.0.0.1:8770/main.py').read())\"",
        "hello",
    ),
    _do("server: curl to a server here", "curl -sf $LOCAL_INDEX/simple/greeter/", "greeter", "curl"),
    _do("server: wget", "wget -qO- $LOCAL_INDEX/simple/greeter/", "greeter", "wget"),
    _do(
        "server: on ::1",
        "python3 -c \"import socket; s = socket.socket(socket.AF_INET6); s.bind(('::1', 0)); print('bound',"
        ' s.getsockname()[1])"',
        "bound",
    ),
    _do(
        "server: unix socket of one's own",
        "python3 -c \"import socket, threading\ns = socket.socket(socket.AF_UNIX); s.bind('/tmp/own.sock');"
        " s.listen()\nthreading.Thread(target=lambda: s.accept()[0].send(b'own')).start()\nc ="
        " socket.socket(socket.AF_UNIX); c.connect('/tmp/own.sock'); print(c.recv(9))\"",
        "own",
    ),
    Task(name="server: background, listed, killed", steps=(background("sleep 60"), sh("true")), expects="exit_code"),
    Task(
        name="server: a program on a terminal",
        steps=(
            pty('python3 -c "import sys; print(sys.stdout.isatty())" | tee t.txt; test -t 0 && echo terminal > t.txt'),
            sh("for i in $(seq 50); do test -s t.txt && break; sleep 0.1; done; sleep 0.2; cat t.txt"),
        ),
        expects="terminal|False",
    ),
    _do(
        "server: ps and signals of one's own",
        "ps aux | head -3 && timeout -s INT 1 sleep 9; kill -0 $$ && echo alive",
        "alive",
    ),
    Task(
        name="server: tmux of one's own",
        steps=(
            sh(
                "tmux -L own new-session -d 'echo x > tm.txt; sleep 1' && sleep 0.5; tmux -L own ls; tmux -L own"
                " kill-server; cat tm.txt"
            ),
        ),
        expects="x",
        needs=("tmux",),
    ),
    Task(name="server: timeout of a command", steps=(sh("timeout 1 sleep 5; echo ended $?"),), expects="ended 124"),
)
_SSH = (
    Task(
        name="ssh: version and key of one's own",
        steps=(sh("ssh -V && ssh-keygen -q -t ed25519 -N '' -f ./key && ls key.pub"),),
        expects="key.pub",
        needs=("ssh",),
    ),
    Task(
        name="ssh: keyscan of loopback",
        steps=(sh("ssh-keyscan -p 2222 127.0.0.1 2>/dev/null"),),
        expects="ssh-ed25519",
        needs=("ssh", "sshd"),
    ),
    Task(
        name="gpg: in a folder of its own",
        steps=(
            sh(
                "mkdir -m 700 g && export GNUPGHOME=$PWD/g && gpg --batch --passphrase '' --quick-gen-key"
                " me@example.org default default never 2>&1 && echo x > m && gpg --batch -s m && gpg --verify m.gpg"
                " 2>&1; gpgconf --kill all"
            ),
        ),
        expects="Good signature",
        needs=("gpg",),
    ),
)
_REFUSALS = (
    _refused("refused: docker ps", "docker ps", "(?i)docker.*(outside|border|sandbox|not|refus)|socket"),
    _refused("refused: sudo", "sudo ls /root", "(?i)sudo"),
    _refused("refused: apt-get install", "apt-get install -y sl", "(?i)outside|read-only|denied|root|not|lock"),
)
TASKS = (*_FILES, *_ARCHIVES, *_TEXT, *_DATA, *_SERVERS, *_SSH, *_REFUSALS)
