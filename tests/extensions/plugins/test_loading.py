"""Loading: what is broken costs its own plugin one line, nothing is imported early, rights and consent are held."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.config.load import load_settings
from hermes.context.compressor import ContextCompressor
from hermes.errors import UserError
from hermes.extensions.plugins import discover_plugins
from hermes.extensions.plugins.plugin_set import PluginSet, callbacks, plugins_of
from hermes.model_tools import get_tool_definitions, handle_function_call
from hermes.runtime.plugin_joints.ground import _ALIASES
from hermes.testing.replies import calls, says
from tests.extensions.plugins.conftest import Room
from tests.extensions.plugins.samples import write_plugin, write_sample

Results = Callable[[dict[str, Any]], list[str]]
TOOL = """
def handler(args, **kw): return '{"from": "plugin"}'
SCHEMA = {"name": NAME, "description": "A tool.", "parameters": {"type": "object", "properties": {}}}
def register(ctx):
    ctx.register_tool(NAME, "own", SCHEMA, handler, override=OVERRIDE)
"""
# Nine of the one before in each line: as text it would fill any memory.
BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{chr(ord(name) - 1)}'] * 9)}]\n" for name in "bcdefgh"
)


def tool(name: str, *, override: bool = False) -> str:
    return TOOL.replace("NAME", repr(name)).replace("OVERRIDE", str(override))


@pytest.mark.parametrize(
    ("code", "manifest", "told"),
    [
        ("def register(ctx): pass", "name: [", "plugin.yaml is no YAML"),
        ("def register(ctx): pass", "- a\n- b\n", "must hold a mapping"),
        ("def register(ctx): pass", "name: broken\nneeds: {hoks: [x]}\n", "needs.hoks is not known"),
        ("", "name: broken\n", "it has no __init__.py"),
        ("def register(ctx:", "name: broken\n", "SyntaxError"),
        (
            "import no_such_package_here\ndef register(ctx): pass",
            "name: broken\n",
            "Python package 'no_such_package_here'",
        ),
        ("from tools.no_such_thing import x\ndef register(ctx): pass", "name: broken\n", "tools"),
        ("import sys\nsys.exit(3)", "name: broken\n", "SystemExit: 3"),
        ("def register(ctx): raise SystemExit('gone')", "name: broken\n", "SystemExit: gone"),
        ("x = 1", "name: broken\n", "it defines no register(ctx)"),
        ("register = 5", "name: broken\n", "its register is no function"),
        ("async def register(ctx): pass", "name: broken\n", "must be a plain function"),
        ("def register(ctx): pass", BOMB + "name: *h\n", "name must be a word without '/', not a list"),
        ("def register(ctx): ctx.register_tool('x')", "name: broken\n", "TypeError"),
        ("def register(ctx): ctx.no_such_member", "name: broken\n", "no_such_member"),
        (tool("terminal", override=True), "name: broken\n", "allow_tool_override: true"),
        (
            "from tools.registry import registry\nregistry.deregister('terminal')",
            "name: broken\n",
            "not of plugin broken",
        ),
    ],
)
def test_a_broken_plugin_is_one_line_and_the_rest_works(
    room: Room, results: Results, code: str, manifest: str, told: str
) -> None:
    write_plugin(room.home / "plugins" / "broken", code, manifest)
    write_sample(room.home, "weather", "new")
    room.config("plugins: {enabled: [broken, weather]}\n")
    answer = room.run(calls("weather", town="Berlin"), says("Rain."))
    assert json.loads(results(answer)[0])["weather"] == "rain"
    (line,) = room.warnings
    assert line.startswith("the plugin 'broken' is not loaded: ")
    assert told in line
    assert "\n" not in line
    state = next(one for one in plugins_of(room.home).states(load_settings()) if one.manifest.key == "broken")
    assert (state.status, state.as_json()["error"]) == (
        "enabled",
        line.removeprefix("the plugin 'broken' is not loaded: "),
    )


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda file: file.symlink_to("/dev/zero")])
def test_a_manifest_that_is_no_file_is_one_line_and_the_rest_works(
    room: Room, results: Results, make: Callable[[Path], None]
) -> None:
    folder = write_plugin(room.home / "plugins" / "broken", "def register(ctx): pass\n")
    (folder / "plugin.yaml").unlink()
    make(folder / "plugin.yaml")
    os.mkfifo(write_sample(room.home, "weather", "new") / "never_written.py")
    room.config("plugins: {enabled: [broken, weather]}\n")
    answer = room.run(calls("weather", town="Berlin"), says("Rain."))
    assert json.loads(results(answer)[0])["weather"] == "rain"
    assert room.warnings == ["the plugin 'broken' is not loaded: its plugin.yaml is no file"]


def test_what_a_manifest_says_at_length_or_in_lists_is_cut(room: Room) -> None:
    words = BOMB + f"name: wordy\nversion: *h\ndescription: {'long ' * 500}\nkind: *h\nrequires_env: [*h, WORDY]\n"
    write_plugin(room.home / "plugins" / "wordy", "def register(ctx): pass\n", words)
    (one,) = PluginSet(room.home).states(load_settings())
    assert (one.manifest.version, len(one.manifest.description)) == ("", 500)
    assert [variable.name for variable in one.manifest.requires_env] == ["WORDY"]
    assert one.manifest.warnings == [
        "version is no text",
        "requires_env names no variable: a list",
        "kind a list is not known; it is taken for standalone",
    ]


def test_what_was_registered_before_a_failure_stays(room: Room, results: Results) -> None:
    code = (
        tool("early").replace("def register(ctx):", "def register(ctx):\n    late = False")
        + "    raise OSError('late')\n"
    )
    write_plugin(room.home / "plugins" / "half", code)
    room.config("plugins: {enabled: [half]}\n")
    assert results(room.run(calls("early"), says("Done."))) == ['{"from": "plugin"}']
    assert room.warnings == ["the plugin 'half' is not loaded: OSError: late"]


def test_a_plugin_that_registers_twice_or_shadows_is_warned_of(room: Room, results: Results) -> None:
    code = tool("twice") + '    ctx.register_tool(NAME, "own", SCHEMA, lambda args, **kw: \'{"second": 1}\')\n'.replace(
        "NAME", "'twice'"
    )
    write_plugin(room.home / "plugins" / "two", code + "    ctx.register_tool('terminal', 'own', SCHEMA, handler)\n")
    room.config("plugins: {enabled: [two]}\n")
    assert results(room.run(calls("twice"), says("Done."))) == ['{"second": 1}']
    (state,) = plugins_of(room.home).states(load_settings())
    assert any("registered twice" in line for line in state.as_json()["warnings"])
    assert any("'terminal' is left out" in line for line in state.as_json()["warnings"])


def test_the_operator_can_let_a_plugin_replace_a_tool(room: Room, results: Results) -> None:
    write_plugin(room.home / "plugins" / "mine", tool("todo", override=True))
    room.config("plugins: {enabled: [mine], entries: {mine: {allow_tool_override: true}}}\n")
    from hermes.tools.registry import registry

    old = registry.get("todo")
    assert old is not None
    try:
        assert results(room.run(calls("todo"), says("Done."))) == ['{"from": "plugin"}']
    finally:
        registry.add(old, override=True)


def test_a_required_plugin_that_is_missing_denies_every_call(room: Room, results: Results) -> None:
    room.config("plugins: {enabled: [guard], entries: {guard: {required: true}}}\n")
    answer = room.run(calls("terminal", command="echo hi"), says("Done."))
    assert "the policy of 'guard' is not loaded" in results(answer)[0]
    assert "'guard' is not loaded" in handle_function_call("terminal", {"command": "echo hi"})


def test_a_guard_that_breaks_after_it_was_known_denies(room: Room, results: Results) -> None:
    write_sample(room.home, "policy", "new")
    room.config("plugins: {enabled: [policy]}\n")
    room.run(calls("terminal", command="echo hi"), says("Done."))
    again = PluginSet(room.home).chosen(load_settings())[0]
    assert not again.is_loaded
    (room.home / "plugins/policy/__init__.py").write_text("import gone_package\n")
    (guard,) = callbacks(again, "hooks", "pre_tool_call")
    with pytest.raises(UserError, match="gone_package"):
        guard(tool_name="x", args={})


CHILD = """
import json, sys
from hermes import AIAgent
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import calls, says
script = [calls("weather", town="Berlin")] if "call" in sys.argv else []
agent = AIAgent(model=ScriptedModel(*script, says("Done.")), store=MemoryStore())
answer = agent.run_conversation("Go.")
agent.close()
told = [one["content"] for one in answer["messages"] if one["role"] == "tool"]
print(json.dumps({"loaded": sorted(name for name in sys.modules if name.startswith("hermes_plugins.")), "told": told}))
"""


def child(room: Room, *words: str) -> dict[str, Any]:
    environ = {**os.environ, "HERMES_HOME": str(room.home), "PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, *words],
        env=environ,
        cwd=room.workspace,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(ran.stdout)  # nothing that a plugin prints is in it
    return found


def test_a_second_start_imports_no_plugin_until_its_tool_is_called(room: Room) -> None:
    folder = write_sample(room.home, "weather", "old")
    with (folder / "__init__.py").open("a") as file:
        file.write("\nprint('noise on stdout')\n")
    write_sample(room.home, "ping", "new")
    room.config("plugins: {enabled: [weather, ping]}\n")
    assert "hermes_plugins.weather" in child(room)["loaded"]
    assert child(room)["loaded"] == []
    second = child(room, "call")
    assert second["loaded"] == ["hermes_plugins.weather", "hermes_plugins.weather.client"]
    assert json.loads(second["told"][0])["weather"] == "rain"
    (folder / "client.py").write_text((folder / "client.py").read_text().replace("rain", "snow"))
    assert "hermes_plugins.weather" in child(room)["loaded"]


def test_what_was_not_declared_is_refused(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
import os
SEEN = {}
def register(ctx):
    SEEN.update({name: os.environ.get(name) for name in ("DECLARED", "SECRET")})
    for what, act in {
        "hook": lambda: ctx.register_hook("post_tool_call", print),
        "tool": lambda: ctx.dispatch_tool("terminal", {"command": "id"}),
        "llm": lambda: ctx.llm.complete("hi"),
    }.items():
        try:
            act()
        except PermissionError as error:
            SEEN[what] = str(error)
    ctx.register_hook("pre_llm_call", lambda **kw: None)
"""
    manifest = "name: modest\nneeds: {hooks: [pre_llm_call], env: [DECLARED]}\n"
    write_plugin(room.home / "plugins" / "modest", code, manifest)
    (room.home / ".env").write_text("DECLARED=yes\nSECRET=hidden\n")
    room.config("plugins: {enabled: [modest]}\n")
    discover_plugins()
    seen = sys.modules["hermes_plugins.modest"].SEEN
    assert (seen["DECLARED"], seen["SECRET"]) == ("yes", None)
    assert all("did not declare" in seen[what] for what in ("hook", "tool", "llm"))
    (state,) = plugins_of(room.home).states(load_settings())
    assert state.error == ""


