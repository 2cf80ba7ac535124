"""The environment that the settings ask for, and no other."""

from pathlib import Path
from typing import Literal

import pytest

from hermes.config.sections import terminal
from hermes.errors import MissingPart
from hermes.tools.environments.docker import DockerEnvironment
from hermes.tools.environments.factory import EnvironmentRequest, Overrides, create_environment
from hermes.tools.environments.local import LocalEnvironment
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import run

ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "OPENROUTER_API_KEY": "sk-secret", "JAVA_HOME": "/java"}


def making(
    supervisor: ProcessSupervisor, folder: Path, section: terminal.Section, **changes: object
) -> EnvironmentRequest:
    given = {
        "settings": section,
        "supervisor": supervisor,
        "home": folder / "home",
        "environ": {**ENVIRON, "HOME": str(folder)},
    }
    return EnvironmentRequest(**{**given, "launch_folder": str(folder), "session_id": "s1", **changes})  # type: ignore[arg-type]  # a test's choice


async def test_local_stands_where_the_person_started_and_sees_no_credentials(
    supervisor: ProcessSupervisor, tmp_path: Path
) -> None:
    environment = create_environment(making(supervisor, tmp_path, terminal.Section(sandbox="off")))
    assert isinstance(environment, LocalEnvironment)
    result = await run(environment, "pwd; echo [$OPENROUTER_API_KEY] $JAVA_HOME $HERMES_SESSION_ID")
    assert result.output == f"{tmp_path}\n[] /java s1\n"
    assert environment.cwd == str(tmp_path)
    await environment.close()


async def test_a_task_may_have_its_own_folder_and_pass_variables(supervisor: ProcessSupervisor, tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    section = terminal.Section(sandbox="off", env_passthrough=("OPENROUTER_API_KEY",))
    environment = create_environment(making(supervisor, tmp_path, section, overrides=Overrides(cwd="task")))
    assert (await run(environment, "pwd; echo $OPENROUTER_API_KEY")).output == f"{tmp_path}/task\nsk-secret\n"
    await environment.close()


async def test_of_dotenv_commands_see_what_is_passed_through_by_name(
    supervisor: ProcessSupervisor, tmp_path: Path
) -> None:
    secrets = {"OVEN_TOKEN": "t", "SPARE_TOKEN": "s", "OPENROUTER_API_KEY": "weaker", "PLAIN": "p"}
    section = terminal.Section(sandbox="off", env_passthrough=("OVEN_TOKEN", "OPENROUTER_API_KEY"))
    environment = create_environment(making(supervisor, tmp_path, section, secrets=secrets))
    shown = await run(environment, "echo $OVEN_TOKEN,$SPARE_TOKEN,$OPENROUTER_API_KEY,$PLAIN")
    assert shown.output == "t,,sk-secret,\n"
    await environment.close()


@pytest.mark.parametrize("backend", ["ssh", "docker", "singularity"])
async def test_a_backend_that_cannot_be_had_is_an_error_and_never_the_host(
    supervisor: ProcessSupervisor, tmp_path: Path, backend: Literal["ssh", "docker", "singularity"]
) -> None:
    section = terminal.Section(
        backend=backend, ssh_host="127.0.0.1", ssh_user="u", ssh_port=1, container_persistent=False
    )
    environ = {**ENVIRON, "PATH": "/nonexistent", "HOME": str(tmp_path)}
    environment = create_environment(making(supervisor, tmp_path, section, environ=environ))
    for _ in range(2):
        with pytest.raises(MissingPart, match=r"needs the program|needs docker or podman"):
            await run(environment, f"touch {tmp_path}/canary")
    assert environment.kind == backend
    assert not (tmp_path / "canary").exists()
    await environment.close()


def test_containers_ignore_folders_of_this_machine(supervisor: ProcessSupervisor, tmp_path: Path) -> None:
    for cwd, expected in ((".", "/root"), (str(tmp_path / "here"), "/root"), ("/srv/app", "/srv/app")):
        section = terminal.Section(backend="docker", cwd=cwd)
        environment = create_environment(making(supervisor, tmp_path, section))
        assert isinstance(environment, DockerEnvironment)
        assert environment.cwd == expected


@pytest.mark.parametrize("backend", terminal.BACKENDS)
def test_every_backend_that_can_be_set_can_be_made(
    supervisor: ProcessSupervisor, tmp_path: Path, backend: terminal.Backend
) -> None:
    section = terminal.Section(backend=backend, ssh_host="127.0.0.1", ssh_user="u")
    made = create_environment(making(supervisor, tmp_path, section, secrets={"DAYTONA_API_KEY": "key"}))
    assert made.kind == backend
