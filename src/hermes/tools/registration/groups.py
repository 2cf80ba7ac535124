"""Toolsets: named groups of tools, the presets of each way in, and what a name resolves to."""

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from hermes.tools.registry import ToolRegistry, registry


class Toolset(TypedDict):
    """A group: tools by name, and other groups that belong to it."""

    description: str
    tools: list[str]
    includes: list[str]


def _group(description: str, *tools: str, includes: Iterable[str] = ()) -> Toolset:
    return {"description": description, "tools": list(tools), "includes": list(includes)}


_WEB = ("web_search", "web_extract")
_TERMINAL = ("terminal", "process")
_FILE = ("read_file", "write_file", "patch", "search_files")
_SKILLS = ("skills_list", "skill_view", "skill_manage")
_BROWSER_BASIC = (
    "browser_navigate",
    "browser_snapshot",
    "browser_click",
    "browser_type",
    "browser_scroll",
    "browser_back",
    "browser_press",
    "browser_get_images",
    "browser_vision",
    "browser_console",
)
_BROWSER = (*_BROWSER_BASIC, "browser_cdp", "browser_dialog")
_HOME_ASSISTANT = ("ha_list_entities", "ha_get_state", "ha_list_services", "ha_call_service")
_KANBAN = tuple(
    f"kanban_{verb}"
    for verb in ("show", "list", "complete", "block", "heartbeat", "comment", "create", "link", "unblock")
)
_FEISHU_DRIVE = tuple(
    f"feishu_drive_{verb}" for verb in ("list_comments", "list_comment_replies", "reply_comment", "add_comment")
)
_YUANBAO = tuple(
    f"yb_{verb}" for verb in ("query_group_info", "query_group_members", "send_dm", "search_sticker", "send_sticker")
)
_RL = tuple(
    f"rl_{verb}"
    for verb in (
        "list_environments",
        "select_environment",
        "get_current_config",
        "edit_config",
        "start_training",
        "check_status",
        "stop_training",
        "get_results",
        "list_runs",
        "test_inference",
    )
)
_SPOTIFY = tuple(
    f"spotify_{verb}" for verb in ("playback", "devices", "queue", "search", "playlists", "albums", "library")
)

CORE_TOOLS: list[str] = [
    *_WEB,
    *_TERMINAL,
    *_FILE,
    "vision_analyze",
    "image_generate",
    *_SKILLS,
    *_BROWSER,
    "text_to_speech",
    "todo",
    "memory",
    "session_search",
    "clarify",
    "execute_code",
    "delegate_task",
    "cronjob",
    "send_message",
    *_HOME_ASSISTANT,
    *_KANBAN,
    "computer_use",
]

_ACP_TOOLS = (
    *_WEB,
    *_TERMINAL,
    *_FILE,
    "vision_analyze",
    *_SKILLS,
    *_BROWSER,
    "todo",
    "memory",
    "session_search",
    "execute_code",
    "delegate_task",
)

_LIKE_CORE = (
    "cli", "telegram", "cron", "whatsapp", "slack", "signal", "bluebubbles", "homeassistant", "email", "mattermost",
    "matrix", "dingtalk", "weixin", "qqbot", "wecom", "wecom-callback", "sms", "webhook",
)  # fmt: skip
_MESSAGING = (
    "telegram", "discord", "whatsapp", "slack", "signal", "bluebubbles", "homeassistant", "email", "sms", "mattermost",
    "matrix", "dingtalk", "feishu", "wecom", "wecom-callback", "weixin", "qqbot", "webhook", "yuanbao",
)  # fmt: skip

TOOLSETS: dict[str, Toolset] = {
    "web": _group("Search the web and read pages", *_WEB),
    "search": _group("Search the web, without reading pages", "web_search"),
    "x_search": _group("Search posts on X", "x_search"),
    "vision": _group("Look at pictures", "vision_analyze"),
    "video": _group("Look at videos", "video_analyze"),
    "image_gen": _group("Make pictures", "image_generate"),
    "video_gen": _group("Make videos", "video_generate", "xai_video_edit", "xai_video_extend"),
    "computer_use": _group("Use the desktop: see the screen, click, type", "computer_use"),
    "terminal": _group("Run commands and look after background processes", *_TERMINAL),
    "moa": _group("Ask several models and join their answers", "mixture_of_agents"),
    "skills": _group("Read and keep skills", *_SKILLS),
    "browser": _group("Use a web browser", *_BROWSER, "web_search"),
    "cronjob": _group("Schedule jobs", "cronjob"),
    "messaging": _group("Send messages to people", "send_message"),
    "rl": _group("Train models by reinforcement learning", *_RL),
    "file": _group("Read, write, patch and search files", *_FILE),
    "tts": _group("Speak a text", "text_to_speech"),
    "todo": _group("Keep a task list", "todo"),
    "memory": _group("Remember across sessions", "memory"),
    "session_search": _group("Search earlier conversations", "session_search"),
    "clarify": _group("Ask the user a question", "clarify"),
    "code_execution": _group("Run Python that calls tools", "execute_code"),
    "delegation": _group("Hand tasks to subagents", "delegate_task"),
    "homeassistant": _group("See and switch devices of a home", *_HOME_ASSISTANT),
    "kanban": _group(
        "Work on a shared task board", *_KANBAN, "kanban_attach", "kanban_attach_url", "kanban_attachments"
    ),
    "discord": _group("Read and write on Discord", "discord"),
    "discord_admin": _group("Look after a Discord server", "discord_admin"),
    "yuanbao": _group("Groups, messages and stickers on Yuanbao", *_YUANBAO),
    "feishu_doc": _group("Read documents on Feishu", "feishu_doc_read"),
    "feishu_drive": _group("Comments on files on Feishu", *_FEISHU_DRIVE),
    "spotify": _group("Play and find music on Spotify", *_SPOTIFY),
    "context_engine": _group("Tools that the context engine brings"),
    "project": _group("Switch between projects", "project_list", "project_create", "project_switch"),
    "debugging": _group("Find a fault: commands, files and the web", *_TERMINAL, includes=("web", "file")),
    "safe": _group("Nothing that can change this machine", includes=("web", "vision", "image_gen")),
    "coding": _group("Work on code", *_ACP_TOOLS, "clarify"),
    "hermes-acp": _group("An editor", *_ACP_TOOLS),
    "hermes-api-server": _group("The API server", *_ACP_TOOLS, "image_generate", "cronjob", *_HOME_ASSISTANT),
    **{f"hermes-{name}": _group(f"The usual tools, for {name}", *CORE_TOOLS) for name in _LIKE_CORE},
    "hermes-discord": _group("The usual tools and Discord's", *CORE_TOOLS, "discord", "discord_admin"),
    "hermes-feishu": _group("The usual tools and Feishu's", *CORE_TOOLS, "feishu_doc_read", *_FEISHU_DRIVE),
    "hermes-yuanbao": _group("The usual tools and Yuanbao's", *CORE_TOOLS, *_YUANBAO),
    "hermes-gateway": _group("Every chat platform", includes=(f"hermes-{name}" for name in _MESSAGING)),
}

