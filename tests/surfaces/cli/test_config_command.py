"""`hermes config`: what a person sees and types."""

import json
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

from hermes.surfaces.cli.exit_codes import Exit

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_set_get_explain_and_unset(run: Run, home: Path) -> None:
    done = run("config", "set", "agent.max_turns", "7")
    assert done.stdout == f"agent.max_turns = 7 in {home / 'config.yaml'}\n"
    assert run("config", "get", "agent.max_turns").stdout == "7\n"
    explained = run("config", "explain", "agent.max_turns", HERMES_MAX_ITERATIONS="9").stdout.splitlines()
    assert explained[0] == "agent.max_turns = 9"
    assert explained[2:] == [
        "  from HERMES_MAX_ITERATIONS in the environment: 9",
        f"  over {home / 'config.yaml'}, line 2: 7",
        "  over default: 90",
    ]
    assert run("config", "unset", "agent.max_turns").returncode == 0
    assert run("config", "unset", "agent.max_turns").returncode == Exit.FAILED
    assert run("config", "get", "agent.max_turns").stdout == "90\n"


def test_older_spellings_are_migrated_and_nothing_else_changes(run: Run, home: Path) -> None:
    file = home / "config.yaml"
    old = (
        "# mine\n_config_version: 7\nmodel: some-model  # the usual one\n"
        "fallback_model: {model: other, provider: openai}\n"
        "custom_providers:\n- name: here\n  base_url: http://127.0.0.1:9/v1\nlsp: {enabled: true}\n"
    )
    file.write_text(old)
    done = run("config", "migrate")
    assert (done.returncode, done.stdout.count("\n")) == (0, 3)
    assert "known, but without effect in this version: lsp.enabled" in done.stderr
    text = file.read_text()
    assert text.startswith("# mine\nmodel: some-model  # the usual one\n")
    assert (home / "config.yaml.before-migrate").read_text() == old
    assert json.loads(run("config", "get", "fallback_providers", "--json").stdout)[0]["model"] == "other"
    assert run("config", "get", "providers.here.base_url").stdout == "http://127.0.0.1:9/v1\n"
    assert run("config", "migrate").stdout == "There is nothing to migrate.\n"
    assert file.read_text() == text


def test_a_change_that_something_overrides_says_so(run: Run) -> None:
    done = run("config", "set", "agent.max_turns", "7", HERMES_MAX_ITERATIONS="9")
    assert "warning: HERMES_MAX_ITERATIONS in the environment overrides it" in done.stderr


def test_names_like_variables_go_to_env(run: Run, home: Path) -> None:
    assert run("config", "set", "SOME_API_KEY", "sk-secret").returncode == 0
    assert (home / ".env").read_text() == "SOME_API_KEY=sk-secret\n"
    assert stat.S_IMODE((home / ".env").stat().st_mode) == 0o600
    assert not (home / "config.yaml").exists()
    assert run("config", "unset", "SOME_API_KEY").returncode == 0
    assert (home / ".env").read_text() == ""


def test_variables_and_sections_are_read_like_keys(run: Run, home: Path) -> None:
    run("config", "set", "SOME_API_KEY", "0123456789abcdef-tail")
    assert run("config", "get", "SOME_API_KEY").stdout == "0123456789abcdef-tail\n"
    told = run("config", "explain", "SOME_API_KEY", SOME_API_KEY="short").stdout
    assert told.splitlines()[2:] == ["  from the environment: …", f"  over {home / '.env'}: …tail"]
    gone = run("config", "explain", "OTHER_API_KEY")
    assert (gone.returncode, "hermes config set OTHER_API_KEY VALUE" in gone.stderr) == (1, True)
    assert json.loads(run("config", "get", "display").stdout)["busy_input_mode"] == "queue"


def test_secrets_are_not_shown(run: Run) -> None:
    done = run("config", "set", "model.api_key", "sk-abcdefghijklmnop")
    assert "abcdefgh" not in done.stdout + done.stderr
    assert "better kept in .env" in done.stderr
    assert "abcdefgh" not in run("config", "show").stdout
    assert run("config", "get", "model.api_key").stdout == "sk-abcdefghijklmnop\n"


def test_show_tells_what_is_set_and_all_tells_everything(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("model: m\ndesktop: {disable_gpu: true}\n")
    done = run("config", "show")
    assert done.stdout == "model.default: m\n"
    assert done.stderr == ("warning: config.yaml: known, but without effect in this version: desktop.disable_gpu\n")
    assert json.loads(run("config", "show", "--json").stdout) == {"model.default": "m"}
    everything = run("config", "show", "--all").stdout
    assert "terminal.timeout: 180" in everything
    assert 'toolsets: ["hermes-cli"]' in everything


def test_show_goes_on_past_a_reference_to_nothing(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("model: {api_key: '${GONE}'}\nagent: {max_turns: 5}\n")
    done = run("config", "show")
    assert done.stdout == "agent.max_turns: 5\n"
    assert "${GONE} is not set" in done.stderr


def test_check_finds_what_must_be_mended(run: Run, home: Path) -> None:
    assert run("config", "check").stdout == "config.yaml and .env are fine.\n"
    (home / "config.yaml").write_text("agent: {max_turn: 5}\n")
    (home / ".env").write_text("A=1\n")
    (home / ".env").chmod(0o644)
    done = run("config", "check", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == Exit.FAILED
    assert "did you mean 'agent.max_turns'" in found["problems"][0]
    assert "chmod 600" in found["problems"][1]


def test_check_tells_every_mistake_and_no_word_shows_what_is_set(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("agent: {max_turn: 5, max_turns: many}\nno_such: 1\ndisplay: {theme: green}\n")
    found = json.loads(run("config", "check", "--json").stdout)["problems"]
    assert len(found) == 4
    for key in ("agent.max_turn'", "agent.max_turns:", "no_such", "display.theme"):
        assert sum(key in problem for problem in found) == 1
    (home / "config.yaml").write_text("agent: {max_turns: 5}\n")
    assert run("config").stdout == "agent.max_turns: 5\n"


def test_edit_opens_the_editor_and_checks_afterwards(run: Run, home: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "agent: {max_turn: 5}" > "$1"\n')
    editor.chmod(0o755)
    done = run("config", "edit", EDITOR=str(editor))
    assert done.returncode == Exit.FAILED
    assert "did you mean 'agent.max_turns'" in done.stderr
    assert (home / "config.yaml").exists()


def test_edit_with_no_editor_and_no_terminal_says_where_the_file_is(run: Run, home: Path) -> None:
    done = run("config", "edit")
    assert (done.returncode, done.stdout) == (1, "")
    assert str(home / "config.yaml") in done.stderr


def test_broken_yaml_is_one_sentence_and_paths_still_work(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("model: {a\n")
    done = run("config", "show")
    assert done.returncode == Exit.FAILED
    assert "line 2: this is not valid YAML" in done.stderr
    assert done.stderr.count("\n") == 1
    assert run("config", "path").stdout == f"{home / 'config.yaml'}\n"
    assert run("config", "env-path").stdout == f"{home / '.env'}\n"
