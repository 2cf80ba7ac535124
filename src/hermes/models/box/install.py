"""Install the box on demand: the launcher's own installer, run as a child, its words passed on as they come."""

import os
from collections.abc import Callable

from hermes.errors import MissingPart
from hermes.seams import Decision, SpawnSpec, Supervisor

EXTRA = "local"


async def install_box(supervisor: Supervisor, launcher: str, tell: Callable[[str], None], *, is_terminal: bool) -> None:
    """Fetch the engine and the weights. Stopped at any point, the next call begins where that is safe."""
    environ = {name: value for name, value in os.environ.items() if name != "HERMES_CHILD_OF"}
    if is_terminal:
        environ["HERMES_PROGRESS"] = "terminal"
    child = await supervisor.spawn(
        Decision.own("install the model in the box"),
        SpawnSpec(argv=(launcher, "--install-extra", EXTRA), cwd="/", env=environ, owner="box-install"),
    )
    try:
        async for chunk in child.output():
            tell(chunk.decode("utf-8", "replace"))
        code = await child.wait()
    except BaseException:
        await child.stop()
        raise
    finally:
        child.release()
    if code != 0:
        raise MissingPart(
            "the model in the box could not be installed (see above); try again, "
            "or connect a model of your own: hermes model"
        )
