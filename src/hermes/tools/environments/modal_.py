"""Commands in a Modal sandbox, by Modal's own SDK (the extra `modal`)."""

import contextlib
import importlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.errors import MissingPart, ToolError
from hermes.seams import Child, Decision
from hermes.tools.environments.remote import Common, RemoteEnvironment
from hermes.tools.environments.text_exec import ChildOfService

DEFAULT_IMAGE = "nikolaik/python-nodejs:python3.11-nodejs20"
_APP = "hermes-runtime"
_SNAPSHOTS = "modal_snapshots.json"
_STDERR_KEPT = 65536
_LONGEST_S = 24 * 3600  # the service's limit for a sandbox; `lifetime_s` of idleness ends it earlier


class ModalOptions(Struct, frozen=True, kw_only=True):
    """The sandbox to be. An image `im-…` is one of Modal's own ids, such as a snapshot."""

    image: str = DEFAULT_IMAGE
    task: str = "default"
    persistent: bool = True
    folder: Path  # on the host: where the ids of snapshots are kept
    cpu: float = 1.0
    memory_mb: int = 5120
    lifetime_s: int = 300


class ModalEnvironment(RemoteEnvironment):
    """Bash in a sandbox of the service; its files are kept as a snapshot. When it is gone the call fails."""

    kind = "modal"

    def __init__(self, common: Common, options: ModalOptions, cwd: str = "/root") -> None:
        super().__init__(common, cwd)
        self._options = options
        self._sdk: Any = None
        self._sandbox: Any = None

    async def _create(self) -> None:
        try:
            self._sdk = await self._common.run_blocking(importlib.import_module, "modal")
        except ImportError as error:
            raise MissingPart("the modal backend needs its SDK: pip install 'hermes-runtime[modal]'") from error
        kept = await self._common.run_blocking(self._snapshot_id) if self._options.persistent else ""
        try:
            app = await self._sdk.App.lookup.aio(_APP, create_if_missing=True)
            self._sandbox = await self._sdk.Sandbox.create.aio(
                app=app,
                image=self._image(kept or self._options.image),
                cpu=self._options.cpu or None,
                memory=self._options.memory_mb or None,
                timeout=_LONGEST_S,
                idle_timeout=self._options.lifetime_s,
                tags={"hermes_task_id": self._options.task},
            )
        except self._sdk.exception.Error as error:
            raise ToolError(f"the modal sandbox could not be made: {error}") from error

    def _image(self, name: str) -> Any:
        if name.startswith("im-"):
            return self._sdk.Image.from_id(name)
        return self._sdk.Image.from_registry(name)

    async def _open(
        self, decision: Decision, argv: tuple[str, ...], stdin: bytes | None, *, merge_stderr: bool
    ) -> Child:
        if not decision.allowed:
            raise ToolError(decision.reason or "this was not allowed")
        if self._sandbox is None:
            raise ToolError("the modal sandbox is gone")
        line = ("bash", "-c", 'exec "$@" 2>&1', "bash", *argv) if merge_stderr else argv
        try:
            process = await self._sandbox.exec.aio(*line, text=False)
            if stdin:
                process.stdin.write(stdin)
            process.stdin.write_eof()
            await process.stdin.drain.aio()
        except self._sdk.exception.Error as error:
            raise self._lost(str(error)) from error
        return ModalChild(process, self._sdk.exception.Error)

    def _client_failed(self, code: int, errors: str) -> bool:
        return False  # the SDK raises

    def _lost(self, errors: str) -> ToolError:
        self._sandbox = None
        return super()._lost(errors)

    async def _release(self) -> None:
        if self._sandbox is None:
            return
        try:
            if self._options.persistent:
                image = await self._sandbox.snapshot_filesystem.aio()
                await self._common.run_blocking(self._keep_snapshot, str(image.object_id))
            await self._sandbox.terminate.aio()
            await self._sandbox.detach.aio()
        except self._sdk.exception.Error as error:
            raise ToolError(f"the modal sandbox of task {self._options.task!r} could not be kept: {error}") from error

    # -- snapshots, blocking ---------------------------------------------------------------------------------------

    def _snapshot_id(self) -> str:
        return str(self._known().get(self._key, ""))

    def _keep_snapshot(self, image_id: str) -> None:
        file = self._options.folder / _SNAPSHOTS
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps({**self._known(), self._key: image_id}, indent=1))
        new.replace(file)

    def _known(self) -> dict[str, Any]:
        with contextlib.suppress(FileNotFoundError):
            known: dict[str, Any] = json.loads((self._options.folder / _SNAPSHOTS).read_text())
            return known
        return {}

    @property
    def _key(self) -> str:
        # A changed image is another line of snapshots: files of one are not put under the other.
        base = "" if self._options.image == DEFAULT_IMAGE else f"@{self._options.image}"
        return f"direct:{self._options.task}{base}"


class ModalChild(ChildOfService):
    """A `Child` over one process of a sandbox."""

    def __init__(self, process: Any, trouble: type[Exception]) -> None:
        self._process = process
        self._trouble = trouble
        self._chunks: AsyncIterator[bytes] | None = None

    async def output(self) -> AsyncIterator[bytes]:
        """Chunks as they come. Asked for again after a timeout, it goes on where it was."""
        if self._chunks is None:
            self._chunks = aiter(self._process.stdout)
        try:
            async for chunk in self._chunks:
                yield chunk
            self._errors = bytes(await self._process.stderr.read.aio())[-_STDERR_KEPT:]
            self._code = int(await self._process.wait.aio())
        except self._trouble as error:
            # The environment sees that the last line is missing, and says that the sandbox went away.
            self._errors, self._code = str(error).encode(), 255
