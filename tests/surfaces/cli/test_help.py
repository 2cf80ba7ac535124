"""`hermes help`: every topic fits a terminal, and names only commands and settings that exist."""

import re
import subprocess
from collections.abc import Callable

import click
import pytest

from hermes.config.audit import every_key, section_names
from hermes.config.sections.terminal import BACKENDS
from hermes.surfaces.acp.main import _options as editor_options
from hermes.surfaces.cli.app import APP, COMMANDS
from hermes.surfaces.cli.commands.help_ import topic_names, topic_text
from hermes.surfaces.cli.exit_codes import Exit

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize("topic", topic_names())
def test_a_topic_names_only_what_exists(topic: str) -> None:
    text = topic_text(topic)
    assert max(map(len, text.splitlines())) <= 110
    for command in re.findall(r"(?<![.\w])hermes ((?:-p \w+ )?[a-z]+(?: [a-z-]+)?)", text):
        words = [word for word in command.removeprefix("-p work ").split() if not word.startswith("-")]
        found = COMMANDS.load(words[0])
        if isinstance(found, click.Group) and len(words) > 1:
            assert words[1] in found.list_commands(click.Context(found)), command
    keys = {key for key in re.findall(r"\b[a-z_]+(?:\.[a-z_]+)+\b", text) if key.partition(".")[0] in section_names()}
    known = set(every_key())
    assert {key for key in keys if key not in known and not key.endswith(".md")} == set()


@pytest.mark.parametrize("topic", topic_names())
def test_options_in_a_topic_exist(topic: str) -> None:
    """Each `--option` is one of some command."""
    known = {name for command in _all(APP) for param in command.params for name in param.opts}
    known |= {"--help"} | {name for action in editor_options()._actions for name in action.option_strings}
    assert set(re.findall(r"(?<!\S)--[a-z][a-z-]+", topic_text(topic))) <= known


def _all(command: click.Command) -> list[click.Command]:
    return [command, *(each for _, one in _below(command) for each in _all(one))]


def _below(command: click.Command) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return []
    ctx = click.Context(command)
    found = [(name, command.get_command(ctx, name)) for name in command.list_commands(ctx)]
    return [(name, one) for name, one in found if one is not None]


def test_help_finds_topics_commands_and_keys(run: Run) -> None:
    assert "worktrees" in run("help", "topics").stdout
    assert ".worktreeinclude" in run("help", "worktrees").stdout
    assert "hermes sessions --help" in run("help", "sessions").stdout
    assert "--older-than" in run("help", "sessions", "prune").stdout
    assert run("help", "agent.max_turns").stdout.startswith("agent.max_turns: ")
    wrong = run("help", "worktres")
    assert (wrong.returncode, "Did you mean: hermes help worktrees" in wrong.stderr) == (Exit.USAGE, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sesions"], "Did you mean: hermes sessions"),
        (["sessions", "lst"], "Did you mean: hermes sessions list"),
        (["chat", "--modle", "x"], "--model"),
        (["config", "set", "agent.max_turn", "3"], "'agent.max_turns'"),
        (["doctor", "stor"], "store"),
    ],
)
def test_a_mistake_names_what_was_meant_and_runs_nothing(run: Run, words: list[str], told: str) -> None:
    done = run(*words)
    assert done.returncode in (Exit.USAGE, Exit.FAILED)
    assert told in done.stderr
    assert done.stdout == ""


def test_a_group_tells_what_each_command_does_to_the_end() -> None:
    for path, command in _named(APP, "hermes"):
        if isinstance(command, click.Group):
            text = command.get_help(click.Context(command, info_name=path))
            assert not re.search(r"\.\.\.$", text.partition("Commands:")[2], re.MULTILINE), path


def test_other_names_of_a_command_are_told_once(run: Run) -> None:
    told = run("plugins", "--help").stdout
    assert "  remove, rm, uninstall  Delete a plugin" in told
    assert told.count("Delete a plugin") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["plugins", "new"], "Usage: hermes plugins new [OPTIONS] NAME\n"),
        (["batch", "export"], "Usage: hermes batch export [OPTIONS] NAME\n"),
    ],
)
def test_what_is_missing_is_explained(run: Run, words: list[str], told: str) -> None:
    done = run(*words)
    assert (done.returncode, told in done.stderr) == (Exit.USAGE, True)


def test_the_first_help_names_the_conversation(run: Run) -> None:
    assert "opens a conversation" in " ".join(run("--help").stdout.split())


def test_everything_a_script_reads_can_be_had_as_json() -> None:
    tables = {"list", "show", "search", "stats", "status", "check", "explain", "get", "info", "usage", "doctor", "logs"}
    lacking = [
        name
        for name, command in _named(APP, "hermes")
        if name.rpartition(" ")[2] in tables
        and not isinstance(command, click.Group)
        and not any("--json" in param.opts for param in command.params)
    ]
    assert lacking == []


def _named(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    pairs = _below(command)
    return [(path, command), *(each for name, one in pairs for each in _named(one, f"{path} {name}"))]


def test_commands_of_a_group_are_told_in_whole_sentences(run: Run) -> None:
    for group in ("config", "approvals", "sessions"):
        told = run(group, "--help", COLUMNS="80").stdout
        assert "Commands" in told
        assert "..." not in told.partition("Commands")[2].replace("[OPTIONS]", "")


def test_help_names_every_terminal_backend() -> None:
    assert set(BACKENDS) <= set(re.findall(r"\w+", topic_text("terminal")))


GROUPS = [name for name in COMMANDS.names() if isinstance(COMMANDS.load(name), click.Group)]


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_without_a_command_tells_something_and_succeeds(run: Run, group: str) -> None:
    done = run(group)
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["memory", "add"], "hermes memory edit"),
        (["skills", "show"], "hermes skills view"),
        (["batch", "list"], "hermes batch status"),
        (["serve", "status"], "hermes serve --status"),
        (["mcp", "new"], "hermes mcp add"),
    ],
)
def test_what_people_type_for_a_command_leads_to_it(run: Run, words: list[str], meant: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert f"Did you mean: {meant}" in done.stderr


def test_every_capability_has_a_topic() -> None:
    wanted = {"mcp", "cron", "plugins", "memory", "skills", "batch", "serve", "sandbox", "editors", "install"}
    assert wanted <= set(topic_names())
