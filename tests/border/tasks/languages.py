"""Python, JavaScript, Rust, C, C++, Java and shell: building, testing, installing."""

from tests.border.everyday import Task
from tests.border.record import background, code, patch_text, replace, sh, write

VENV = {"VIRTUAL_ENV": "/home/me/project/.venv", "PATH": "/home/me/project/.venv/bin:$PATH"}
_PIP = "python3 -m pip install -q --disable-pip-version-check --index-url $LOCAL_INDEX/simple/"
_FRESH = (
    "python3 -m venv env && . env/bin/activate && pip install -q --disable-pip-version-check --index-url"
    " $LOCAL_INDEX/simple/"
)
# The same without waiting for a pip of its own to be unpacked.
_QUICK = (
    "python3 -m venv --without-pip env && . env/bin/activate && pip() { /usr/bin/python3 -m pip --python env/bin/python"
    ' "$@"; } && pip install -q --disable-pip-version-check --index-url $LOCAL_INDEX/simple/'
)


def _do(
    name: str,
    command: str,
    expects: str = "",
    *needs: str,
    before: str = "",
    after: str = "",
    env: dict[str, str] | None = None,
) -> Task:
    return Task(
        name=name,
        steps=(sh(command, timeout=90),),
        expects=expects,
        needs=needs,
        before=before,
        after=after,
        env=env or {},
    )


