"""`hermes profile`: separate homes, made and moved whole."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.errors import UserError
from hermes.host.profiles import import_archive
from hermes.surfaces.cli.exit_codes import Exit
from tests.surfaces.conftest import SOURCE

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def names(run: Run) -> list[str]:
    return [each["name"] for each in json.loads(run("profile", "list", "--json").stdout)]


def test_a_profile_has_its_own_settings(run: Run, home: Path) -> None:
    run("config", "set", "model", "root-model")
    assert run("profile", "create", "work").returncode == 0
    assert stat.S_IMODE((home / "profiles" / "work").stat().st_mode) == 0o700
    run("-p", "work", "config", "set", "model", "work-model")
    assert run("config", "get", "model").stdout == "root-model\n"
    assert run("-p", "work", "config", "get", "model").stdout == "work-model\n"
    assert run("config", "get", "model", HERMES_PROFILE="work").stdout == "work-model\n"


def test_without_a_word_profiles_are_listed(run: Run) -> None:
    assert run("profile").stdout == run("profile", "list").stdout
    assert "default" in run("profile").stdout


def test_the_chosen_profile_is_used_until_another_is(run: Run) -> None:
    run("profile", "create", "work")
    run("profile", "use", "work")
    assert run("config", "path").stdout.endswith("profiles/work/config.yaml\n")
    assert run("-p", "default", "config", "path").stdout.endswith("home/config.yaml\n")
    run("profile", "use", "default")
    assert run("config", "path").stdout.endswith("home/config.yaml\n")


def test_cloning_takes_settings_and_secrets_but_no_sessions(run: Run, home: Path) -> None:
    (home / "config.yaml").write_text("model: m\n")
    (home / ".env").write_text("K=1\n")
    (home / "skills" / "one").mkdir(parents=True)
    (home / "skills" / "one" / "SKILL.md").write_text("x")
    (home / "state.db").write_bytes(b"")
    run("profile", "create", "copy", "--clone")
    made = home / "profiles" / "copy"
    assert sorted(each.name for each in made.iterdir()) == [".env", "config.yaml", "skills"]


def test_cloning_all_takes_a_consistent_copy_of_the_store(run: Run, home: Path) -> None:
    live = sqlite3.connect(home / "state.db")
    live.execute("pragma journal_mode=wal")
    live.execute("create table t (x)")
    live.execute("insert into t values (5)")
    live.commit()
    assert run("profile", "create", "copy", "--clone-all").returncode == 0
    copied = sqlite3.connect(home / "profiles" / "copy" / "state.db")
    assert copied.execute("select x from t").fetchall() == [(5,)]
    copied.close()
    live.close()


def test_renaming_and_deleting_keep_the_choice_right(run: Run, home: Path) -> None:
    run("profile", "create", "one")
    run("profile", "use", "one")
    run("profile", "rename", "one", "two")
    assert names(run) == ["default", "two"]
    assert (home / "active_profile").read_text() == "two\n"
    assert run("profile", "delete", "two", stdin="n\n").returncode == Exit.CANCELLED
    assert names(run) == ["default", "two"]
    assert run("profile", "delete", "two", "--yes").returncode == 0
    assert names(run) == ["default"]
    assert not (home / "active_profile").exists()


def test_an_exported_profile_comes_back_without_secrets(run: Run, home: Path, tmp_path: Path) -> None:
    (home / "config.yaml").write_text("model: m\n")
    (home / ".env").write_text("K=1\n")
    done = run("profile", "export", "-o", "backup.tar.gz")
    assert done.stdout == f"{tmp_path / 'backup.tar.gz'}\n"
    with tarfile.open(tmp_path / "backup.tar.gz") as packed:
        assert packed.getnames() == ["config.yaml"]
    assert run("profile", "import", "backup.tar.gz").returncode == 0
    assert run("-p", "backup", "config", "get", "model").stdout == "m\n"
    run("profile", "export", "-o", "all.tar.gz", "--with-secrets")
    with tarfile.open(tmp_path / "all.tar.gz") as packed:
        assert packed.getnames() == [".env", "config.yaml"]


def test_an_archive_that_leads_out_of_the_home_is_refused(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    with tarfile.open(tmp_path / "evil.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / "x", arcname="../../../escaped")
    done = run("profile", "import", "evil.tar.gz")
    assert done.returncode == Exit.FAILED
    assert "cannot unpack" in done.stderr
    assert not list(tmp_path.rglob("escaped"))
    assert names(run) == ["default"]


def test_a_python_without_filters_of_its_own_unpacks_no_more_than_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(tarfile, "data_filter", raising=False)  # as before 3.11.4
    (tmp_path / "config.yaml").write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "root").mkdir()
    for source, name in (("config.yaml", "../escaped"), ("link", "link"), ("config.yaml", "config.yaml")):
        with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as packed:
            packed.add(tmp_path / source, arcname=name)
        if name != "config.yaml":
            with pytest.raises(UserError, match="cannot unpack"):
                import_archive(tmp_path / "root", str(tmp_path / "packed.tar.gz"), "other")
    _, home = import_archive(tmp_path / "root", str(tmp_path / "packed.tar.gz"), "other")
    assert (home / "config.yaml").read_text() == "x"
    assert not list(tmp_path.rglob("escaped"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["create", "Bad Name"], "cannot name a profile"),
        (["create", "default"], "always there"),
        (["use", "none"], "there is no profile 'none'"),
        (["rename", "default", "x"], "keeps its name"),
        (["delete", "default", "--yes"], "cannot be deleted"),
        (["show", "none"], "there is no profile 'none'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(run: Run, words: list[str], told: str) -> None:
    done = run("profile", *words)
    assert (done.returncode, done.stderr.count("\n")) == (Exit.FAILED, 1)
    assert told in done.stderr


def test_an_alias_is_a_command_that_uses_the_profile(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "hermes").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hermes.surfaces.cli.main "$@"\n')
    (tmp_path / "hermes").chmod(0o755)
    run("profile", "create", "work")
    made = run("profile", "alias", "work")
    assert f'export PATH="{home / "bin"}:$PATH"' in made.stderr
    assert "is a command already" in run("profile", "alias", "work", "--name", "ls").stderr
    assert run("profile", "alias", "nobody").returncode == Exit.FAILED

    def asked(name: str) -> str:
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HERMES_HOME": str(home), "PYTHONPATH": str(SOURCE)}
        words = [str(home / "bin" / name), "config", "path"]
        return subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=True).stdout

    assert asked("work").endswith("profiles/work/config.yaml\n")
    run("profile", "rename", "work", "job")
    assert asked("work").endswith("profiles/job/config.yaml\n")
    run("profile", "alias", "job", "--name", "w2")
    assert run("profile", "alias", "job", "--remove", "--name", "w2").stdout == "Removed: w2\n"
    run("profile", "delete", "job", "--yes")
    assert list((home / "bin").iterdir()) == []
