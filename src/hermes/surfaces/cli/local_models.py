"""Models that are on this machine already: GGUF files where people keep them, and servers that answer."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from msgspec import Struct

from hermes.errors import UserError
from hermes.host.model_choice import ModelChoice, box_choice
from hermes.host.model_discovery import can_be_had, served_models, usual_places
from hermes.models.box.files import BUNDLED, HONEST, MAGIC, models_folder
from hermes.models.providers.catalogue import ProviderEntry, providers
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.model_questions import SetupOutput

MAX_FILES = 30
MAX_LOOKED_AT = 5_000  # folders and files, in all: a home can be a whole disk
MAX_DEPTH = 6
PLACES = (
    *("models", "Models", "Downloads", ".lmstudio/models", ".cache/lm-studio/models", ".cache/llama.cpp"),
    *(".cache/huggingface/hub", ".local/share/nomic.ai/GPT4All"),
)


class OfferedModel(Struct, frozen=True):
    """One that can be chosen: what is shown, and what would be written down."""

    label: str
    choice: ModelChoice
    entry: ProviderEntry


def local_models(cli: Cli) -> list[OfferedModel]:
    """The box first, then servers that answer, then files."""
    box = providers()["local"]
    found = (
        [OfferedModel(f"SmolLM2 in the box, {HONEST}", ModelChoice(provider="local"), box)] if can_be_had(cli) else []
    )
    for server in asyncio.run(served_models(usual_places(cli.settings()))):
        entry = providers()[server.provider]
        for name in server.models:
            choice = ModelChoice(provider=entry.id, base_url=server.base_url, model=name)
            found.append(OfferedModel(f"{name}  {entry.name} at {server.base_url}", choice, entry))
    for file in gguf_files(cli.root, cli.environ):
        label = f"{file}  ({file.stat().st_size / 1e6:,.0f} MB)"
        found.append(OfferedModel(label, ModelChoice(provider="local", model=str(file)), box))
    return found


def gguf_files(root: Path, environ: Mapping[str, str]) -> list[Path]:
    """GGUF files here, in the home of Hermes and where other programs keep them; what is never a model is left out."""
    home = Path(environ.get("HOME") or Path.home())
    looked_at = [0]
    found: dict[Path, None] = {}
    for folder in (Path.cwd(), models_folder(root), *(home / place for place in PLACES)):
        depth = 1 if folder in (Path.cwd(), home / "Downloads") else MAX_DEPTH
        for file in _below(folder, depth, looked_at):
            if len(found) < MAX_FILES and _is_model(file):
                found.setdefault(file.resolve() if file.parent == file.resolve().parent else file)
    return sorted(found)


def _below(folder: Path, depth: int, looked_at: list[int]) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:  # not there, or not ours to read
        return
    for entry in entries:
        looked_at[0] += 1
        if looked_at[0] > MAX_LOOKED_AT:
            return
        if entry.name.lower().endswith(".gguf"):
            yield Path(entry.path)
        elif depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path), depth - 1, looked_at)


def _is_model(file: Path) -> bool:
    """Whether it begins as a GGUF file; of one in several parts, the first counts; projectors of pictures do not."""
    name = file.name.lower()
    if file.name == BUNDLED or "mmproj" in name or ("-of-" in name and "-00001-of-" not in name):
        return False
    try:
        with file.open("rb") as opened:
            return opened.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def ask_local(cli: Cli) -> tuple[ModelChoice, ProviderEntry]:
    """Ask which of them, or for the path of another file; a file is loaded once before it is taken."""
    offered = local_models(cli)
    taken = _drawn(offered) if _can_draw(cli) else _numbered(cli, offered)
    if isinstance(taken, str):
        taken = OfferedModel("", ModelChoice(provider="local", model=taken), providers()["local"])
    if taken.entry.kind == "box":
        return asyncio.run(box_choice(cli, SetupOutput(cli.out), taken.choice.model)), taken.entry
    return taken.choice, taken.entry


def _drawn(offered: Sequence[OfferedModel]) -> OfferedModel | str:
    from hermes.surfaces.cli.choose import choose

    taken = choose("Which model, or the path of a GGUF file", [(one.label, one) for one in offered])
    if not taken:
        raise UserError("nothing was chosen, and nothing was changed")
    return taken


def _numbered(cli: Cli, offered: Sequence[OfferedModel]) -> OfferedModel | str:
    for number, one in enumerate(offered, 1):
        cli.out.quote(f"{number:3}  {one.label}")
    while True:
        answer: str = click.prompt("By number, or the path of a GGUF file", default="1" if offered else None, err=True)
        if not answer.strip().isdigit():
            return answer.strip()
        if 1 <= int(answer) <= len(offered):
            return offered[int(answer) - 1]
        cli.out.note(f"There is no number {answer.strip()}.")


def _can_draw(cli: Cli) -> bool:
    return cli.out.is_terminal and cli.environ.get("TERM", "") not in ("", "dumb", "unknown")
