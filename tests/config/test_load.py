"""config.yaml and its rivals become one checked, typed object that knows where each value came from."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hermes
from hermes.config.audit import section_names, section_type
from hermes.config.load import bound_settings, load_settings
from hermes.config.paths import bound_home
from hermes.config.section import keys_of
from hermes.config.sections import agent, approvals, auxiliary, model, terminal, tool_loop_guardrails, top
from hermes.config.settings import Settings, Source
from hermes.errors import ConfigError

Load = Callable[..., Settings]


def test_a_missing_file_gives_the_defaults(load: Load) -> None:
    settings = load()
    assert settings.of(agent.Section).max_turns == 90
    assert settings.of(top.Section).toolsets == ("hermes-cli",)
    assert settings.warnings == ()


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "model:\n"])
def test_an_empty_file_gives_the_defaults(load: Load, text: str) -> None:
    assert load(text).of(model.Section) == model.Section()


def test_off_is_a_word_although_yaml_reads_it_as_false(load: Load) -> None:
    found = load("terminal: {network: off, sandbox: off}\n").of(terminal.Section)
    assert (found.network, found.sandbox) == ("off", "off")


def test_keys_of_the_file_act(load: Load) -> None:
    settings = load("model: {default: m, base_url: 'http://x'}\nterminal:\n  timeout: 5\ntoolsets: [a, b]\n")
    assert settings.of(model.Section) == model.Section(default="m", base_url="http://x")
    assert settings.of(terminal.Section).timeout == 5
    assert settings.of(top.Section).toolsets == ("a", "b")


def test_a_plain_model_is_its_name(load: Load) -> None:
    assert load("model: some/model\n").of(model.Section) == model.Section(default="some/model")


def test_precedence_is_flag_environment_env_file_default(load: Load, home: Path) -> None:
    text = "agent: {max_turns: 1}\n"
    (home / ".env").write_text("HERMES_MAX_ITERATIONS=2\n")
    environ = {"HERMES_MAX_ITERATIONS": "3"}
    settings = load(text, environ, flags={"agent.max_turns": 4})
    assert settings.get("agent.max_turns") == 4
    assert settings.explain("agent.max_turns").sources == (
        Source("command line", 4),
        Source("HERMES_MAX_ITERATIONS in the environment", "3"),
        Source(f"HERMES_MAX_ITERATIONS in {home / '.env'}", "2"),
        Source(f"{home / 'config.yaml'}, line 1", 1),
        Source("default", 90),
    )
    assert load(text, environ).get("agent.max_turns") == 3
    assert load(text).get("agent.max_turns") == 2
    (home / ".env").unlink()
    assert load(text).get("agent.max_turns") == 1


def test_an_empty_variable_says_nothing(load: Load) -> None:
    assert load("model: m\n", {"HERMES_MODEL": ""}).get("model.default") == "m"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("agent:\n  max_turn: 5\n", "line 2: there is no key 'agent.max_turn'; did you mean 'agent.max_turns'?"),
        ("terminl:\n  timeout: 5\n", "line 1: there is no key 'terminl'; did you mean 'terminal'?"),
        ("max_turns: 5\n", "line 1: there is no key 'max_turns'; did you mean 'agent.max_turns'?"),
        ("providers:\n  mine:\n    base_ulr: x\n", "line 3: there is no key 'providers.mine.base_ulr'; did you mean"),
        ("tts:\n  provder: edge\n", "line 2: there is no key 'tts.provder'; did you mean 'tts.provider'?"),
        (
            "tool_loop_guardrails:\n  warn_after:\n    exact_failur: 1\n",
            "line 3: there is no key 'tool_loop_guardrails.warn_after.exact_failur'; did you mean",
        ),
        ("on: 1\n", "line 1: there is no key 'on'"),
    ],
)
def test_an_unknown_key_is_an_error_with_line_and_nearest_name(load: Load, home: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert f"{home / 'config.yaml'}, {told}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("agent:\n  max_turns: many\n", "line 2: agent.max_turns: expected a whole number"),
        ("agent:\n  max_turns: 0\n", "line 2: agent.max_turns: expected a whole number of at least 1"),
        ("approvals:\n  mode: perhaps\n", "line 2: approvals.mode: expected one of manual, smart, off"),
        ("terminal:\n  network: asks\n", "line 2: terminal.network: expected one of open, ask, off, got 'asks'"),
        ("approvals:\n  rules:\n    - action: no\n", "approvals.rules.0.action: expected one of allow, ask, deny"),
        ("credential_pool_strategies:\n  mine: all\n", "expected one of fill_first, round_robin, random, least_used"),
        ("toolsets: 5\n", "line 1: toolsets: expected a list"),
        ("model: [a]\n", "line 1: model: expected a mapping, got a list"),
        ("terminal: 5\n", "line 1: terminal: expected a mapping"),
        ("fallback_providers:\n  - model: 5\n", "line 2: fallback_providers.0.model"),
    ],
)
def test_a_bad_value_is_an_error_with_its_line(load: Load, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model: {default: x\nagent: 5\n", "line"),
        ("a: b: c\n", "line 1"),
        ("agent:\n\tmax_turns: 5\n", "line 2"),
        ("model: a\nmodel: b\n", "line 2: this is not valid YAML (the key 'model' stands twice)"),
        ("- a\n", "expected keys and values at the top"),
        ("? [a]\n: b\n", "a key must be a word"),
        ("model: !!python/object:os.system x\n", "not valid YAML"),
        ("a: \x00\n", "not valid YAML"),
        ("a: &a [*a]\n", "line 1: this is not valid YAML (*a holds itself)"),
        ("a: 1\nb: " + "{a: " * 60_000, "line 2: this is not valid YAML (nested more than 100 deep)"),
    ],
)
def test_broken_yaml_is_one_sentence(load: Load, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_text_is_told_so(load: Load, home: Path) -> None:
    (home / "config.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load()


def test_known_keys_without_effect_give_one_line(load: Load) -> None:
    settings = load(
        "tts: {provider: edge, xai: {speed: 2}}\ncompression: {in_place: false}\nwhatsapp: {a: {b: 1}}\n"
        "_config_version: 23\nauxiliary: {curator: {timeout: 5}}\n"
    )
    idle = "tts.provider, tts.xai.speed, compression.in_place, whatsapp, auxiliary.curator.timeout"
    assert settings.warnings == (f"config.yaml: known, but without effect in this version: {idle}",)


def test_references_are_filled_from_the_environment_and_env_file(load: Load, home: Path) -> None:
    (home / ".env").write_text("KEY=from-file\nHOST=file-host\n")
    text = "model: {api_key: '${KEY}', base_url: 'http://${HOST}/${PATH_PART:-v1}'}\nagent: {max_turns: '${TURNS}'}\n"
    settings = load(text, {"HOST": "env-host", "TURNS": "7"})
    assert settings.of(model.Section).api_key == "from-file"
    assert settings.of(model.Section).base_url == "http://env-host/v1"
    assert settings.of(agent.Section).max_turns == 7


def test_a_reference_to_nothing_hurts_only_who_needs_it(load: Load, home: Path) -> None:
    settings = load("model:\n  api_key: ${KEY}\nagent: {max_turns: 5}\n")
    assert settings.of(agent.Section).max_turns == 5
    with pytest.raises(ConfigError, match=r"line 2: model.api_key: \$\{KEY\} is not set; export it, or add KEY="):
        settings.of(model.Section)


def test_variables_are_read_in_the_type_of_their_key(load: Load) -> None:
    environ = {
        "TERMINAL_TIMEOUT": "7.5",
        "TERMINAL_DOCKER_VOLUMES": '["/a:/b"]',
        "TERMINAL_DOCKER_FORWARD_ENV": "A, B",
        "TERMINAL_DOCKER_ENV": '{"X": "1"}',
        "TERMINAL_CONTAINER_PERSISTENT": "no",
    }
    section = load(None, environ).of(terminal.Section)
    assert section.timeout == 7.5
    assert section.docker_volumes == ("/a:/b",)
    assert section.docker_forward_env == ("A", "B")
    assert section.docker_env == {"X": "1"}
    assert section.container_persistent is False


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TERMINAL_TIMEOUT", "soon"),
        ("TERMINAL_DOCKER_ENV", "{"),
        ("TERMINAL_DOCKER_ENV", "x"),
        ("TERMINAL_ENV", "moon"),
    ],
)
def test_a_malformed_variable_is_named(load: Load, variable: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"the variable {variable}, which sets terminal"):
        load(None, {variable: value}).of(terminal.Section)


def test_yaml_off_is_the_word_off(load: Load) -> None:
    settings = load("approvals: {mode: off, cron_mode: yes}\n")
    assert settings.of(approvals.Section) == approvals.Section(mode="off", cron_mode="approve")


def test_a_partly_given_struct_keeps_its_own_defaults(load: Load) -> None:
    settings = load(
        "auxiliary: {title_generation: {model: small}}\ntool_loop_guardrails: {warn_after: {exact_failure: 9}}"
    )
    assert settings.of(auxiliary.Section).title_generation == auxiliary.TitleTask(model="small", timeout=30)
    assert settings.of(tool_loop_guardrails.Section).warn_after == tool_loop_guardrails.WarnAfter(exact_failure=9)


def test_secrets_are_masked_where_they_are_shown(load: Load) -> None:
    settings = load("model: {api_key: sk-abcdefghijklmnopqrst}\nproviders: {x: {api_key: short}}\n")
    assert settings.get("model.api_key") == "sk-abcdefghijklmnopqrst"
    explained = settings.explain("model.api_key")
    assert explained.value == "…qrst"
    assert "abcdefgh" not in repr(explained)
    assert "short" not in repr(settings.explain("providers"))


def test_the_mapping_is_whole_and_read_only(load: Load) -> None:
    mapping = load("terminal: {timeout: 5}\n").mapping
    assert mapping["terminal"]["timeout"] == 5
    assert mapping["file_read_max_chars"] == 100_000
    assert mapping.get("nothing") is None
    with pytest.raises(TypeError):
        mapping["terminal"]["timeout"] = 6
    assert {"model", "logging", "code_execution", "toolsets"} <= set(mapping)


def test_a_changed_file_is_read_again(load: Load) -> None:
    assert load("model: one\n").get("model") == "one"
    assert load("model: two\n").get("model") == "two"


def test_ignoring_the_file_leaves_secrets(load: Load, home: Path) -> None:
    (home / ".env").write_text("KEY=k\n")
    settings = load("model: one\n", ignore_file=True)
    assert (settings.get("model"), settings.lookup("KEY")) == ("", "k")


def test_a_second_start_parses_no_yaml(home: Path) -> None:
    (home / "config.yaml").write_text("model: m\n")
    script = (
        "import sys; from pathlib import Path; from hermes.config.load import load_settings;"
        f"s = load_settings(Path({str(home)!r}), environ={{}});"
        "print(s.get('model'), 'yaml' in sys.modules, 'ruamel.yaml' in sys.modules)"
    )
    command = [sys.executable, "-c", script]
    environ = {**os.environ, "PYTHONPATH": str(Path(hermes.__file__).parents[1])}
    runs = [subprocess.run(command, env=environ, capture_output=True, text=True, check=True) for _ in range(2)]
    assert [run.stdout.split() for run in runs] == [["m", "True", "False"], ["m", "False", "False"]]


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "none", environ={}).get("agent.max_turns") == 90
    assert not (tmp_path / "none").exists()


def test_every_documented_key_loads(load: Load) -> None:
    """No documented name may be called unknown; values are left null, which is not judged here."""
    from hermes.config.audit import _documented_keys, audit

    for top_name, patterns in _documented_keys().items():
        for pattern in patterns:
            path = ["some" if part in ("*", "**") else part for part in pattern]
            tree: object = None
            for part in reversed(path[1:]):
                tree = {part: tree}
            audit({top_name: tree})


@pytest.mark.parametrize("name", [*section_names(), "top"])
def test_every_section_can_be_made_and_every_key_is_described(load: Load, name: str) -> None:
    kind = section_type(name)
    assert load().of(kind) == kind()
    assert kind.__doc__
    assert not [key.name for key in keys_of(kind) if not key.description.endswith(".")]


def test_bound_settings_are_the_answer_inside_their_block(load: Load, home: Path) -> None:
    settings = load("model: one\n", flags={"agent.max_turns": 4})
    with bound_settings(settings):
        assert load_settings() is settings
        assert load_settings(home, environ={}).get("agent.max_turns") == 90
    with bound_home(home):
        assert load_settings() is not settings


def test_what_was_found_in_settings_is_not_taken_for_that_of_changed_ones(tmp_path: Path) -> None:
    def named(settings: Settings) -> str:
        return str(settings.get("model.default"))

    first = load_settings(tmp_path, environ={}, flags={"model.default": "one"})
    assert (first.once(named), first.once(named)) == ("one", "one")
    assert first.with_flags({"model.default": "two"}).once(named) == "two"
