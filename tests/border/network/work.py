"""Everyday work with the network: each task is a call that has to succeed, and a text that its result has to hold."""

from typing import NamedTuple

from tests.border.record import Call, background, code, py, sh


class NetworkTask(NamedTuple):
    """One piece of work, and the program it needs."""

    name: str
    call: Call
    expects: str
    needs: str = "python3"


def _sh(name: str, command: str, expects: str, needs: str = "") -> NetworkTask:
    return NetworkTask(name, sh(command), expects, needs or command.split(maxsplit=1)[0])


def _node(name: str, text: str, expects: str = "words of the api") -> NetworkTask:
    return NetworkTask(name, sh(f'node -e "{text}"'), expects, "node")


def _py(name: str, text: str, expects: str = "words of the api") -> NetworkTask:
    return NetworkTask(name, py(text), expects)


def _lib(name: str, text: str, expects: str = "words of the api") -> NetworkTask:
    """Python with the libraries that these tests have."""
    return NetworkTask(name, sh(f'$AIO_PYTHON -c "{text}"'), expects)


_NPM = "npm --no-audit --no-fund -s"
_VENV = "python3 -m venv --clear --without-pip v && "
_PIP = "/usr/bin/python3 -m pip --python v/bin/python -q --disable-pip-version-check"
_AIO = (
    "$AIO_PYTHON - <<'HERE'\nimport asyncio, aiohttp\nasync def main():\n    async with aiohttp.ClientSession() as s:\n"
)

_JAVA = """import java.net.*; import java.net.http.*;
class Get {
    public static void main(String[] words) throws Exception {
        var asked = HttpRequest.newBuilder(URI.create("http://api.test:9000/words")).build();
        System.out.println(HttpClient.newHttpClient().send(asked, HttpResponse.BodyHandlers.ofString()).body());
    }
}"""