def test_a_change_of_the_declaration_asks_again(room: Room) -> None:
    folder = write_sample(room.home, "policy", "new")
    room.config("plugins: {enabled: [policy]}\n")
    assert PluginSet(room.home).chosen(load_settings())[0].error == ""
    (folder / "plugin.yaml").write_text("name: policy\nneeds: {hooks: [pre_tool_call], network: [example.org]}\n")
    changed = PluginSet(room.home).chosen(load_settings())[0]
    assert "hermes plugins enable policy" in changed.error
    changed_set = PluginSet(room.home)
    changed_set.consents.give(changed.manifest)
    assert changed_set.chosen(load_settings())[0].error == ""


@pytest.mark.parametrize("trusted_by", ["variable", "settings"])
def test_a_projects_plugins_need_trust_and_stay_in_the_project(
    room: Room, monkeypatch: pytest.MonkeyPatch, trusted_by: str
) -> None:
    write_plugin(room.workspace / ".hermes/plugins/local", tool("local_tool"))
    config = "plugins: {{enabled: [local]}}\ntools: {{trusted_projects: ['{place}']}}\n"
    room.config(config.format(place=room.workspace.parent))  # not what is below it
    assert "nowhere to be found" in PluginSet(room.home).chosen(load_settings(), room.workspace)[0].error
    if trusted_by == "variable":
        monkeypatch.setenv("HERMES_ENABLE_PROJECT_PLUGINS", "1")
    else:
        room.config(config.format(place=room.workspace))
    answer = room.run(calls("local_tool"), says("Done."))
    assert [one["content"] for one in answer["messages"] if one["role"] == "tool"] == ['{"from": "plugin"}']
    from hermes.tools.registry import registry

    assert registry.get("local_tool") is None


