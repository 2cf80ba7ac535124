"""A server on the SDK: `sdk_server.py stdio`, or `http PORT`, `sse PORT`, `oauth PORT` on loopback.

The OAuth one is its own authorization server, with tokens that live for OAUTH_LIFE seconds (3600). It refuses nobody:
whoever opens the sign-in page is sent back with a code. `/stats` tells what was asked of it; `/forget` drops tokens.
"""

import base64
import hashlib
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

from mcp.server import MCPServer
from pydantic import BaseModel

server = MCPServer("sdk", version="1", instructions="A server for tests.")
STATS: dict[str, int] = {"authorize": 0, "token": 0, "refresh": 0, "register": 0, "refused": 0, "calls": 0}


class Sum(BaseModel):
    """Structured."""

    total: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    STATS["calls"] += 1
    return Sum(total=a + b)


@server.tool()
def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


@server.tool()
def dig() -> dict[str, Any]:
    """Boxes in boxes."""
    boxes: dict[str, Any] = {}
    for _ in range(210):
        boxes = {"box": boxes}
    return boxes


@server.resource("note://{name}")
def note(name: str) -> str:
    """A note."""
    return f"the note {name}"


@server.resource("note://first")
def first() -> str:
    """The first note."""
    return "the first note"


@server.prompt()
def greet(name: str) -> str:
    """A greeting."""
    return f"Greet {name}."


class Guarded:
    """The app behind tokens, with an authorization server beside it."""

    def __init__(self, app: Any, address: str) -> None:
        self._app = app
        self._address = address
        self._codes: dict[str, tuple[str, str]] = {}
        self._tokens: dict[str, float] = {}
        self._refresh: set[str] = set()
        self._life = float(os.environ.get("OAUTH_LIFE", "3600"))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request
        from starlette.responses import JSONResponse, RedirectResponse, Response

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        path = request.url.path
        answer: Response | None = None
        if path.startswith("/.well-known/oauth-protected-resource"):
            answer = JSONResponse(
                {"resource": f"{self._address}/mcp", "authorization_servers": [f"{self._address}/as"]}
            )
        elif path.startswith("/.well-known/oauth-authorization-server"):
            answer = JSONResponse(self._metadata())
        elif path == "/as/register":
            STATS["register"] += 1
            asked = await request.json()
            answer = JSONResponse({**asked, "client_id": secrets.token_hex(4)}, status_code=201)
        elif path == "/as/authorize":
            STATS["authorize"] += 1
            query, code = request.query_params, secrets.token_hex(8)
            self._codes[code] = (query["code_challenge"], query["redirect_uri"])
            back = urlencode({"code": code, "state": query["state"]})
            answer = RedirectResponse(f"{query['redirect_uri']}?{back}", status_code=302)
        elif path == "/as/secret-token-place":
            answer = self._token(dict(await request.form()), JSONResponse)
        elif path == "/stats":
            answer = JSONResponse(STATS)
        elif path == "/forget":
            self._tokens.clear()
            answer = JSONResponse({})
        elif not self._is_known(request.headers.get("authorization", "")):
            STATS["refused"] += 1
            where = f'Bearer resource_metadata="{self._address}/.well-known/oauth-protected-resource/mcp"'
            answer = Response(status_code=401, headers={"WWW-Authenticate": where})
        await (answer or self._app)(scope, receive, send)

    def _metadata(self) -> dict[str, Any]:
        base = f"{self._address}/as"
        return {
            "issuer": base,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/secret-token-place",
            "registration_endpoint": f"{base}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }

    def _token(self, form: dict[str, Any], respond: Callable[..., Any]) -> Any:
        if form["grant_type"] == "refresh_token":
            STATS["refresh"] += 1
            if form["refresh_token"] not in self._refresh:
                return respond({"error": "invalid_grant"}, status_code=400)
            return respond(self._new())  # without a new refresh token: the old one stays
        STATS["token"] += 1
        challenge, redirect = self._codes.pop(form["code"], ("", ""))
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != challenge or redirect != form["redirect_uri"]:
            return respond({"error": "invalid_grant"}, status_code=400)
        refresh = secrets.token_hex(16)
        self._refresh.add(refresh)
        return respond({**self._new(), "refresh_token": refresh})

    def _new(self) -> dict[str, Any]:
        token = secrets.token_hex(16)
        self._tokens[token] = time.time() + self._life
        return {"access_token": token, "token_type": "Bearer", "expires_in": int(self._life)}

    def _is_known(self, header: str) -> bool:
        return self._tokens.get(header.removeprefix("Bearer "), 0) > time.time()


class Forgetful:
    """An app that forgets its sessions when it is told so, and counts what it is asked."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._forgotten: set[str] = set()
        self._seen: set[str] = set()

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        from starlette.requests import Request
        from starlette.responses import JSONResponse, PlainTextResponse

        if scope["type"] == "http":
            request = Request(scope, receive)
            session = request.headers.get("mcp-session-id", "")
            if request.url.path == "/forget":
                self._forgotten |= self._seen
                await JSONResponse(sorted(self._seen))(scope, receive, send)
                return
            if request.url.path == "/stats":
                await JSONResponse(STATS)(scope, receive, send)
                return
            if request.url.path == "/page":
                await PlainTextResponse("<html>", media_type="text/html")(scope, receive, send)
                return
            if session in self._forgotten:
                await PlainTextResponse("no such session", status_code=404)(scope, receive, send)
                return
            if session:
                self._seen.add(session)
        await self._app(scope, receive, send)


def main() -> None:
    import uvicorn

    mode = sys.argv[1]
    if mode == "stdio":
        server.run("stdio")
        return
    port = int(sys.argv[2])
    app: Any = server.sse_app() if mode == "sse" else server.streamable_http_app()
    app = Guarded(app, f"http://127.0.0.1:{port}") if mode == "oauth" else Forgetful(app)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main()
