"""Signing in at a server: OAuth with discovery, PKCE and refresh. Only `hermes mcp login` sends anybody to a browser.

Tokens lie in a file of their own, readable by its owner alone, with what it takes to refresh them after a restart: when
they
expire and where they come from. They are replaced only by ones that the server gave for them.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hermes.config.paths import write_private
from hermes.errors import ToolError, UserError
from hermes.tools.mcp.server_config import ServerConfig
from hermes.typed import from_json
from hermes.types import JsonObject

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

EARLY_S = 60.0  # a token is refreshed so long before it expires
_PAGE = b"<!doctype html><title>Hermes</title><p>You are signed in. This page can be closed.</p>"
log = logging.getLogger(__name__)


class NeedsSignIn(ToolError):
    """The server wants somebody to sign in, and nobody can be asked here."""


class StoredTokens(Struct, frozen=True, kw_only=True):
    """What is kept of a sign-in."""

    identity: str = ""
    tokens: JsonObject | None = None
    expires_at: float = 0.0  # 0 is unknown
    client: JsonObject | None = None
    metadata: JsonObject | None = None  # where tokens come from
    issuer: str = ""


class TokenFile:
    """The tokens of one server; the SDK's storage."""

    def __init__(self, home: Path, config: ServerConfig, ending: str = ".json") -> None:
        self.file = home / "mcp-tokens" / f"{quote(config.name, safe='')[:120]}{ending}"
        self._config = config

    def read(self) -> StoredTokens:
        """What is kept for this very server; nothing of another that had its name."""
        try:
            found = from_json(self.file.read_bytes(), StoredTokens)
        except FileNotFoundError:
            return StoredTokens(identity=self._config.identity)
        except (OSError, msgspec.MsgspecError) as error:
            raise UserError(f"the tokens in {self.file} cannot be read ({error}); sign in again") from error
        return found if found.identity == self._config.identity else StoredTokens(identity=self._config.identity)

    def write(self, stored: StoredTokens) -> None:
        write_private(self.file, msgspec.json.encode(replace(stored, identity=self._config.identity)).decode())

    def remove(self) -> bool:
        is_there = self.file.exists()
        self.file.unlink(missing_ok=True)
        return is_there

    async def get_tokens(self) -> "OAuthToken | None":
        from mcp.shared.auth import OAuthToken

        kept = self.read().tokens
        return OAuthToken.model_validate(kept) if kept else None

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        stored, plain = self.read(), tokens.model_dump(mode="json", exclude_none=True)
        if not plain.get("refresh_token") and stored.tokens and stored.tokens.get("refresh_token"):
            plain["refresh_token"] = stored.tokens["refresh_token"]
        expires_at = time.time() + tokens.expires_in if tokens.expires_in else 0.0
        self.write(replace(stored, tokens=plain, expires_at=expires_at))

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        from mcp.shared.auth import OAuthClientInformationFull

        kept = self.read().client
        return OAuthClientInformationFull.model_validate(kept) if kept else None

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        self.write(replace(self.read(), client=client_info.model_dump(mode="json", exclude_none=True)))


class SignIn(Struct, frozen=True, kw_only=True):
    """How a person signs in: where the browser is sent, and what came back. Without one, nobody is asked."""

    open_page: Callable[[str], Awaitable[None]]
    answer: Callable[[], Awaitable["AuthorizationCodeResult"]]
    redirect_uri: str
    tokens: TokenFile  # where the new ones go; the old ones stay until these work


class SignInState(Struct):
    """What a connection learnt about its sign-in."""

    is_needed: bool = False