def test_an_installed_package_brings_a_plugin(room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "site-packages"
    info = place / "shipped-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shipped\nVersion: 1.2\nSummary: From a package\n")
    (info / "entry_points.txt").write_text("[hermes_agent.plugins]\nshipped = shipped_plugin\n")
    (place / "shipped_plugin.py").write_text(tool("shipped_tool"))
    monkeypatch.syspath_prepend(str(place))
    (found,) = [one for one in PluginSet(room.home).finder.all() if one.key == "shipped"]
    assert (found.version, found.description, found.source) == ("1.2", "From a package", "entrypoint")
    room.config("plugins: {enabled: [shipped]}\n")
    assert [one["function"]["name"] for one in get_tool_definitions(["own"], quiet_mode=True)] == ["shipped_tool"]
    assert handle_function_call("shipped_tool", {}) == '{"from": "plugin"}'


def test_safe_mode_and_a_plugin_that_is_off_run_nothing(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plugin(room.home / "plugins" / "loud", "raise SystemExit('ran')\n")
    room.config("plugins: {enabled: [loud], disabled: [loud]}\n")
    assert PluginSet(room.home).chosen(load_settings()) == []
    room.config("plugins: {enabled: [loud]}\n")
    monkeypatch.setenv("HERMES_SAFE_MODE", "1")
    assert PluginSet(room.home).chosen(load_settings()) == []


def test_what_nothing_uses_yet_is_accepted_checked_and_listed(room: Room) -> None:
    code = """
from agent.image_gen_provider import ImageGenProvider
class Painter(ImageGenProvider):
    name = "painter"
def register(ctx):
    ctx.register_image_gen_provider(Painter())
    ctx.register_tts_provider(object())
    ctx.register_platform("chat", "Chat", lambda: None, lambda: True, emoji="C")
    ctx.register_auxiliary_task("poems", display_name="Poems", description="Rhymes")
    for wrong in ("title_generation", "vision", "no spaces"):
        try:
            ctx.register_auxiliary_task(wrong, display_name="x", description="x")
        except ValueError:
            continue
        raise AssertionError(wrong)
"""
    write_plugin(room.home / "plugins" / "many", code)
    room.config("plugins: {enabled: [many]}\n")
    (state,) = plugins_of(room.home).states(load_settings())
    assert state.error == ""
    assert [line for line in state.as_json()["offers"] if "nothing uses it yet" in line] == [
        "image_gen_provider painter: nothing uses it yet",
        "platform chat: nothing uses it yet",
        "auxiliary_task poems: nothing uses it yet",
    ]
    assert any("tts_provider is left out" in line for line in state.as_json()["warnings"])


def test_a_skill_of_a_plugin_is_read_by_its_full_name(room: Room, results: Results) -> None:
    folder = write_plugin(
        room.home / "plugins" / "guides",
        "from pathlib import Path\ndef register(ctx): ctx.register_skill('tea', Path(__file__).with_name('tea'))\n",
    )
    (folder / "tea").mkdir()
    (folder / "tea/SKILL.md").write_text("---\nname: tea\ndescription: Make tea.\n---\n\nBoil water.\n")
    room.config("plugins: {enabled: [guides]}\n")
    answer = room.run(calls("skill_view", name="guides:tea"), calls("skills_list"), says("Done."))
    viewed, listed = (json.loads(one) for one in results(answer))
    assert "Boil water." in viewed["content"]
    assert "tea" not in str(listed.get("skills"))


def test_an_engine_that_gives_nonsense_changes_nothing(room: Room) -> None:
    folder = write_sample(room.home, "engine", "new")
    code = (folder / "__init__.py").read_text()
    room.config("plugins: {enabled: [engine]}\ncontext: {engine: last-few}\n")
    for wrong in ("None", "[{'role': 'tool'}]", "42", "messages * 3"):
        (folder / "__init__.py").write_text(code.replace("return messages[-2:]", f"return {wrong}"))
        plugins_of(room.home).chosen(load_settings(), force=True)
        for plugin in plugins_of(room.home)._plugins.values():
            plugin.is_loaded, plugin.live.context_engine = False, None
        agent = room.agent(says("1"), says("2"), says("3"))
        for number in range(3):
            agent.run_conversation(f"question {number}")
        done = agent.compress()
        assert done["status"] == "unchanged", wrong
        agent.close()


def test_an_engine_that_is_not_there_leaves_the_work_to_the_compressor(room: Room) -> None:
    room.config("context: {engine: nobody}\n")
    room.run(says("Done."))
    assert room.warnings == ["there is no context engine 'nobody'; no plugin is switched on; the compressor stands in"]
    assert ContextCompressor is not None


def test_the_words_that_plugins_may_not_take_are_those_of_the_table() -> None:
    from hermes.host.command import COMMANDS

    aliases = {name: COMMANDS.load(name).aliases for name in COMMANDS.names() if COMMANDS.load(name).aliases}
    assert {name: tuple(words) for name, words in aliases.items()} == _ALIASES
