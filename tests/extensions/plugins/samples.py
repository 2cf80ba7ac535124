"""Plugins as people have them, each written for Hermes and, with old imports, for Hermes Agent."""

from pathlib import Path

WEATHER_NEW = '''
"""A tool with a dependency."""
from hermes.tools.registry import tool_error, tool_result
from . import client

SCHEMA = {
    "name": "weather",
    "description": "The weather of a town.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
}


def handler(args, **kw):
    try:
        return tool_result(client.look_up(args["town"]))
    except KeyError:
        return tool_error(f"no such town: {args['town']}")


def register(ctx):
    ctx.register_tool("weather", "weather", SCHEMA, handler, emoji="W")
'''
WEATHER_OLD = """
from tools.registry import registry, tool_error, tool_result
from hermes_constants import get_hermes_home
from .client import look_up


def handler(args, **kw):
    from utils import safe_json_loads
    assert safe_json_loads("{}") == {}
    assert get_hermes_home().is_dir()
    try:
        return tool_result(look_up(args["town"]))
    except KeyError:
        return tool_error("no such town: " + args["town"])


registry.register(
    name="weather", toolset="weather",
    schema={"name": "weather", "description": "The weather of a town.",
            "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}},
    handler=handler,
)


def register(ctx):
    pass
"""
CLIENT = """
import yaml  # a dependency that is installed

TOWNS = yaml.safe_load("Berlin: rain")


def look_up(town):
    return {"town": town, "weather": TOWNS[town]}
"""

POLICY_NEW = """
def guard(tool_name, args, **kw):
    if tool_name == "terminal" and "prod" in args.get("command", ""):
        return {"action": "block", "message": "production is off limits"}


def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
"""
POLICY_OLD = """
from hermes_cli.config import cfg_get, load_config


def guard(**kwargs):
    word = cfg_get(load_config(), "plugins", "entries", "policy", "settings", "word", default="prod")
    if kwargs["tool_name"] == "terminal" and word in kwargs["args"].get("command", ""):
        return {"action": "block", "message": "production is off limits"}
    return {"checked": True}


def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
"""

AUDIT_NEW = """
import json
from hermes.config.paths import hermes_home


async def after(tool_name, status, tool_call_id, **kw):
    with open(hermes_home() / "audit.jsonl", "a") as file:
        file.write(json.dumps({"tool": tool_name, "status": status, "id": tool_call_id}) + "\\\\n")


def register(ctx):
    ctx.register_hook("post_tool_call", after)
"""
AUDIT_OLD = """
import json
import logging
from hermes_constants import get_hermes_home
from hermes_logging import get_logger
from hermes_time import now

log = get_logger(__name__)


def after(**kwargs):
    assert now().tzinfo is not None
    log.info("a call")
    entry = {"tool": kwargs["tool_name"], "status": kwargs["status"], "id": kwargs["tool_call_id"]}
    with open(get_hermes_home() / "audit.jsonl", "a") as file:
        file.write(json.dumps(entry) + "\\\\n")


def register(ctx):
    ctx.register_hook("post_tool_call", after)
"""

MEMORY = """
{imports}


class Notes(MemoryProvider):
    name = "notes"

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        self.session_id = session_id

    def get_tool_schemas(self):
        return []

    def handle_tool_call(self, tool_name, args, **kwargs):
        return "{{}}"

    def prefetch(self, query, *, session_id=""):
        return "The user likes tea."

    def sync_turn(self, user_content, assistant_content, **kwargs):
        pass


def register(ctx):
    ctx.register_memory_provider(Notes())
"""

ENGINE = """
{imports}


class LastFew(ContextEngine):
    name = "last-few"

    def __init__(self):
        self.told = []

    def update_from_response(self, usage):
        self.last_prompt_tokens = usage["prompt_tokens"]

    def should_compress(self, prompt_tokens=None):
        return False

    def compress(self, messages, current_tokens=None, focus_topic=None):
        return messages[-2:]

    def get_tool_schemas(self):
        return [{{"name": "engine_status", "description": "How full it is.",
                 "parameters": {{"type": "object", "properties": {{}}}}}}]

    def handle_tool_call(self, name, args, **kwargs):
        return '{{"engine": "last-few"}}'


def register(ctx):
    ctx.register_context_engine(LastFew())
"""

COMMAND_NEW = """
def show(raw_args):
    return f"pong {raw_args}"


def setup(parser):
    parser.add_argument("--times", type=int, default=1, help="How often.")


def run(args):
    print("pong " * args.times)
    return 0 if args.times < 5 else 3


def register(ctx):
    ctx.register_command("ping", show, description="Answer", args_hint="WORDS")
    ctx.register_cli_command("ping", "Answer on the command line", setup, run)
"""
COMMAND_OLD = """
from hermes_cli.plugins import get_plugin_commands


async def show(raw_args):
    return "pong " + raw_args


def setup(parser):
    parser.add_argument("--times", type=int, default=1, help="How often.")
    parser.set_defaults(func=run)


def run(args):
    assert "ping" in get_plugin_commands()
    print("pong " * args.times)
    return 0 if args.times < 5 else 3


def register(ctx):
    ctx.register_command("/Ping", show, "Answer", "WORDS")
    ctx.register_cli_command("ping", "Answer on the command line", setup)
"""

SAMPLES: dict[str, dict[str, dict[str, str]]] = {
    "weather": {
        "new": {"__init__.py": WEATHER_NEW, "client.py": CLIENT},
        "old": {"__init__.py": WEATHER_OLD, "client.py": CLIENT},
    },
    "policy": {"new": {"__init__.py": POLICY_NEW}, "old": {"__init__.py": POLICY_OLD}},
    "audit": {"new": {"__init__.py": AUDIT_NEW}, "old": {"__init__.py": AUDIT_OLD}},
    "notes": {
        "new": {"__init__.py": MEMORY.format(imports="from hermes.context.memory.provider import MemoryProvider")},
        "old": {"__init__.py": MEMORY.format(imports="from agent.memory_provider import MemoryProvider")},
    },
    "engine": {
        "new": {"__init__.py": ENGINE.format(imports="from hermes.context import ContextEngine")},
        "old": {"__init__.py": ENGINE.format(imports="from agent.context_engine import ContextEngine")},
    },
    "ping": {"new": {"__init__.py": COMMAND_NEW}, "old": {"__init__.py": COMMAND_OLD}},
}


def write_plugin(folder: Path, code: str = "", manifest: str = "", **files: str) -> Path:
    """A plugin at `folder`; its name is the folder's unless the manifest says otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plugin.yaml").write_text(manifest or f"name: {folder.name}\nversion: '1.0'\n")
    if code:
        (folder / "__init__.py").write_text(code.replace("\\\\n", "\\n"))
    for name, text in files.items():
        (folder / name).write_text(text.replace("\\\\n", "\\n"))
    return folder


def write_sample(home: Path, name: str, style: str) -> Path:
    """One of the samples in a home, switched on nowhere."""
    return write_plugin(home / "plugins" / name, **SAMPLES[name][style])
