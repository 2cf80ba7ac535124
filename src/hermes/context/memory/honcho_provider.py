"""The provider `honcho`: keeps and recalls what was said with the service Honcho, over its own SDK."""

import json
import re
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hermes.context.memory.provider import MemoryProvider, ProviderHome
from hermes.errors import MissingPart, ToolError

KEY = "HONCHO_API_KEY"
INSTALL = "./hermes --install-extra honcho"
SEARCH, ASK = "honcho_search", "honcho_context"
MAX_LINE_CHARS = 300
MAX_MESSAGE_CHARS = 20_000
TIMEOUT_S = 6.0


def _schema(name: str, description: str) -> dict[str, Any]:
    query = {"type": "string", "description": "What to look for, in plain words."}
    return {
        "name": name,
        "description": description,
        "parameters": {"type": "object", "properties": {"query": query}, "required": ["query"]},
    }


class HonchoProvider(MemoryProvider):
    """Each side of a conversation is a peer of Honcho's, each session one of its sessions."""

    name = "honcho"

    def __init__(self, home: ProviderHome) -> None:
        self._settings = home.settings
        self._key = home.lookup(KEY) or ""
        self._address = str(home.settings.get("base_url") or home.lookup("HONCHO_BASE_URL") or "")
        self._lines = int(home.settings.get("recall_lines") or 5)
        self._client: Any = None
        self._user: Any = None
        self._agent: Any = None
        self._session_id = ""

    def is_available(self) -> bool:
        if find_spec("honcho") is None:
            raise MissingPart(f"the memory provider 'honcho' needs honcho-ai; install it with: {INSTALL}")
        if not self._key and not self._address:
            raise MissingPart(f"the memory provider 'honcho' needs a key: hermes config set {KEY} VALUE")
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """No request is made here: the first thing that is kept or asked for opens the workspace."""
        self._session_id = session_id
        sdk: Any = import_module("honcho")  # its types would be a second contract
        self._client = sdk.Honcho(
            api_key=self._key or "none",
            base_url=self._address or None,
            workspace_id=_safe(self._setting("workspace", "hermes")),
            timeout=TIMEOUT_S,
            max_retries=1,
        )

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [
            _schema(SEARCH, "Find what the user said in earlier sessions, by meaning."),
            _schema(ASK, "Ask the memory service a question about the user; it reasons over all earlier sessions."),
        ]

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        own = _safe(session_id)
        found = [one for one in self._peers()[0].search(query, limit=2 * self._lines) if one.session_id != own]
        newest = sorted(found[: self._lines], key=lambda one: one.created_at, reverse=True)
        return "\n".join(f"- {_day(one)}: {_short(one.content)}" for one in newest)

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "") -> None:
        user, agent = self._peers()
        said = [(user, user_content), (agent, assistant_content)]
        messages = [peer.message(text[:MAX_MESSAGE_CHARS]) for peer, text in said if text.strip()]
        if messages:
            self._client.session(_safe(session_id or self._session_id)).add_messages(messages)

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        query = str(args.get("query") or "").strip()
        if not query:
            raise ToolError("`query` is empty; say what to look for")
        user, _ = self._peers()
        if tool_name == ASK:
            return json.dumps({"answer": str(user.chat(query) or "")})
        found = user.search(query, limit=2 * self._lines)
        return json.dumps({"results": [{"day": _day(one), "said": _short(one.content)} for one in found]})

    def on_session_switch(
        self, new_session_id: str, *, parent_session_id: str = "", reset: bool = False, **kwargs: Any
    ) -> None:
        self._session_id = new_session_id

    def get_config_schema(self) -> list[dict[str, Any]]:
        return [{"key": "api_key", "description": "Key of Honcho", "secret": True, "required": True, "env_var": KEY}]

    def _peers(self) -> tuple[Any, Any]:
        if self._user is None:
            self._user = self._client.peer(_safe(self._setting("user_peer", "user")))
            self._agent = self._client.peer(_safe(self._setting("agent_peer", "hermes")))
        return self._user, self._agent

    def _setting(self, name: str, otherwise: str) -> str:
        return str(self._settings.get(name) or otherwise)


def _safe(name: str) -> str:
    """A name as the service takes it."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", name) or "-"


def _day(message: Any) -> str:
    return str(message.created_at)[:10]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + "…"
