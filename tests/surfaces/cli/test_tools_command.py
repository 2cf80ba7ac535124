"""`hermes tools`: what a session gets, why not, and switching it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.testing.replies import says
from hermes.testing.server import ServerThread

Run = Callable[..., "subprocess.CompletedProcess[str]"]

MINE = """\
from hermes.tools.decorator import tool


@tool(toolset="mine", check_fn=lambda: {available})
def shout(text: str) -> str:
    \"\"\"Say it loudly.\"\"\"
    return text.upper()
"""


@pytest.fixture
def tools_dir(home: Path) -> Path:
    folder = home / "tools"
    folder.mkdir()
    return folder


def listed(run: Run) -> dict[str, Any]:
    done = run("tools", "list", "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert isinstance(value, dict)
    return value


def states(run: Run) -> dict[str, str]:
    return {one["name"]: one["state"] for one in listed(run)["tools"]}


def test_built_ins_and_own_tools_are_listed_with_their_state(run: Run, tools_dir: Path) -> None:
    (tools_dir / "shout.py").write_text(MINE.format(available=True), encoding="utf-8")
    found = states(run)
    assert found["read_file"] == "offered"
    assert found["shout"] == "offered"
    shown = run("tools").stdout
    assert "shout" in shown
    assert "offered," in shown


def test_an_unavailable_tool_says_why(run: Run, tools_dir: Path) -> None:
    (tools_dir / "shout.py").write_text(MINE.format(available=False), encoding="utf-8")
    line = next(one for one in listed(run)["tools"] if one["name"] == "shout")
    assert (line["state"], line["why"]) == ("unavailable", "its check says no")


def test_a_broken_file_is_shown_with_its_line_and_costs_nothing_else(run: Run, tools_dir: Path) -> None:
    (tools_dir / "broken.py").write_text(
        "from tools.registry import registry\n1 / 0\nregistry.register()\n", encoding="utf-8"
    )
    found = listed(run)
    assert found["problems"] == [f"{tools_dir / 'broken.py'}, line 2: ZeroDivisionError: division by zero"]
    assert "line 2" in run("tools").stderr
    (tools_dir / "broken.py").write_text("def add(name):\n    registry.register(name)\n\nadd('x')\n", encoding="utf-8")
    assert "broken.py, line 2: a tool counts only when" in run("tools").stderr


def test_toolsets_are_switched_off_and_on_again(run: Run) -> None:
    assert run("tools", "disable", "file").returncode == 0
    assert states(run)["read_file"] == "off"
    assert run("tools", "enable", "file").returncode == 0
    assert states(run)["read_file"] == "offered"
    assert run("tools", "enable", "file", "--platform", "cron").returncode == 0
    refused = run("tools", "disable", "file", "--platform", "cron")
    assert refused.returncode != 0
    assert "comes with hermes-cron" in refused.stderr


def test_one_wrong_name_changes_nothing_and_switching_back_leaves_nothing_behind(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("# mine\nmodel: m\n")
    assert run("tools", "disable", "web", "nosuch").returncode == 1
    assert (home / "config.yaml").read_text() == "# mine\nmodel: m\n"
    run("tools", "disable", "web")
    assert "web" in (home / "config.yaml").read_text()
    run("tools", "enable", "web")
    assert (home / "config.yaml").read_text() == "# mine\nmodel: m\n"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("webb", "There is no toolset 'webb'. Did you mean 'web'?"),
        ("web_search", "'web_search' is a tool; toolsets are switched, and its toolset is 'web'."),
    ],
)
def test_a_toolset_of_the_command_line_that_is_none_is_refused(run: Run, name: str, told: str) -> None:
    done = run("chat", "-q", "Hi", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "-t", f"file,{name}")
    assert (done.returncode, told in done.stderr) == (1, True)


def test_a_toolset_of_ones_own_is_none_that_is_refused(run: Run, tools_dir: Path) -> None:
    (tools_dir / "shout.py").write_text(MINE.format(available=True))
    with ServerThread([says("Here.")]) as server:
        done = run("chat", "-q", "Hi", "--model", "m", "--base-url", server.base_url, "-t", "mine")
    assert (done.returncode, done.stdout) == (0, "Here.\n")


def test_a_name_that_is_none_gets_one_sentence(run: Run) -> None:
    for words, said in (
        (("tools", "disable", "flie"), "Did you mean 'file'?"),
        (("tools", "disable", "read_file"), "its toolset is 'file'"),
        (("tools", "info", "read_fil"), "Did you mean 'read_file'?"),
    ):
        done = run(*words)
        assert done.returncode != 0
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_info_of_a_tool_and_of_a_toolset(run: Run) -> None:
    tool = json.loads(run("tools", "info", "read_file", "--json").stdout)
    assert tool["toolset"] == "file"
    assert "path" in tool["parameters"]
    group = json.loads(run("tools", "info", "debugging", "--json").stdout)
    assert group["includes"] == ["web", "file"]
    assert "path" in run("tools", "info", "read_file").stdout


def test_info_says_why_a_tool_is_not_there(run: Run, tools_dir: Path) -> None:
    assert "why          no search service is set up" in run("tools", "info", "web_search").stdout
    (tools_dir / "shout.py").write_text(MINE.format(available="1 / 0"), encoding="utf-8")
    shown = json.loads(run("tools", "info", "shout", "--json").stdout)
    assert (shown["state"], shown["why"]) == ("unavailable", "its check failed: ZeroDivisionError: division by zero")
    absent = json.loads(run("tools", "info", "spotify_queue", "--json").stdout)
    assert (absent["toolset"], absent["state"]) == ("spotify", "not installed")
    group = json.loads(run("tools", "info", "web_tools", "--json").stdout)
    assert (group["offered"], group["unavailable"]) == (["web_extract"], ["web_search"])
    (tools_dir / "broken.py").write_text("from hermes.tools.decorator import tool\n1 / 0\n@tool\ndef cry(): 0\n")
    gone = run("tools", "info", "cry")
    assert gone.returncode != 0
    assert "broken.py, line 2: ZeroDivisionError" in gone.stderr


def test_project_tools_run_only_in_a_trusted_folder(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / ".hermes" / "tools"
    folder.mkdir(parents=True)
    (folder / "shout.py").write_text(MINE.format(available=True), encoding="utf-8")
    before = listed(run)
    assert "shout" not in {one["name"] for one in before["tools"]}
    assert "hermes tools trust" in before["problems"][0]
    assert run("tools", "trust").returncode == 0
    assert states(run)["shout"] == "offered"
    assert run("tools", "trust", "--remove").returncode == 0
    assert "shout" not in states(run)


def test_the_users_own_tools_are_no_projects(run: Run, tools_dir: Path, tmp_path: Path) -> None:
    (tmp_path / ".hermes").mkdir()
    (tmp_path / ".hermes" / "tools").symlink_to(tools_dir)
    assert listed(run)["problems"] == []


def test_what_is_said_to_be_off_is_off(run: Run, tools_dir: Path, home: Path) -> None:
    (tools_dir / "shout.py").write_text(MINE.format(available=True), encoding="utf-8")
    config = home / "config.yaml"
    for text in ("toolsets: [hermes-cli, mine]\n", "platform_toolsets: {cli: [hermes-cli, mine]}\n"):
        config.write_text(text, encoding="utf-8")
        assert run("tools", "disable", "mine").stdout == "mine is off.\n"
        assert states(run)["shout"] == "off"
        assert run("tools", "enable", "mine").stdout == "mine is on.\n"
        assert states(run)["shout"] == "offered"
    config.write_text("agent: {disabled_toolsets: [debugging]}\n", encoding="utf-8")
    refused = run("tools", "enable", "file")
    assert refused.returncode != 0
    assert "hermes tools enable debugging" in refused.stderr


def test_the_list_is_that_of_the_way_in(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("platform_toolsets: {cli: [file], cron: [terminal]}\n", encoding="utf-8")
    here, there = states(run), json.loads(run("tools", "list", "--json", "--platform", "cron").stdout)["tools"]
    assert (here["read_file"], here["terminal"]) == ("offered", "off")
    assert {one["name"] for one in there if one["state"] == "offered"} == {"process", "terminal"}


def test_a_toolset_that_does_not_exist_is_named(run: Run, home: Path) -> None:
    custom = "tools: {custom_toolsets: {fun: {includes: [nowhere]}}}"
    (home / "config.yaml").write_text(f"toolsets: [fiel, fun, web_tools]\n{custom}\n", encoding="utf-8")
    assert listed(run)["problems"] == [
        "the configuration names a toolset 'fiel' that does not exist; did you mean 'file'?",
        "the configuration names a toolset 'nowhere' that does not exist",
    ]
    assert json.loads(run("tools", "info", "all", "--json").stdout)["tool_count"] > 40


def test_every_option_acts_or_is_refused(run: Run) -> None:
    counts = json.loads(run("tools", "--json", "--summary").stdout)
    assert counts == {"counts": listed(run)["counts"], "problems": []}
    assert json.loads(run("tools", "--json").stdout) == listed(run)
    refused = run("tools", "--summary", "info", "file")
    assert refused.returncode != 0
    assert "hermes tools info" in refused.stderr


def test_trust_is_given_to_the_project_and_taken_from_a_folder_that_is_gone(
    run: Run, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "project" / ".hermes" / "tools").mkdir(parents=True)
    (tmp_path / "project" / "src").mkdir()
    assert run("tools", "trust", "project/src").stdout.startswith(f"{tmp_path / 'project'} is trusted")
    assert "no folder 'nowhere'" in run("tools", "trust", "nowhere").stderr
    (tmp_path / "project").rename(tmp_path / "elsewhere")
    assert "no longer trusted" in run("tools", "trust", "--remove", "project").stdout
    assert str(tmp_path / "project") not in (home / "config.yaml").read_text(encoding="utf-8")