WORK: dict[str, tuple[NetworkTask, ...]] = {
    "clients": (
        _sh("curl", "curl -sSf http://api.test/words", "words of the api"),
        _sh("curl over https", "curl -sSf --cacert /home/.packages/ca.pem https://api.test/words", "words of the api"),
        _sh("curl with a head", "curl -sSfI http://api.test/words", "200 OK"),
        _sh("curl into a file", "curl -sSf -o got http://api.test/words && cat got", "words of the api"),
        _sh(
            "curl twice", "curl -sSf http://api.test/words http://api.test/words", "words of the api.*words of the api"
        ),
        _sh("curl of something large", "curl -sSf http://api.test/large | wc -c", "8388608"),
        _sh("curl sends a form", "curl -sSf -d name=value http://api.test/echo", "name=value"),
        _sh("curl sends a file", "curl -sSf -T main.py http://api.test/echo", "print"),
        _sh(
            "curl over the proxy's port",
            "curl -sSf -p -x http://127.0.0.1:1080 http://api.test/words",
            "words of the api",
        ),
        _sh("curl over socks", "curl -sSf -x socks5h://127.0.0.1:1080 http://api.test/words", "words of the api"),
        _sh("curl of a port that a rule names", "curl -sSf http://api.test:8088/words", "words of the api"),
        _sh("curl follows", "curl -sSfL http://api.test/moved", "words of the api"),
        _sh("curl side by side", "curl -sSfZ http://api.test/words http://api.test/words#2", "words of the api"),
        _sh("ten at once", "seq 10 | xargs -P 10 -I{} curl -sSf http://api.test/words | grep -c words", "10", "curl"),
        _sh("wget", "wget -qO- http://api.test/words", "words of the api"),
        _sh("a name is found", "getent hosts api.test", "api.test", "getent"),
        _sh("localhost is found", "getent hosts localhost", "localhost", "getent"),
        _sh("its own name is found", "getent hosts $(hostname)", "127.0.0.1", "getent"),
        _sh(
            "bash speaks",
            "bash -c 'exec 3<>/dev/tcp/api.test/80; printf \"GET /words HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3'",
            "words of the api",
        ),
        _py("urllib", "import urllib.request as u; print(u.urlopen('http://api.test/words').read())"),
        _py(
            "urllib over https",
            "import ssl, urllib.request as u\nc = ssl.create_default_context(cafile='/home/.packages/ca.pem')\n"
            "print(u.urlopen('https://api.test/words', context=c).read())",
        ),
        _py(
            "http.client",
            (
                "import http.client as h; c = h.HTTPConnection('api.test'); c.request('GET', "
                "'/words'); print(c.getresponse().read())"
            ),
        ),
        _py(
            "http.client keeps the line",
            (
                "import http.client as h\nc = h.HTTPConnection('api.test')\nfor _ in range(3):\n "
                "   c.request('GET', '/words'); print(c.getresponse().read())"
            ),
        ),
        _py(
            "a socket",
            (
                "import socket; s = socket.create_connection(('api.test', 80)); s.sendall(b'GET "
                "/words HTTP/1.0\\r\\n\\r\\n'); print(s.makefile().read())"
            ),
        ),
        _py(
            "asyncio",
            (
                "import asyncio\nasync def main():\n    r, w = await asyncio.open_connection('api.test', "
                "80)\n    w.write(b'GET /words HTTP/1.0\\r\\n\\r\\n'); print(await r.read())\nasyncio.run(main())"
            ),
        ),
        _py(
            "threads",
            (
                "import concurrent.futures as f, urllib.request as u\nwith f.ThreadPoolExecutor(8) "
                "as p:\n    print(list(p.map(lambda _: u.urlopen('http://api.test/words').read(), "
                "range(16)))[-1])"
            ),
        ),
        NetworkTask(
            "aiohttp",
            sh(_AIO + "        print(await (await s.get('http://api.test/words')).text())\nasyncio.run(main())\nHERE"),
            "words of the api",
        ),
        NetworkTask(
            "aiohttp over https",
            sh(
                _AIO.replace("import asyncio", "import ssl, asyncio")
                + (
                    "        c = ssl.create_default_context(cafile='/home/.packages/ca.pem')\n "
                    "       print(await (await s.get('https://api.test/words', ssl=c)).text())\n"
                    "asyncio.run(main())\nHERE"
                )
            ),
            "words of the api",
        ),
        NetworkTask(
            "aiohttp, many",
            sh(
                _AIO
                + (
                    "        async def one():\n"
                    "            return await (await s.get('http://api.test/words')).text()\n "
                    "       async with asyncio.TaskGroup() as g:\n            t = [g.create_task(one()) "
                    "for _ in range(20)]\n        print(t[-1].result())\nasyncio.run(main())\nHERE"
                )
            ),
            "words of the api",
        ),
        _lib("requests", "import requests; print(requests.get('http://api.test/words').text)"),
        _lib(
            "requests posts a file",
            "import requests; print(requests.post('http://api.test/echo', data=open('main.py')).text)",
            "hello",
        ),
        _lib("httpx", "import httpx; print(httpx.get('http://api.test/words').text)"),
        _lib(
            "urllib3 keeps a pool",
            (
                "import urllib3; p = urllib3.PoolManager(); [p.request('GET', 'http://api.test/words') for _ in "
                "range(5)]; print(p.request('GET', 'http://api.test/words').data)"
            ),
        ),
        _sh(
            "perl",
            "perl -MHTTP::Tiny -e 'print HTTP::Tiny->new->get(\"http://api.test/words\")->{content}'",
            "words of the api",
        ),
        _sh(
            "openssl",
            "openssl s_client -connect api.test:443 -CAfile /home/.packages/ca.pem -verify_return_error </dev/null",
            "Verify return code: 0",
        ),
        _sh(
            "wget of a tree",
            "wget -q -r -np -nH -P tree http://api.test/simple/greeter/ && ls tree/simple/greeter",
            "index.html",
        ),
        _sh(
            "wget goes on where it was",
            "curl -sSf http://api.test/words | head -c 5 > words; wget -q -c http://api.test/words; cat words",
            "words",
        ),
        _sh("a port that no rule names", "curl -sSf http://api.test:9000/words", "words of the api"),
        _node(
            "node and a port that no rule names",
            "fetch('http://api.test:9000/words').then(r => r.text()).then(console.log)",
        ),
        _lib(
            "many to a port that no rule names",
            (
                "import concurrent.futures as f, requests; p = f.ThreadPoolExecutor(16); print(list(p.map(lambda"
                " _: requests.get('http://api.test:9000/words').text, range(64)))[-1])"
            ),
        ),
        _sh(
            "two machines that speak",
            "(curl -sSf http://api.test:9000/words; curl -sSf http://api.test:8088/words) | sort | uniq -c",
            "2 words of the api",
            "curl",
        ),
        NetworkTask(
            "java",
            sh(f"cat > Get.java <<'HERE'\n{_JAVA}\nHERE\njava Get.java"),
            "words of the api",
            "javac",
        ),
        _node("fetch of node", "fetch('http://api.test/words').then(r => r.text()).then(console.log)"),
        _node("http of node", "require('http').get('http://api.test/words', r => r.pipe(process.stdout))"),
        NetworkTask(
            "https of node",
            sh(
                "NODE_EXTRA_CA_CERTS=/home/.packages/ca.pem node -e \"require('https').get('https://api.test/words', "
                'r => r.pipe(process.stdout))"'
            ),
            "words of the api",
            "node",
        ),
        NetworkTask(
            "fetch of node over https",
            sh(
                "NODE_EXTRA_CA_CERTS=/home/.packages/ca.pem node -e \"fetch('https://api.test/words').then(r "
                '=> r.text()).then(console.log)"'
            ),
            "words of the api",
            "node",
        ),
        _node(
            "a socket of node",
            (
                "const s = require('net').connect(80, 'api.test', () => s.write('GET /words "
                "HTTP/1.0\\r\\n\\r\\n')); s.pipe(process.stdout)"
            ),
        ),
        _node(
            "node posts",
            (
                "fetch('http://api.test/echo', {method: 'POST', body: 'sent by node'}).then(r "
                "=> r.text()).then(console.log)"
            ),
            "sent by node",
        ),
        _node(
            "node looks a name up", "require('dns').lookup('api.test', (e, a) => console.log(e, 'is', a))", "is 198.18"
        ),
        _node(
            "node asks the resolver",
            "require('dns').resolve4('api.test', (e, a) => console.log(e, 'are', a))",
            "198.18",
        ),
        NetworkTask(
            "a script",
            code("import urllib.request as u\nprint(u.urlopen('http://api.test/words').read())"),
            "words of the api",
        ),
        NetworkTask("a background process", background("curl -sSf http://api.test/words > from-background"), "proc_"),
        _sh(
            "what it brought",
            "for i in $(seq 50); do test -s from-background && break; sleep 0.1; done; cat from-background",
            "words of the api",
            "curl",
        ),
    ),
    "packages": (
        _sh(
            "pip install",
            f"{_VENV}{_PIP} install greeter && v/bin/python -c \"import greeter; print(greeter.greet('you'))\"",
            "Hello you",
        ),
        _sh(
            "pip install of a version",
            f"{_VENV}{_PIP} install greeter==1.0.0 && v/bin/python -c \"import greeter; print(greeter.greet('you'))\"",
            "hello you",
        ),
        _sh("pip install with what it needs", f"{_VENV}{_PIP} install counted && v/bin/counted", "Hello you"),
        _sh(
            "pip download",
            "/usr/bin/python3 -m pip download -q --no-deps -d dl greeter && ls dl",
            "greeter-1.1.0",
            "python3",
        ),
        _sh(
            "pip from requirements",
            f"echo greeter > r.txt && {_VENV}{_PIP} install -r r.txt && v/bin/python -c 'import greeter; print(7)'",
            "7",
        ),
        _sh("pip lists versions", "/usr/bin/python3 -m pip index versions greeter", "1.1.0", "python3"),
        _sh(
            "uv pip install",
            "uv venv -q u && VIRTUAL_ENV=u uv pip install -q greeter && u/bin/python -c 'import greeter; print(8)'",
            "8",
        ),
        _sh("uv compiles", "echo greeter > r.in && uv pip compile -q r.in", "greeter==1.1.0"),
        _sh("pip wheel", "/usr/bin/python3 -m pip wheel -q -w wheels counted && ls wheels", "counted-2.0", "python3"),
        _sh(
            "pip from an address",
            (
                f"{_VENV}{_PIP} install --no-deps http://index.test/greeter-1.0.0-py3-none-any.whl && ls "
                f"v/lib/*/site-packages"
            ),
            "greeter",
        ),
        _sh(
            "uv adds a package",
            (
                "uv init -q --bare --no-workspace added && uv add -q --project added greeter && uv run -q "
                "--project added python -c 'import greeter; print(9)'"
            ),
            "9",
        ),
        _sh("uv runs a tool", "uvx -q counted", "Hello you", "uvx"),
        _sh("npm packs", "npm pack -s left-padded", "left-padded-1.0.0.tgz"),
        _sh("npm fetches a tool to run", "npm exec -y -- hello-tool", "hello from a tool"),
        _sh(
            "cargo fetches and builds",
            (
                "cargo new -q --vcs none app && (cd app && cargo add -q tinycrate && echo 'fn main() { "
                'println!("{}", tinycrate::seven()) }\' '
                "> src/main.rs && cargo run -q)"
            ),
            "7",
        ),
        _sh(
            "npm install",
            f"{_NPM} install left-padded && node -e \"console.log(require('left-padded')('x', 3))\"",
            "x",
            "npm",
        ),
        _sh("npm view", "npm view left-padded version", "1.0.0"),
        _sh("npm ci", f"{_NPM} ci && ls node_modules", "left-padded", "npm"),
        _sh("npm runs a tool", f"{_NPM} install hello-tool && npx --no-install hello-tool", "hello from a tool", "npm"),
        _sh("npm again", f"rm -f package-lock.json && {_NPM} install && ls node_modules", "left-padded", "npm"),
    ),
    "git": (
        _sh("git ls-remote", "git ls-remote origin", "refs/heads/main"),
        _sh("git fetch", "git fetch -q origin && git log -1 --format=%s origin/main", "first of the forge"),
        _sh("git clone over http", "git clone -q http://git.test/forge.git c && cat c/file", "words of the forge"),
        _sh(
            "git clone of one commit",
            "git clone -q http://git.test/forge.git c1 && git -C c1 log --oneline | wc -l",
            "1",
        ),
        _sh(
            "git clone over ssh",
            "git clone -q forge:/home/.packages/git/ssh.git s && cat s/file",
            "words of the forge",
            "sshd",
        ),
        _sh("git fetch over ssh", "git fetch -q ssh && git log -1 --format=%s ssh/main", "first of the forge", "sshd"),
        _sh(
            "git push over ssh",
            "git push -q ssh HEAD:refs/heads/topic && git ls-remote ssh",
            "refs/heads/topic",
            "sshd",
        ),
    ),
    "this machine": (
        _sh(
            "a database after one yes",
            "python3 -c \"import socket; s = socket.create_connection(('127.0.0.1', 5432)); print(s.recv(50))\"",
            "words of the database",
            "python3",
        ),
        _sh(
            "the database again",
            "python3 -c \"import socket; s = socket.create_connection(('localhost', 5432)); print(s.recv(50))\"",
            "words of the database",
            "python3",
        ),
        _sh("a port that the settings name", "curl -sSf http://127.0.0.1:8055/words", "words of the api"),
        NetworkTask("a dev server", background("python3 -m http.server 8765"), "proc_"),
        _sh(
            "the dev server from inside",
            "for i in $(seq 100); do curl -sf http://127.0.0.1:8765/main.py && break; sleep 0.1; done",
            "hello",
            "curl",
        ),
        _sh(
            "the person's browser comes",
            "for i in $(seq 150); do test -s opened && break; sleep 0.1; done; cat opened",
            "hello",
            "python3",
        ),
        _sh(
            "a server of a test",
            (
                'python3 -c "import http.server as h, threading, urllib.request as u; '
                "s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler); "
                "threading.Thread(target=s.serve_forever, "
                "daemon=True).start(); print(u.urlopen('http://127.0.0.1:%d/main.py' % "
                's.server_port).read())"'
            ),
            "hello",
            "python3",
        ),
    ),
}
