"""A confined session at a level, in folders outside the machine's temporary one."""

import getpass
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hermes.confinement.plan import PlanRequest
from hermes.confinement.policy import Limits
from hermes.tools.environments.local import Border, LocalEnvironment, LocalOptions
from hermes.tools.supervisor.confine.probe import Wish, enforcement
from hermes.tools.supervisor.supervisor import ProcessSupervisor

LIMITS = Limits(processes=400, memory_mb=300, open_files=200, temp_mb=20)


@pytest.fixture
def root() -> Iterator[Path]:
    base = Path("/var/lib") if os.geteuid() == 0 else Path(os.path.expanduser("~" + getpass.getuser()))
    folder = base / f"hermes-confine-test-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("work", "home/.ssh", "home/.hermes", "elsewhere"):
        (folder / name).mkdir(parents=True)
    (folder / "home" / ".ssh" / "id").write_text("a key\n")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["full", "files"])
def level(request: pytest.FixtureRequest) -> Wish:
    wanted: Wish = request.param
    return wanted


@pytest.fixture
async def confined(supervisor: ProcessSupervisor, root: Path, level: Wish) -> AsyncIterator[LocalEnvironment]:
    found = await enforcement(supervisor, level)
    if found.level != level:
        pytest.skip(f"level {level} is not to be had here: {found.why}")
    env = {"PATH": f"{os.environ['PATH']}:/usr/bin:/bin", "HOME": str(root / "home"), "LANG": "C.UTF-8"}
    request = PlanRequest(
        workspace=str(root / "work"),
        home=str(root / "home"),
        hermes_home=str(root / "home" / ".hermes"),
        environ=env,
        limits=LIMITS,
        caches=str(root / "home" / ".hermes" / "cache"),
    )
    border = Border(mode="on", level=level, request=request)
    one = LocalEnvironment(supervisor, str(root / "work"), LocalOptions(env=env, border=border, source_bashrc=False))
    yield one
    await one.close()
