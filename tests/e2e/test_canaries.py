"""Fifty planted secrets in a real run: none of them is stored, logged, shown or sent, in any coat."""

import base64
import json
import os
import re
import secrets
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

import hermes
from hermes.testing.replies import calls, says
from hermes.testing.server import ServerThread

SOURCE = Path(hermes.__file__).parents[1]
_GAPS = re.compile(rb"\\+(?:[nrt]|u00[01][0-9a-f])?|[\x00-\x20]")


def _token(length: int = 28) -> str:
    return "Zq7" + secrets.token_urlsafe(length)[: length - 3].replace("-", "x").replace("_", "y")


def environment_secrets() -> dict[str, str]:
    plain = {f"SERVICE_{n}_TOKEN": _token() for n in range(8)}
    return {**plain, "ODD_PASSWORD": f'pä"ss\\wörd/{_token(12)}', "PLAIN_NAME": f"{_token(20)}A9z"}


def env_file_secrets() -> dict[str, str]:
    return {f"PROVIDER_{n}_API_KEY": _token() for n in range(9)} | {"DB_PASSWORD": f"p&ss w=rd+{_token(10)}"}


def shaped_secrets() -> list[str]:
    hexes = secrets.token_hex
    return [
        f"sk-{_token(40)}",
        f"sk-ant-{_token(40)}",
        f"sk-proj-{_token(40)}",
        f"sk_live_{_token(24)}",
        f"rk_live_{_token(24)}",
        f"ghp_{_token(36)}",
        f"gho_{_token(36)}",
        f"github_pat_{_token(60)}",
        f"glpat-{_token(24)}",
        f"xoxb-{_token(40)}",
        "AKIA" + hexes(8).upper(),
        f"AIza{_token(35)}",
        f"hf_{_token(36)}",
        f"npm_{_token(36)}",
        f"SG.{_token(20)}.{_token(40)}",
        f"gsk_{_token(48)}",
        f"eyJ{_token(20)}.eyJ{_token(30)}.{_token(40)}",
        f"dop_v1_{hexes(32)}",
        f"12345678:AA{_token(33)}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{_token(60)}\n{_token(60)}\n-----END RSA PRIVATE KEY-----",
    ]


def assigned_secrets() -> dict[str, str]:
    return {f"client_{n}_secret": _token(24) for n in range(10)}


def forms(secret: str) -> set[bytes]:
    """Every coat a secret must not be found in."""
    texts = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    texts |= {quote(secret), quote(secret, safe=""), quote_plus(secret), *encodings(secret)}
    lines = {line for line in secret.split("\n") if len(line) > 30 and "-----" not in line}
    return {text.encode() for text in texts | lines if text.count("\n") == 0}


def encodings(secret: str) -> list[str]:
    raw = secret.encode()
    return [raw.hex(), raw.hex().upper(), base64.b32encode(raw).decode(), base64.b64encode(raw).decode()]


def leaks(data: bytes, planted: list[str]) -> list[str]:
    squeezed = _GAPS.sub(b"", data)
    return [
        secret for secret in planted if any(form in data or _GAPS.sub(b"", form) in squeezed for form in forms(secret))
    ]


