"""A folder that is the same here and on a remote backend: sent before commands, brought home at the end."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.tools.environments.remote import Common
from hermes.tools.environments.ssh import SshEnvironment
from hermes.tools.environments.sync import Synced
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import run
from tests.tools.real_backends import CLIENT_PATH, Engine, SshServer, container, ssh_options

pytestmark = pytest.mark.real


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "skills"
    (folder / "greet" / "scripts").mkdir(parents=True)
    (folder / "greet" / "SKILL.md").write_text("# Greet\n")
    (folder / "greet" / "scripts" / "hello.sh").write_text("#!/bin/sh\necho hello from the skill\n")
    (folder / "greet" / "scripts" / "hello.sh").chmod(0o755)
    return folder


@pytest.fixture
async def environment(
    supervisor: ProcessSupervisor, sshd: SshServer, skills: Path, tmp_path: Path
) -> AsyncIterator[SshEnvironment]:
    synced = Synced(skills, str(tmp_path / "there"))
    common = Common(supervisor=supervisor, client_env={"PATH": CLIENT_PATH}, synced=synced, sync_each_time=True)
    one = SshEnvironment(common, ssh_options(sshd), str(tmp_path))
    yield one
    await one.close()


async def test_what_changes_here_is_there_before_the_next_command(environment: SshEnvironment, skills: Path) -> None:
    assert (await run(environment, "there/greet/scripts/hello.sh")).output == "hello from the skill\n"
    (skills / "greet" / "SKILL.md").write_text("# Greet warmly\n")
    (skills / "greet" / "scripts" / "hello.sh").unlink()
    (skills / "new ü").mkdir()
    (skills / "new ü" / "SKILL.md").write_text("new\n")
    result = await run(environment, "cat there/greet/SKILL.md there/new*/SKILL.md; find there -type f | wc -l")
    assert result.output == "# Greet warmly\nnew\n2\n"


async def test_what_changed_there_comes_home_and_the_newer_one_wins(environment: SshEnvironment, skills: Path) -> None:
    await run(environment, "true")
    await run(environment, "echo better > there/greet/SKILL.md; echo note > there/greet/note; mkdir there/foreign")
    await run(environment, "echo x > there/foreign/file; touch -d 2001-01-01 there/greet/scripts/hello.sh")
    script = skills / "greet" / "scripts" / "hello.sh"
    before = script.read_text()
    await environment.close()
    assert (skills / "greet" / "SKILL.md").read_text() == "better\n"
    assert (skills / "greet" / "note").read_text() == "note\n"
    assert script.read_text() == before
    assert sorted(os.listdir(skills)) == ["greet"]


async def test_a_container_is_shown_skills_and_cannot_change_them(
    supervisor: ProcessSupervisor, docker_engine: Engine, skills: Path
) -> None:
    environment = container(supervisor, docker_engine, read_only=(f"{skills}:/root/.hermes/skills",), disk_mb=1024)
    result = await run(environment, "~/.hermes/skills/greet/scripts/hello.sh; touch ~/.hermes/skills/x")
    assert result.output.startswith("hello from the skill\n")
    assert "Read-only" in result.output
    await environment.close()
