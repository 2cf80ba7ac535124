"""`hermes plugins new`: a plugin that works, with a test that runs it in an agent."""

import re
from pathlib import Path

from hermes.config.paths import make_private
from hermes.errors import UserError

_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")

_MANIFEST = """\
name: {name}
version: 0.1.0
description: Counts words, and keeps a log of the calls.
# What it needs. What is not listed is not handed to it; network and files are for people to read.
needs:
  hooks: [post_tool_call]
  tools: []
  env: []
  files: ["{name}.log in the home"]
"""

_CODE = '''\
"""A plugin: one tool, one hook, one slash command. `register` is called once, when something of it is needed."""

from hermes.config.paths import hermes_home
from hermes.tools.registry import tool_result

SCHEMA = {{
    "name": "{tool}",
    "description": "Count the words of a text.",
    "parameters": {{
        "type": "object",
        "properties": {{"text": {{"type": "string", "description": "The text."}}}},
        "required": ["text"],
    }},
}}


def count(args, **kw):
    """The tool: `args` fits the schema; the answer is JSON text."""
    return tool_result(words=len(args["text"].split()))


def log_call(tool_name, status, duration_ms, **kw):
    """An observer: it is told of each call, beside it; what it does or raises changes nothing."""
    with open(hermes_home() / "{name}.log", "a", encoding="utf-8") as file:
        file.write(f"{{tool_name}} {{status}} {{duration_ms}} ms\\n")


def show(raw_args):
    """The slash command /{name}."""
    return f"{{len(raw_args.split())}} words"


def register(ctx):
    ctx.register_tool("{tool}", "{name}", SCHEMA, count)
    ctx.register_hook("post_tool_call", log_call)
    ctx.register_command("{name}", show, description="Count the words after it", args_hint="TEXT")
'''

_TEST = '''\
"""The plugin in an agent; the model is a script. How to run it: docs/testing.md."""

import json
import shutil
from pathlib import Path

from hermes.testing.replies import calls, says

PLUGIN = Path(__file__).resolve().parents[1]


def test_the_model_counts_words(hermes_workspace, hermes_agent, scripted_model, monkeypatch):
    home = hermes_workspace.parent / "hermes-test-home"
    shutil.copytree(PLUGIN, home / "plugins" / "{name}")
    (home / "config.yaml").write_text("plugins:\\n  enabled: [{name}]\\n")
    model = scripted_model(calls("{tool}", text="one two three"), says("Three."))
    agent = hermes_agent(model)
    result = agent.run_conversation("How many words?")
    told = [json.loads(one["content"]) for one in result["messages"] if one["role"] == "tool"]
    assert told == [{{"words": 3}}]
    assert result["final_response"] == "Three."
    agent.close()
    assert (home / "{name}.log").read_text().startswith("{tool} ok")
'''


def new_plugin(name: str, home: Path) -> Path:
    """Write a new plugin into the home; its folder."""
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} is no name for a plugin; use small letters, digits and '-', a letter first")
    folder = home / "plugins" / name
    if folder.exists():
        raise UserError(f"there is something at {str(folder)!r} already")
    words = {"name": name, "tool": f"{name.replace('-', '_')}_count"}
    make_private(folder.parent)
    (folder / "tests").mkdir(parents=True)
    for file, text in (("plugin.yaml", _MANIFEST), ("__init__.py", _CODE), ("tests/test_plugin.py", _TEST)):
        (folder / file).write_text(text.format(**words), encoding="utf-8")
    return folder
