"""The local environment: the common suite, and what only it does."""

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.errors import ToolError
from hermes.tools.builtin.search_files import search_files
from hermes.tools.environments.command_env import scrubbed
from hermes.tools.environments.local import LocalEnvironment, LocalOptions
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import Conformance, run
from tests.tools.terminal_room import Room, told

PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def kind() -> str:
    return "local"


@pytest.fixture
async def environment(supervisor: ProcessSupervisor, tmp_path: Path) -> AsyncIterator[LocalEnvironment]:
    work = tmp_path / "work"
    work.mkdir()
    options = LocalOptions(env={"PATH": PATH, "HOME": str(tmp_path), "LANG": "C.UTF-8"})
    one = LocalEnvironment(supervisor, str(work), options)
    yield one
    await one.close()


class TestLocal(Conformance):
    """The common suite."""


async def test_login_files_are_read_once_and_the_rest_is_not_inherited(
    supervisor: ProcessSupervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_THE_RUNTIME", "secret")
    (tmp_path / ".bashrc").write_text("export FROM_BASHRC=1; _complete() { :; }; helper() { echo helped; }\n")
    (tmp_path / "extra.sh").write_text("echo read >> ~/count; export FROM_EXTRA=2\n")
    options = LocalOptions(env={"PATH": PATH, "HOME": str(tmp_path)}, init_files=("~/extra.sh",))
    environment = LocalEnvironment(supervisor, str(tmp_path), options)
    for _ in range(2):
        result = await run(environment, "echo $FROM_BASHRC$FROM_EXTRA[$FROM_THE_RUNTIME]; helper; type _complete 2>&1")
    assert result.output.startswith("12[]\nhelped\n")
    assert "not found" in result.output
    assert (tmp_path / "count").read_text() == "read\n"
    await environment.close()


async def test_login_files_that_hang_are_named(supervisor: ProcessSupervisor, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("sleep 7305\n")
    options = LocalOptions(env={"PATH": PATH, "HOME": str(tmp_path)}, creation_limit_s=1.0)
    environment = LocalEnvironment(supervisor, str(tmp_path), options)
    with pytest.raises(ToolError, match=r"reading the login files .*\.bashrc.* took more than 1 s"):
        await run(environment, "true")
    await environment.close()


async def test_what_a_killed_runtime_left_is_swept_and_what_is_in_use_is_not(
    supervisor: ProcessSupervisor, environment: LocalEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    await run(environment, "export KEPT=1")
    stale = tmp_path / "hermes-shell-stale"
    stale.mkdir()
    (stale / "lock").touch()
    assert environment._state is not None
    for folder in (stale, environment._state.shared):
        os.utime(folder, (1, 1))
    other = LocalEnvironment(supervisor, str(tmp_path), LocalOptions(env={"PATH": PATH, "HOME": str(tmp_path)}))
    await run(other, "true")
    assert not stale.exists()
    assert (await run(environment, "echo $KEPT")).output == "1\n"
    await other.close()
    await environment.close()
    assert [name for name in os.listdir(tmp_path) if name.startswith("hermes-shell-")] == []


async def test_a_folder_that_was_deleted_gives_way_to_the_one_above(environment: LocalEnvironment) -> None:
    before = environment.cwd
    await run(environment, "mkdir -p a/b && cd a/b")
    await run(environment, "rm -r ../../a")
    assert (await run(environment, "pwd")).output.strip() == before


async def test_exec_and_a_killed_shell_keep_the_state_before_them(environment: LocalEnvironment) -> None:
    await run(environment, "export KEPT=1")
    assert (await run(environment, "export KEPT=2; exec true")).exit_code == 0
    assert (await run(environment, "kill -9 $$")).exit_code == 137
    assert (await run(environment, "echo $KEPT")).output == "1\n"


async def test_a_write_leaves_the_old_file_or_the_new_one(environment: LocalEnvironment) -> None:
    await environment.write("f", b"old")
    await run(environment, "chmod 600 f; ln -s f l; mkdir d")
    await environment.write("l", b"new")
    result = await run(environment, "cat f; stat -c %a f; readlink l; ls -A")
    assert result.output == "new600\nf\nd\nf\nl\n"
    with pytest.raises(ToolError):
        await environment.write("d", b"x")
    await run(environment, "mkfifo p")
    with pytest.raises(ToolError, match="not a regular file"):
        await environment.read("p")


async def test_no_state_is_left_on_disk_after_close(
    environment: LocalEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    await run(environment, "export SECRET_THING=1")
    assert [folder.stat().st_mode & 0o777 for folder in temporary.iterdir()] == [0o700]
    await environment.close()
    assert list(temporary.iterdir()) == []


async def test_sudo_gets_its_password_and_nobody_else_sees_it(supervisor: ProcessSupervisor, tmp_path: Path) -> None:
    # A stand-in that does what sudo -A does: run SUDO_ASKPASS and take the password from its output.
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sudo").write_text(
        '#!/bin/bash\n[ "$1" = -A ] || exit 9\nshift\necho "as root with ${#SUDO_ASKPASS}"\n'
        '[ "$("$SUDO_ASKPASS")" = "pass word" ] && exec "$@"\n'
    )
    (tools / "sudo").chmod(0o755)
    first = tmp_path / "first.sh"  # a login shell may set PATH anew
    first.write_text(f"export PATH={tools}:$PATH\n")
    options = LocalOptions(env={"PATH": PATH}, init_files=(str(first),))
    environment = LocalEnvironment(supervisor, str(tmp_path), options)
    environment.sudo_password = "pass word"
    result = await run(environment, "sudo echo one && sudo echo two; env; cat /proc/self/cmdline")
    assert result.output.count("as root with") == 2
    assert "one\n" in result.output
    assert "two\n" in result.output
    assert "pass word" not in result.output
    assert (await run(environment, "type -t sudo; declare -f sudo")).output == "file\n"
    assert (await run(environment, "echo 'no sudo here'")).output == "no sudo here\n"
    await environment.close()


def test_credentials_are_scrubbed_and_the_rest_stays() -> None:
    environ = {
        "OPENROUTER_API_KEY": "x", "GITHUB_TOKEN": "x", "MY_DB_PASSWORD": "x", "AWS_SECRET_ACCESS_KEY": "x",
        "PGPASSWORD": "x", "SSHPASS": "x", "GITLABTOKEN": "x", "AZURE_STORAGE_CONNECTION_STRING": "x",
        "TELEGRAM_BOT_TOKEN": "x", "SUDO_PASSWORD": "x", "DATABASE_URL": "postgres://u:p@h/db",
        "JAVA_HOME": "/j", "SSH_AUTH_SOCK": "/s", "LANG": "C", "HTTPS_PROXY": "http://u:p@proxy:1", "PATH": "/x",
        "TOKENIZERS_PARALLELISM": "1", "KEEP_TOKEN": "k", "_HERMES_FORCE_NPM_TOKEN": "n", "PWD": "/w",
    }  # fmt: skip
    assert scrubbed(environ, ["KEEP_TOKEN"]) == {
        "JAVA_HOME": "/j", "SSH_AUTH_SOCK": "/s", "LANG": "C", "HTTPS_PROXY": "http://u:p@proxy:1",
        "PATH": "/x:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "TOKENIZERS_PARALLELISM": "1", "KEEP_TOKEN": "k", "NPM_TOKEN": "n", "PWD": "/w",
    }  # fmt: skip


@pytest.fixture
def planted(tmp_path: Path) -> dict[str, str]:
    """An active virtualenv in which every program that a shell or the runtime might start leaves a trace."""
    folder = tmp_path / "work" / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("bash", "sh", "id", "dircolors", "cat", "awk", "head", "sed", "rg", "grep", "mine"):
        (folder / name).write_text(f"#!/bin/sh -p\necho {name} >> {tmp_path}/trace\n")
        (folder / name).chmod(0o755)
    (tmp_path / ".bashrc").write_text("id; dircolors; cat /dev/null\n")
    return {"PATH": f"{folder}:{PATH}", "HOME": str(tmp_path), "VIRTUAL_ENV": str(folder.parent), "LANG": "C.UTF-8"}


async def test_no_program_of_the_virtualenv_runs_while_the_shell_is_made(
    supervisor: ProcessSupervisor, tmp_path: Path, planted: dict[str, str]
) -> None:
    environment = LocalEnvironment(supervisor, str(tmp_path / "work"), LocalOptions(env=planted))
    await run(environment, "true")
    assert not (tmp_path / "trace").exists()
    assert (await run(environment, "command -v mine")).output == f"{tmp_path}/work/.venv/bin/mine\n"
    await environment.close()


async def test_what_commands_have_defined_has_no_say_in_the_runtimes_own_commands(
    supervisor: ProcessSupervisor, tmp_path: Path, planted: dict[str, str]
) -> None:
    environment = LocalEnvironment(supervisor, str(tmp_path / "work"), LocalOptions(env=planted))
    trap = f"echo $FUNCNAME >> {tmp_path}/trace"
    await run(environment, f"alias cd='{trap};' set='{trap};'; awk() {{ {trap}; }}; export A=1; builtin cd /")
    room = Room(environment, supervisor, tmp_path)
    (tmp_path / "work" / "a.txt").write_text("needle\n")
    found = told(await search_files({"pattern": "needle", "path": str(tmp_path / "work")}, ctx=room))
    assert [match["content"] for match in found["matches"]] == ["needle"]
    assert not (tmp_path / "trace").exists()
    assert (await run(environment, "echo $A $PWD")).output == "1 /\n"
    await environment.close()