_SYSTEM = (
    "python3 -m venv --without-pip --system-site-packages env && pip() { /usr/bin/python3 -m pip --python"
    ' env/bin/python "$@"; }'
)
_TESTS = "printf 'from app import app\\ndef test_app():\\n    assert app() == 1\\n' > src/test_app.py"
_PYTHON = (
    _do("python: one-liner", "python3 -c 'print(sum(range(10)))'", "45"),
    _do("python: script of the project", "python3 main.py", "hello"),
    _do("python: compile everything", "python3 -m compileall -q . && echo compiled", "compiled"),
    _do(
        "python: unittest",
        "printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test(self): self.assertEqual(1, 1)\\n' > t.py"
        " && python3 -m unittest t",
        "OK",
    ),
    _do("python: pytest", f"{_TESTS} && cd src && pytest -q", "1 passed", "pytest"),
    _do(
        "python: pytest with a temporary folder",
        'printf \'def test(tmp_path):\\n    (tmp_path / "a").write_text("x")\\n\' > test_t.py && pytest -q test_t.py',
        "1 passed",
        "pytest",
    ),
    _do(
        "python: pytest in two processes",
        "printf 'def test_a(): pass\\ndef test_b(): pass\\n' > test_n.py && pytest -q -n 2 test_n.py",
        "2 passed",
        "pytest",
    ),
    _do("python: ruff", "ruff check main.py && ruff format --check main.py || ruff format main.py", "", "ruff"),
    _do("python: mypy", "mypy src/app.py", "Success", "mypy"),
    _do(
        "python: venv made", "python3 -m venv env && env/bin/python -c 'import sys; print(sys.prefix)'", "/project/env"
    ),
    _do(
        "python: pip install into a new venv",
        f"{_FRESH} greeter && python -c \"import greeter; print(greeter.greet('you'))\"",
        "Hello you",
    ),
    _do("python: pip install of a program", f"{_QUICK} counted && counted", "Hello you"),
    _do(
        "python: pip install of a pinned version",
        f"{_QUICK} greeter==1.0.0 && pip list && python -c \"import greeter; print(greeter.greet('you'))\"",
        "hello you",
    ),
    _do(
        "python: pip install from requirements",
        f"echo greeter > requirements.txt && {_QUICK} -r requirements.txt && pip freeze",
        "greeter==1.1.0",
    ),
    _do(
        "python: pip install from source",
        f"{_SYSTEM} && pip install -q --no-build-isolation --index-url $LOCAL_INDEX/simple/ sourced && env/bin/python"
        " -c 'import sourced; print(sourced.value)'",
        "7",
    ),
    _do(
        "python: pip install -e",
        _SYSTEM
        + ' && printf \'from setuptools import setup\\nsetup(name="mine", py_modules=["main"])\\n\' > setup.py && pip'
        " install -q --no-build-isolation --no-deps -e . && pip show mine",
        "mine",
    ),
    _do("python: pip uninstall", f"{_FRESH} greeter && pip uninstall -q -y greeter && pip list", "pip"),
    _do(
        "python: pip download",
        "python3 -m pip download -q --disable-pip-version-check --no-deps --index-url $LOCAL_INDEX/simple/ -d dl"
        " greeter && ls dl",
        "greeter-1.1.0",
    ),
    _do(
        "python: pip twice, from the cache",
        f"{_QUICK} greeter && pip uninstall -q -y greeter && pip install -q --index-url $LOCAL_INDEX/simple/ greeter &&"
        " pip list",
        "greeter",
    ),
    _do(
        "python: wheel built",
        _SYSTEM
        + ' && printf \'from setuptools import setup\\nsetup(name="mine", version="1", py_modules=["main"])\\n\' >'
        " setup.py && pip wheel -q --no-build-isolation --no-deps -w dist . && ls dist",
        "mine-1",
    ),
    _do(
        "python: the active virtualenv is what commands get",
        "python -c 'import sys; print(sys.prefix)' && command -v python && echo $VIRTUAL_ENV",
        "/home/me/project/.venv\\\\n/home/me/project/.venv/bin/python\\\\n/home/me/project/.venv",
        env=VENV,
    ),
    _do(
        "python: install into the active virtualenv",
        f"{_PIP.replace('python3 -m pip', '/usr/bin/python3 -m pip --python /home/me/project/.venv/bin/python')}"
        " greeter && python -c \"import greeter; print(greeter.greet('you'))\"",
        "Hello you",
        env=VENV,
    ),
    _do("python: order of PATH is kept", "mytool && echo $PATH", "mine"),
    _do("python: profile", "python3 -m cProfile -s time main.py | head -5", "function calls"),
    _do(
        "python: http.client to a server here",
        "python3 -c \"import urllib.request as u, os; print(u.urlopen(os.environ['LOCAL_INDEX'] +"
        " '/simple/greeter/').status)\"",
        "200",
    ),
    _do(
        "python: multiprocessing",
        "python3 -c \"import multiprocessing as m\nif __name__ == '__main__':\n  with m.Pool(2) as p: print(p.map(abs,"
        ' [-1, -2]))"',
        "\\[1, 2\\]",
    ),
    _do(
        "python: asyncio and subprocess",
        "python3 -c \"import asyncio\nasync def f():\n  p = await asyncio.create_subprocess_exec('echo', 'sub',"
        ' stdout=-1)\n  print((await p.communicate())[0])\nasyncio.run(f())"',
        "sub",
    ),
    _do(
        "python: sockets of its own",
        "python3 -c \"import socket, threading\ns = socket.socket(); s.bind(('127.0.0.1', 0));"
        " s.listen()\nthreading.Thread(target=lambda:"
        " s.accept()[0].send(b'hi')).start()\nprint(socket.create_connection(s.getsockname()).recv(9))\"",
        "hi",
    ),
    _do(
        "python: a pair of sockets",
        "python3 -c \"import socket; a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(9))\"",
        "pair",
    ),
    _do(
        "python: shared memory",
        'python3 -c "from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=9);'
        ' print(m.size); m.close(); m.unlink()"',
        "9",
    ),
    _do(
        "python: zipapp",
        "mkdir z && cp main.py z/__main__.py && python3 -m zipapp z -o z.pyz && python3 z.pyz",
        "hello",
    ),
    _do("python: debugger at a prompt", "printf 'c\\n' | python3 -m pdb main.py", "hello"),
    _do(
        "python: time zones and locale",
        'TZ=Europe/Berlin python3 -c "import datetime, zoneinfo, locale; print(datetime.datetime(2026, 7, 1,'
        " tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).utcoffset())\"",
        "2:00",
    ),
    _do(
        "uv: venv and install",
        "uv venv -q e && VIRTUAL_ENV=e uv pip install -q --index-url $LOCAL_INDEX/simple/ greeter && e/bin/python -c"
        " \"import greeter; print(greeter.greet('you'))\"",
        "Hello you",
        "uv",
    ),
    _do("uv: run a script", "uv run --no-project --offline --python /usr/bin/python3 main.py", "hello", "uv"),
    _do(
        "uv: project with a lock",
        "mkdir u && cd u && uv init -q --no-readme --python /usr/bin/python3 && uv add -q --default-index"
        " $LOCAL_INDEX/simple/ greeter && uv run --default-index $LOCAL_INDEX/simple/ python -c 'import greeter;"
        ' print(greeter.greet("you"))\'',
        "Hello you",
        "uv",
    ),
    _do(
        "uv: pip compile",
        "echo greeter > r.in && uv pip compile -q --index-url $LOCAL_INDEX/simple/ r.in",
        "greeter==1.1.0",
        "uv",
    ),
    Task(
        name="python: execute_code",
        steps=(
            code(
                "import pathlib\nprint(sorted(p.name for p in pathlib.Path('.').iterdir() if not"
                " p.name.startswith('.')))"
            ),
        ),
        expects="main.py",
    ),
    Task(
        name="python: execute_code with tools",
        steps=(
            code(
                "from hermes_tools import read_file, write_file, terminal\nwrite_file('made.txt', 'by a"
                " script')\nprint(read_file('made.txt'))\nprint(terminal('wc -c made.txt'))"
            ),
        ),
        expects="by a script",
        after="test -f made.txt",
    ),
    Task(
        name="python: execute_code in the active virtualenv",
        steps=(code("import sys\nprint(sys.prefix)"),),
        expects="project/.venv|usr",
        env=VENV,
    ),
)
_NODE = (
    _do("node: one-liner", "node -e 'console.log([1, 2].map(x => x * 2))'", "2, 4", "node"),
    _do(
        "node: test runner",
        "printf \"require('node:test')('t', () => {});\" > t.test.js && node --test",
        "pass 1",
        "node",
    ),
    _do(
        "node: server and fetch",
        "node -e \"const s = require('http').createServer((q, r) => r.end('served')).listen(0, '127.0.0.1', async () =>"
        " { console.log(await (await fetch('http://127.0.0.1:' + s.address().port)).text()); s.close() })\"",
        "served",
        "node",
    ),
    _do(
        "node: worker threads",
        "node -e \"const {Worker} = require('worker_threads'); new Worker('console.log(7)', {eval: true})\"",
        "7",
        "node",
    ),
    _do("npm: init and run", "npm pkg set scripts.hi='echo hi there' && npm run -s hi", "hi there", "npm"),
    _do(
        "npm: install of a tarball",
        "npm install --no-audit --no-fund /home/.packages/left-padded-1.0.0.tgz && node -e"
        " \"console.log(require('left-padded')('a', 3))\"",
        "  a",
        "npm",
    ),
    _do(
        "npm: install from a registry here",
        "npm install --no-audit --no-fund --registry $LOCAL_INDEX/ left-padded && npm ls",
        "left-padded@1.0.0",
        "npm",
    ),
    _do(
        "npm: install again from the lock",
        "npm install -s --no-audit --no-fund --registry $LOCAL_INDEX/ left-padded && rm -rf node_modules && npm ci"
        " --no-audit --no-fund --registry $LOCAL_INDEX/ && ls node_modules",
        "left-padded",
        "npm",
    ),
    _do(
        "npm: a tool of the project",
        "npm install -s --no-audit --no-fund /home/.packages/hello-tool-1.0.0.tgz && npx --no-install hello-tool",
        "hello from a tool",
        "npm",
    ),
    _do("npm: pack", "npm pack -s && ls *.tgz", "project-1.0.0.tgz", "npm"),
    _do("npm: version", "npm version --no-git-tag-version 1.2.3 && grep version package.json", "1.2.3", "npm"),
    _do("npm: test", "npm pkg set scripts.test='node -e \"console.log(1+1)\"' && npm test", "2", "npm"),
)
_RUST = (
    _do("cargo: new and run", "cargo new -q --vcs none hi && cd hi && cargo run -q", "Hello, world", "cargo"),
    _do("cargo: test", "cargo new -q --vcs none --lib l && cd l && cargo test -q", "1 passed", "cargo"),
    _do(
        "cargo: build and check",
        "cargo new -q --vcs none b && cd b && cargo check && cargo build --release && ./target/release/b",
        "Hello",
        "cargo",
    ),
    _do(
        "rustc: one file", "printf 'fn main() { println!(\"{}\", 6 * 7); }' > a.rs && rustc a.rs && ./a", "42", "rustc"
    ),
    _do("rustfmt", "printf 'fn main(){}' > a.rs && rustfmt a.rs && cat a.rs", "fn main\\(\\) \\{\\}", "rustfmt"),
    _do(
        "cargo: path dependency",
        "cargo new -q --vcs none --lib dep && cargo new -q --vcs none app && cd app && cargo add -q --path ../dep &&"
        " cargo run -q",
        "Hello",
        "cargo",
    ),
)
_C = "printf '#include <stdio.h>\\nint main(void){puts(\"from C\");}\\n' > a.c"
_NATIVE = (
    _do("gcc: compile and run", f"{_C} && gcc -O2 -Wall -o a a.c && ./a", "from C", "gcc"),
    _do(
        "g++: compile and run",
        "printf '#include <iostream>\\nint main(){std::cout << \"from C++\\\\n\";}\\n' > a.cc && g++ -o a a.cc && ./a",
        "from C",
        "g++",
    ),
    _do(
        "gcc: shared library",
        "printf 'int f(void){return 7;}' > f.c && gcc -shared -fPIC -o libf.so f.c && python3 -c \"import ctypes;"
        " print(ctypes.CDLL('./libf.so').f())\"",
        "7",
        "gcc",
    ),
    _do(
        "gcc: sanitizer", f"{_C} && gcc -fsanitize=address -o a a.c && ASAN_OPTIONS=detect_leaks=0 ./a", "from C", "gcc"
    ),
    _do("make: default target", "make", "built", "make"),
    _do(
        "make: with rules and -j",
        f"{_C} && printf 'a: a.c\\n\\tgcc -o $@ $<\\nall: a\\n\\t./a\\nclean:\\n\\trm -f a\\n' > Makefile && make -j2"
        " all && make clean",
        "from C",
        "make",
    ),
    _do(
        "cmake: configure, build, test",
        "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x C)\\nenable_testing()\\nadd_executable(x"
        " a.c)\\nadd_test(t x)\\n' > CMakeLists.txt && "
        + _C
        + " && cmake -S . -B build >/dev/null && cmake --build build && ctest --test-dir build",
        "100% tests passed",
        "cmake",
    ),
    _do(
        "ninja",
        f"{_C} && printf 'rule cc\\n  command = gcc -o $out $in\\nbuild a: cc a.c\\n' > build.ninja && ninja && ./a",
        "from C",
        "ninja",
    ),
    _do(
        "gdb: backtrace of a program",
        f"{_C} && gcc -g -o a a.c && gdb -q -batch -ex 'break main' -ex run -ex bt -ex continue ./a",
        "from C",
        "gdb",
    ),
    _do("strace of a program", "strace -f -c true", "calls", "strace"),
    _do("valgrind", f"{_C} && gcc -g -o a a.c && valgrind -q ./a", "from C", "valgrind"),
    _do("pkg-config", "pkg-config --version", "[0-9]", "pkg-config"),
    _do("ar and nm", f"{_C} && gcc -c a.c && ar rcs liba.a a.o && nm liba.a", "main", "gcc"),
    _do(
        "java: compile and run",
        "printf 'class A { public static void main(String[] a) { System.out.println(\"from Java\"); } }' > A.java &&"
        " javac A.java && java A",
        "from Java",
        "javac",
    ),
    _do(
        "java: one file",
        "printf 'class A { public static void main(String[] a) { System.out.println(6 * 7); } }' > A.java && java"
        " A.java",
        "42",
        "javac",
    ),
    _do("perl", "perl -e 'print join(\",\", map { $_ * 2 } 1 .. 3)'", "2,4,6", "perl"),
    _do("awk", "printf '1 2\\n3 4\\n' | awk '{s += $2} END {print s}'", "6"),
    _do(
        "shell script of one's own",
        "printf '#!/bin/bash\\nset -e\\necho ran $1\\n' > run.sh && chmod +x run.sh && ./run.sh well",
        "ran well",
    ),
)
_TOOLS = (
    Task(
        name="tools: write, patch, run",
        steps=(
            write("calc.py", "def add(a, b):\n    return a - b\n"),
            replace("calc.py", "a - b", "a + b"),
            sh("python3 -c 'import calc; print(calc.add(2, 3))'"),
        ),
        expects="5",
    ),
    Task(
        name="tools: patch of several files",
        steps=(
            patch_text(
                "*** Begin Patch\n*** Add File: n.py\n+x = 1\n*** Update File: README.md\n@@\n-# Project\n+# The"
                " project\n*** End Patch"
            ),
            sh("cat n.py README.md"),
        ),
        expects="The project",
    ),
    Task(
        name="tools: a dev server in the background",
        steps=(
            background("python3 -m http.server 8765 --bind 127.0.0.1"),
            sh("for i in $(seq 50); do curl -sf http://127.0.0.1:8765/main.py && break; sleep 0.1; done"),
        ),
        expects="hello",
        needs=("curl",),
    ),
    Task(
        name="tools: node dev server in the background",
        steps=(
            background("node -e \"require('http').createServer((q, r) => r.end('served')).listen(8766, '127.0.0.1')\""),
            sh("for i in $(seq 50); do curl -sf http://127.0.0.1:8766/ && break; sleep 0.1; done"),
        ),
        expects="served",
        needs=("node", "curl"),
    ),
    Task(
        name="tools: a watcher that logs",
        steps=(background("for i in 1 2 3; do echo tick $i; sleep 0.2; done > log.txt"), sh("sleep 1; cat log.txt")),
        expects="tick 3",
    ),
)
TASKS = (*_PYTHON, *_NODE, *_RUST, *_NATIVE, *_TOOLS)
