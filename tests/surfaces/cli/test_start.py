"""The command line as a whole: quick, forgiving about spelling, one sentence when something is wrong."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hermes
from hermes.surfaces.cli.app import COMMANDS
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.main import main
from hermes.surfaces.cli.start import take_profile
from hermes.testing.replies import says
from hermes.testing.server import ServerThread

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_the_version_is_told(run: Run, word: str) -> None:
    done = run(word)
    assert (done.stdout, done.stderr, done.returncode) == (f"hermes {hermes.__version__}\n", "", 0)


def test_the_version_imports_nothing_heavy(environ: dict[str, str]) -> None:
    script = (
        "import sys; from hermes.surfaces.cli.main import main; main(['--version']);"
        "print([name for name in sys.modules if name.partition('.')[0] in "
        "('click', 'msgspec', 'yaml', 'asyncio', 'rich', 'logging', 'pathlib', 'sqlite3')])"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "[]"


def test_an_answer_without_tools_loads_neither_the_gate_nor_a_parser(environ: dict[str, str]) -> None:
    """They cost half as much as all else together, and only the first command needs them."""
    script = (
        "import sys; from hermes.surfaces.cli.main import main; main(sys.argv[1:]);"
        "print([name for name in sys.modules if name.startswith(('hermes.tools.approval', 'tree_sitter', 'rich',"
        " 'prompt_toolkit', 'ruamel'))])"
    )
    with ServerThread([says("Hello.")]) as server:
        words = ["chat", "-q", "Hi", "--model", "m", "--base-url", server.base_url]
        args = [sys.executable, "-c", script, *words]
        done = subprocess.run(args, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "Hello.\n"
    assert done.stderr == "[]\n", "where everything but the answer goes"


def test_help_lists_every_command_without_importing_it(environ: dict[str, str]) -> None:
    script = (
        "import sys; from hermes.surfaces.cli.main import main; main(['--help']);"
        "print([n for n in sys.modules if n.startswith('hermes.surfaces.cli.commands.')])"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    for name in COMMANDS.names():
        assert f"  {name} " in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS.names())
def test_every_command_has_help_and_a_one_line_summary(run: Run, name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert COMMANDS.summary(name).endswith(".")
    assert COMMANDS.load(name).name == name


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["confg"], "There is no command 'confg'. Did you mean: hermes config"),
        (["config", "shwo"], "There is no command 'shwo'. Did you mean: hermes config show"),
        (["help", "exitcodes"], "Did you mean: hermes help exit-codes"),
        (["config", "get"], "Missing argument 'KEY'"),
        (["--modle", "x"], "--model"),
        (["chat", "what", "now"], 'A question needs -q: hermes chat -q "what now"'),
        (["what now"], 'To ask that: hermes chat -q "what now"'),
        (["memory", "remove", "x"], "Did you mean: hermes memory forget"),
        (["plugins", "frob"], "There is no command 'frob'.\n"),
        (["usage", "--days", "x"], "'x' is not a whole number."),
        (["usage", "--days", "0"], "0 is less than 1."),
        (["config", "set", "agent.max_turns", "-1"], "stands behind a '--': hermes config set … -- -1"),
    ],
)
def test_a_mistake_is_a_usage_error_with_a_way_on(
    hermes_home: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(words) == Exit.USAGE
    done = capsys.readouterr()
    assert told in done.err
    assert done.out == ""


def test_every_exit_code_is_its_own_and_documented(run: Run) -> None:
    text = run("help", "exit-codes").stdout
    assert [int(line.split()[0]) for line in text.splitlines()[2:]] == sorted(Exit)
    assert len(set(Exit)) == len(Exit)


@pytest.mark.parametrize(
    ("words", "profile", "rest"),
    [
        (["-p", "work", "chat"], "work", ["chat"]),
        (["chat", "-q", "x", "--profile", "work"], "work", ["chat", "-q", "x"]),
        (["--profile=work", "doctor"], "work", ["doctor"]),
        (["chat", "-q", "-p means what?"], None, ["chat", "-q", "-p means what?"]),
        (["a", "--", "-p", "x"], None, ["a", "--", "-p", "x"]),
    ],
)
def test_the_profile_is_found_wherever_it_stands(words: list[str], profile: str | None, rest: list[str]) -> None:
    assert take_profile(words) == (profile, rest)


def test_an_unknown_profile_is_one_sentence(run: Run) -> None:
    done = run("-p", "work", "config", "path")
    assert done.returncode == Exit.FAILED
    assert done.stderr == "error: there is no profile 'work'; make it with: hermes profile create work\n"


@pytest.mark.parametrize("words", [["sessions", "list"], ["memory"], ["doctor"], ["acp", "--check"]])
@pytest.mark.parametrize("below", ["", "/below/it"])
def test_a_home_that_is_no_folder_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], below: str
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("HERMES_HOME", f"{file}{below}")
    assert main(words) == Exit.FAILED
    where = f" in '{file}{below}'" if below else ""
    told = f"error: '{file}'{where} is no folder, so nothing can be kept there; set HERMES_HOME to a folder\n"
    assert capsys.readouterr() == ("", told)


def test_a_home_on_a_disk_that_is_not_there_is_not_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").symlink_to(tmp_path / "gone")
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    assert main(["sessions", "list"]) == Exit.FAILED
    assert "is a link that leads nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words"), [("installation.json", ["uninstall"]), ("memories/MEMORY.md", ["memory"]), (".env", ["doctor"])]
)
def test_a_folder_where_a_file_belongs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, words: list[str]
) -> None:
    (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    assert main(words) == Exit.FAILED
    told = "".join(capsys.readouterr())
    assert f"a folder is where a file belongs ('{tmp_path / name}'); move the folder away" in told
    assert "failed" not in told


@pytest.mark.parametrize("words", [["config", "show", "--all"], ["--version"]])
def test_a_reader_that_goes_away_is_no_error(environ: dict[str, str], words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "hermes.surfaces.cli.main", *words]
    done = subprocess.run(command, env=environ, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert done.returncode == Exit.BROKEN_PIPE
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "words", [["config", "show", "--all"], ["--version"], ["chat", "-q", "Hi"], ["chat", "--json"]]
)
def test_output_that_finds_no_room_is_one_sentence(environ: dict[str, str], words: list[str]) -> None:
    with ServerThread([says("Hello.")]) as server, Path("/dev/full").open("wb") as full:
        asked = ["--model", "m", "--base-url", server.base_url] if "chat" in words else []
        command = [sys.executable, "-m", "hermes.surfaces.cli.main", *words, *asked]
        done = subprocess.run(
            command, env=environ, input=b"Hi", stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == Exit.FAILED
    told = "error: the output could not be written: No space left on device; make room there. Nothing stored is lost\n"
    assert done.stderr.decode() == told


def test_errors_that_find_no_room_change_nothing(environ: dict[str, str]) -> None:
    command = f"{sys.executable} -m hermes.surfaces.cli.main confg 2>/dev/full"
    done = subprocess.run(["bash", "-c", command], env=environ, capture_output=True, timeout=60, check=False)
    assert done.returncode == Exit.USAGE


def test_control_c_while_the_command_is_loaded_is_no_traceback(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal\n"
        "import hermes.models.http.preload as module\n"
        "module.preload = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = run("chat", "-q", "Hi", PYTHONPATH=f"{tmp_path}{os.pathsep}{Path(hermes.__file__).parents[1]}")
    assert (done.returncode, done.stdout, done.stderr) == (Exit.CANCELLED, "", "Stopped.\n")


@pytest.mark.parametrize(
    "words",
    [
        ["chat", "-q", "Hi", "--resume"],
        ["chat", "-q", "Hi", "--source"],
        ["chat", "-q", "Hi", "--base-url"],
        ["sessions", "show"],
    ],
)
def test_a_word_that_is_not_text_is_one_sentence(environ: dict[str, str], words: list[str]) -> None:
    with ServerThread([says("Hello.")]) as server:
        asked = ["chat", "-q", "Hi", "--model", "m", "--base-url", server.base_url]
        command = [sys.executable, "-m", "hermes.surfaces.cli.main"]
        subprocess.run([*command, *asked], env=environ, capture_output=True, timeout=60, check=True)
    done = subprocess.run([*command, *words, b"x\xff"], env=environ, capture_output=True, timeout=60, check=False)
    assert done.returncode == Exit.USAGE
    assert b"is not UTF-8 text; write it in UTF-8" in done.stderr
    assert b"Hermes itself failed" not in done.stderr


def test_a_closed_stdout_is_no_traceback(environ: dict[str, str]) -> None:
    command = f"{sys.executable} -m hermes.surfaces.cli.main config path >&-"
    done = subprocess.run(["bash", "-c", command], env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr


def test_output_that_the_terminal_cannot_show_is_replaced(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("model: 模型\n", encoding="utf-8")
    done = run("config", "get", "model.default", LANG="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert done.stdout == "??\n"


def test_a_fault_of_ours_is_one_sentence_and_a_logged_traceback(run: Run, home: Path, tmp_path: Path) -> None:
    broken = tmp_path / "sitecustomize.py"
    broken.write_text(
        "import hermes.surfaces.cli.commands.version as module\n"
        "def fail(**_: object) -> None:\n    raise RuntimeError('boom')\n"
        "module.COMMAND.callback = fail\n"
    )
    done = run("version", PYTHONPATH=f"{tmp_path}{os.pathsep}{Path(hermes.__file__).parents[1]}")
    assert done.returncode == Exit.INTERNAL
    assert "RuntimeError: boom" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in (home / "logs" / "errors.log").read_text()


def test_version_as_json(run: Run) -> None:
    assert json.loads(run("version", "--json").stdout)["hermes"] == hermes.__version__


def test_completion_scripts_and_their_answers(run: Run) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_HERMES_COMPLETE" in run("completion", shell).stdout
    done = run(_HERMES_COMPLETE="bash_complete", COMP_WORDS="hermes conf", COMP_CWORD="1")
    assert done.stdout.strip() == "plain,config"
    keys = run(_HERMES_COMPLETE="bash_complete", COMP_WORDS="hermes config get agent.max_t", COMP_CWORD="3")
    assert keys.stdout.strip() == "plain,agent.max_turns"


@pytest.mark.parametrize(
    "words",
    [
        ("chat", "-q", "hi", "--base-url", "http://127.0.0.1:9/v1", "-m", "x"),
        ("config", "set", "agent.max_turns", "3"),
        ("tools",),
        ("plugins", "new", "mine"),
        ("sandbox",),
        ("mcp", "add", "a", "--offline", "--", "true"),
        ("cron", "create", "every 2h", "hi"),
        ("profile", "create", "work"),
    ],
    ids=lambda words: words[0],
)
def test_the_home_is_private_whatever_makes_it(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    home = tmp_path / "new" / ".hermes"
    run(*words, HERMES_HOME=str(home))
    assert home.stat().st_mode & 0o777 == 0o700
