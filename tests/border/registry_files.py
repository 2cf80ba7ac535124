"""What package managers fetch in these tests: small packages made here, served on loopback alone; and ssh keys."""

import base64
import contextlib
import functools
import gzip
import hashlib
import http.server
import io
import json
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path("/home/.packages")  # readable in every session, and no home of anybody's


@contextlib.contextmanager
def index() -> Iterator[str]:
    """Packages in `FOLDER`, and a server that speaks pip's and npm's simplest words; gives its address."""
    FOLDER.mkdir(exist_ok=True)
    _wheel("greeter", "1.0.0", {"greeter/__init__.py": "def greet(name: str) -> str:\n    return f'hello {name}'\n"})
    _wheel("greeter", "1.1.0", {"greeter/__init__.py": "def greet(name: str) -> str:\n    return f'Hello {name}'\n"})
    _wheel(
        "counted",
        "2.0",
        {"counted.py": "import greeter\n\n\ndef main() -> None:\n    print(greeter.greet('you'))\n"},
        needs="greeter",
        script="counted = counted:main",
    )
    _source("sourced", "0.1")
    _npm("left-padded", "1.0.0", "module.exports = (s, n) => s.padStart(n);\n")
    _npm("hello-tool", "1.0.0", "#!/usr/bin/env node\nconsole.log('hello from a tool');\n", program=True)
    handler = functools.partial(_Quiet, directory=str(FOLDER))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    _pages(address)
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Say nothing."""


def _pages(address: str) -> None:
    for name in ("greeter", "counted", "sourced"):
        folder = FOLDER / "simple" / name
        folder.mkdir(parents=True, exist_ok=True)
        files = sorted(FOLDER.glob(f"{name}-*"))
        links = "".join(
            f'<a href="/{file.name}#sha256={hashlib.sha256(file.read_bytes()).hexdigest()}">{file.name}</a>\n'
            for file in files
        )
        (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>\n{links}</body></html>\n")
    for file in FOLDER.glob("*.tgz"):
        name, version = file.stem.rsplit("-", 1)
        digest = base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
        entry = {
            "name": name,
            "version": version,
            "dist": {"tarball": f"{address}/{file.name}", "integrity": f"sha512-{digest}"},
        }
        if name == "hello-tool":
            entry["bin"] = {"hello-tool": "index.js"}
        (FOLDER / name).write_text(
            json.dumps({"name": name, "dist-tags": {"latest": version}, "versions": {version: entry}})
        )


def _wheel(name: str, version: str, files: dict[str, str], needs: str = "", script: str = "") -> None:
    info = f"{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: here\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if script:
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{script}\n"
    record = "".join(f"{path},{_digest(text)},{len(text)}\n" for path, text in files.items()) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(FOLDER / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(path, text)


def _digest(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def _source(name: str, version: str) -> None:
    files = {
        "setup.py": f"from setuptools import setup\nsetup(name='{name}', version='{version}', py_modules=['{name}'])\n",
        f"{name}.py": "value = 7\n",
        "PKG-INFO": f"Metadata-Version: 1.0\nName: {name}\nVersion: {version}\n",
    }
    _tar(FOLDER / f"{name}-{version}.tar.gz", {f"{name}-{version}/{path}": text for path, text in files.items()})


def _npm(name: str, version: str, text: str, *, program: bool = False) -> None:
    package: dict[str, object] = {"name": name, "version": version, "main": "index.js"}
    if program:
        package["bin"] = {name: "index.js"}
    _tar(FOLDER / f"{name}-{version}.tgz", {"package/package.json": json.dumps(package), "package/index.js": text})


def _tar(path: Path, files: dict[str, str]) -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    path.write_bytes(gzip.compress(raw.getvalue(), mtime=0))


def put_keys(home: Path) -> None:
    """The person's ssh key and settings for the server on loopback, where there is one."""
    keys = Path("/run/keys")
    if not keys.exists():
        return
    own = home / ".ssh"
    (own / "id_ed25519").write_bytes((keys / "person").read_bytes())
    (own / "id_ed25519").chmod(0o600)
    host = (keys / "host.pub").read_text().split()
    (own / "known_hosts").write_text(f"[127.0.0.1]:2222 {host[0]} {host[1]}\n")
    user = "root" if os.getuid() == 0 else "me"
    (own / "config").write_text(f"Host forge\n\tHostName 127.0.0.1\n\tPort 2222\n\tUser {user}\n")
    (own / "config").chmod(0o600)