LEGACY_TOOLSETS: dict[str, list[str]] = {
    "web_tools": list(_WEB),
    "terminal_tools": ["terminal"],
    "vision_tools": ["vision_analyze"],
    "moa_tools": ["mixture_of_agents"],
    "image_tools": ["image_generate"],
    "skills_tools": list(_SKILLS),
    "browser_tools": list(_BROWSER_BASIC),
    "cronjob_tools": ["cronjob"],
    "file_tools": list(_FILE),
    "tts_tools": ["text_to_speech"],
    "rl_tools": list(_RL),
}

EVERYTHING = frozenset({"all", "*"})


class Groups:
    """Toolsets by name: the static ones, a home's own, and those that exist only because a tool registered so."""

    def __init__(self, tools: ToolRegistry, custom: Mapping[str, Toolset] | None = None) -> None:
        self._tools = tools
        self._sets: Mapping[str, Toolset] = {**TOOLSETS, **custom} if custom else TOOLSETS

    def names(self) -> list[str]:
        """Every valid name but aliases, `all` and `*`."""
        return sorted({*self._sets, *self._tools.get_registered_toolset_names()})

    def get(self, name: str) -> Toolset | None:
        """The group with everything that is registered under its name; None when there is no such group."""
        name = self._tools.get_toolset_alias_target(name) or name if name not in self._sets else name
        registered = self._tools.get_tool_names_for_toolset(name)
        static = self._sets.get(name)
        if static is not None:
            own = list(static["tools"])
            own += [tool for tool in registered if tool not in own]
            return {"description": static["description"], "tools": own, "includes": list(static["includes"])}
        if registered:
            return _group(f"Tools of {name}", *registered)
        platform = name.removeprefix("hermes-")
        if platform != name and (own := self._tools.get_tool_names_for_toolset(platform)):
            return _group(f"The usual tools and those of {platform}", *CORE_TOOLS, *own)
        return None

    def is_valid(self, name: str) -> bool:
        return name in EVERYTHING or self.get(name) is not None

    def resolve(self, name: str, seen: set[str] | None = None) -> list[str]:
        """Every tool of the group and of the groups it includes, sorted. A circle adds nothing; unknown is empty."""
        seen = set() if seen is None else seen
        if name in EVERYTHING:
            return sorted({tool for each in self.names() for tool in self.resolve(each, set(seen))})
        if name in seen:
            return []
        seen.add(name)
        group = self.get(name)
        if group is None:
            return []
        found = set(group["tools"])
        for included in group["includes"]:
            found.update(self.resolve(included, seen))
        return sorted(found)

    def resolve_many(self, names: Iterable[str]) -> list[str]:
        return sorted({tool for name in names for tool in self.resolve(name)})

    def info(self, name: str) -> dict[str, Any] | None:
        group = _group("Every tool there is", includes=self.names()) if name in EVERYTHING else self.get(name)
        if group is None and name in LEGACY_TOOLSETS:
            group = _group("An older name", *LEGACY_TOOLSETS[name])
        if group is None:
            return None
        resolved = self.resolve(name) or sorted(group["tools"])
        return {
            "name": name,
            "description": group["description"],
            "direct_tools": group["tools"],
            "includes": group["includes"],
            "resolved_tools": resolved,
            "tool_count": len(resolved),
            "is_composite": bool(group["includes"]),
        }


def groups(custom: Mapping[str, Toolset] | None = None) -> Groups:
    """The groups over the process's registry."""
    return Groups(registry, custom)


def custom_groups(settings: Mapping[str, Any]) -> dict[str, Toolset]:
    """The groups that `tools.custom_toolsets` of the configuration names."""
    section = settings.get("tools")
    wanted = section.get("custom_toolsets") if isinstance(section, Mapping) else None
    return {
        name: _group(str(one.get("description", "")), *one.get("tools", ()), includes=one.get("includes", ()))
        for name, one in (wanted or {}).items()
    }