def stored_text(home: Path) -> bytes:
    """Every value of every row, so that a page border of the file cannot hide one."""
    with sqlite3.connect(f"file:{home / 'state.db'}?mode=ro", uri=True) as db:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        values: list[bytes] = []
        for table in tables:
            try:
                rows = db.execute(f'SELECT * FROM "{table}"').fetchall()
            except sqlite3.OperationalError:  # an index without content of its own
                continue
            values += [v if isinstance(v, bytes) else str(v).encode("utf-8", "replace") for row in rows for v in row]
    return b"\n".join(values)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_no_planted_secret_is_stored_logged_shown_or_sent(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    env, dotenv, shaped, assigned = environment_secrets(), env_file_secrets(), shaped_secrets(), assigned_secrets()
    planted = [*env.values(), *dotenv.values(), *shaped, *assigned.values()]
    assert len(planted) == len(set(planted)) == 50
    (home / ".env").write_text("".join(f"{name}='{value}'\n" for name, value in dotenv.items()))
    (work / "shapes.txt").write_text("\n".join(f"value {value} end" for value in shaped))
    (work / ".env").write_text("".join(f"{name}={value}\n" for name, value in assigned.items()))
    known = [*env.values(), *dotenv.values()]
    (work / "known.txt").write_text("\n".join(known))
    (work / "known.json").write_text(json.dumps({"rows": known}) + "\n" + json.dumps(json.dumps(known)))
    (work / "known.url").write_text(
        "\n".join(f"https://x.invalid/?q={quote(v, safe='')}&r={quote_plus(v)}" for v in known)
    )
    (work / "wrapped.txt").write_text("\n".join("\n".join(v[i : i + 7] for i in range(0, len(v), 7)) for v in known))
    (work / "cut.txt").write_text("\n".join("\x00".join((v[:5], v[5:11], v[11:])) for v in known))
    (work / "encoded.txt").write_text("\n".join(form for value in known for form in encodings(value)))
    (work / "big.txt").write_text("\n".join(f"{'filler ' * 30}{value}" for value in known * 40))
    files = ["encoded.txt", "shapes.txt", ".env", "known.txt", "known.json", "known.url", "wrapped.txt"]
    script = [
        *(calls("read_file", path=name) for name in files),
        calls("search_files", pattern="value|Zq7", path="."),
        calls("terminal", command="cat shapes.txt known.txt known.json known.url wrapped.txt cut.txt .env"),
        calls("terminal", command="fold -w 13 shapes.txt; fold -w 9 .env; cat encoded.txt; env"),
        calls("terminal", command="cat big.txt big.txt; cat no-such-file-$(head -1 known.txt)"),
        calls(
            "terminal", command="cat shapes.txt known.txt wrapped.txt; env; sleep 0.1; cat known.txt", background=True
        ),
        calls("process", action="list"),
        calls("execute_code", code="print(open('known.txt').read()); print(repr(open('known.json').read()))"),
        calls("execute_code", code="for v in open('known.txt', 'rb'): print(v.strip().hex())"),
        calls("execute_code", code="raise RuntimeError(open('known.txt').read())"),
        calls("write_file", path="copy.txt", content=f"token: {shaped[0]}\n"),
        says(f"Done: {dotenv['PROVIDER_0_API_KEY']}"),
        says("A title"),
    ]
    with ServerThread(script) as server:
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "hermes.surfaces.cli.main",
                    "chat",
                    "-q",
                    f"Use {shaped[1]} and {env['ODD_PASSWORD']}",
                ),
                *("--model", "scripted", "--base-url", server.base_url, "--verbose"),
            ],
            env={
                **env,
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "HERMES_HOME": str(home),
                "PYTHONPATH": str(SOURCE),
            },
            cwd=work,
            capture_output=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr.decode()
    assert len(server.requests) >= len(script) - 1
    bodies = [json.dumps(request.json, ensure_ascii=False).encode() for request in server.requests]
    assert any(b"\xe2\x9f\xa6secret#" in body for body in bodies), "nothing was redacted, so nothing was tried"
    for number, body in enumerate(bodies):
        assert leaks(body, planted) == [], f"request {number}"
    kept = [file for file in home.rglob("*") if file.is_file() and file != home / ".env"]
    assert any(file.name == "state.db" for file in kept)
    assert any(file.name == "log" and file.stat().st_size for file in kept), "no background output was kept"
    for file in kept:
        assert leaks(file.read_bytes(), planted) == [], file
    assert leaks(stored_text(home), planted) == []
    assert leaks(done.stderr, planted) == []
    assert b"Done: " in done.stdout
    assert leaks(done.stdout, planted) == []
    assert (work / "copy.txt").read_text() == f"token: {shaped[0]}\n"