def auth_for(config: ServerConfig, file: TokenFile, state: SignInState, person: SignIn | None) -> "OAuthClientProvider":
    """What signs requests. Without a person, a server that wants a sign-in is told as that."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata

    oauth = config.entry.oauth

    class RememberingProvider(OAuthClientProvider):
        """The SDK's, which also remembers when tokens expire and where they are refreshed."""

        _is_refused = False  # the token in use, and a refresh is under way

        async def _initialize(self) -> None:
            await super()._initialize()
            stored, context = file.read(), self.context
            if stored.expires_at:
                context.token_expiry_time = stored.expires_at - EARLY_S
            if stored.metadata and context.oauth_metadata is None:
                context.oauth_metadata = OAuthMetadata.model_validate(stored.metadata)
                context.auth_server_url = stored.issuer or None
            if context.client_info is None and oauth.client_id:
                context.client_info = OAuthClientInformationFull(
                    client_id=oauth.client_id,
                    client_secret=oauth.client_secret or None,
                    redirect_uris=context.client_metadata.redirect_uris,
                    token_endpoint_auth_method="client_secret_post" if oauth.client_secret else "none",
                )

        async def _perform_authorization(self) -> Any:
            """A token that was refused before its time is refreshed first; the SDK would send for a person at once."""
            if person is None and self.context.can_refresh_token() and not self._is_refused:
                self._is_refused = True
                return await self._refresh_token()
            return await super()._perform_authorization()

        async def _handle_token_response(self, response: Any) -> None:
            if self._is_refused and response.status_code not in (200, 201):
                await nobody()
            await super()._handle_token_response(response)
            self._is_refused = False
            tokens = self.context.current_tokens
            if tokens is not None and tokens.refresh_token is None:
                self.context.current_tokens = await file.get_tokens()  # which has kept the old one
            self._remember()

        async def _handle_refresh_response(self, response: Any) -> bool:
            is_fresh = await super()._handle_refresh_response(response)
            if is_fresh:
                self._remember()
            return is_fresh

        def _remember(self) -> None:
            found = self.context.oauth_metadata
            plain = found.model_dump(mode="json", exclude_none=True) if found is not None else None
            file.write(replace(file.read(), metadata=plain, issuer=str(self.context.auth_server_url or "")))

    async def nobody(*_: Any) -> Any:
        state.is_needed = True
        raise NeedsSignIn(f"it wants you to sign in; run: hermes mcp login {config.name}")

    return RememberingProvider(
        server_url=config.entry.url,
        client_metadata=OAuthClientMetadata(
            redirect_uris=[person.redirect_uri if person else redirect_uri(config, 0)],  # type: ignore[list-item]  # pydantic reads text
            client_name=oauth.client_name,
            scope=oauth.scope or None,
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="client_secret_post" if oauth.client_secret else "none",
        ),
        storage=file,
        redirect_handler=person.open_page if person else nobody,
        callback_handler=person.answer if person else nobody,
    )


def redirect_uri(config: ServerConfig, port: int) -> str:
    """Where the browser is sent back to."""
    oauth = config.entry.oauth
    return oauth.redirect_uri or f"http://{oauth.redirect_host}:{port or oauth.redirect_port or 1}/callback"


class BrowserAnswer:
    """What the browser brought back, or what a person pasted; whichever comes first."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()

    def paste(self, text: str) -> bool:
        """Take the address that the browser ended at, or the code alone with `code#state`; False when it is neither."""
        text = text.strip()
        query = {name: values[0] for name, values in parse_qs(urlsplit(text).query).items()}
        if "code" not in query and "error" not in query and "#" in text and "://" not in text:
            query = dict(zip(("code", "state"), text.split("#", 1), strict=True))
        return self.put(query)

    def put(self, query: JsonObject) -> bool:
        if not query.get("code") and not query.get("error"):
            return False
        if not self._answer.done():
            self._answer.set_result(query)
        return True

    async def wait(self) -> "AuthorizationCodeResult":
        from mcp.shared.auth import AuthorizationCodeResult

        found = await self._answer
        if found.get("error"):
            raise UserError(f"the sign-in was refused: {found.get('error_description') or found['error']}")
        return AuthorizationCodeResult(code=str(found["code"]), state=found.get("state"), iss=found.get("iss"))


@asynccontextmanager
async def answer_server(config: ServerConfig, answer: BrowserAnswer) -> AsyncIterator[int]:
    """Listen for the browser on the person's own machine; the port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                line = (await reader.readline()).decode("latin-1").split(" ")
            target = urlsplit(line[1] if len(line) > 1 else "")
            query = {name: values[0] for name, values in parse_qs(target.query).items()}
            is_answer = target.path.endswith("/callback") and answer.put(query)
            head = b"200 OK" if is_answer else b"404 Not Found"
            body = _PAGE if is_answer else b"nothing here"
            writer.write(b"HTTP/1.1 %b\r\nContent-Type: text/html\r\nContent-Length: %d\r\n" % (head, len(body)))
            writer.write(b"Connection: close\r\n\r\n" + body)
            await writer.drain()
        except (TimeoutError, OSError, ValueError) as error:
            log.debug("a visitor of the sign-in page left: %s", error)
        finally:
            writer.close()

    oauth = config.entry.oauth
    server = await asyncio.start_server(handle, oauth.redirect_host, oauth.redirect_port, limit=64 * 1024)
    async with server:
        yield int(server.sockets[0].getsockname()[1])
