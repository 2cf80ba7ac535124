"""Commands in a Daytona sandbox, by Daytona's own SDK (the extra `daytona`)."""

import importlib
from typing import Any

from msgspec import Struct

from hermes.errors import ConfigError, MissingPart, ToolError
from hermes.seams import Child, Decision
from hermes.tools.environments.remote import Common, RemoteEnvironment
from hermes.tools.environments.text_exec import FOLDER, TextChild, TextOutput

DEFAULT_IMAGE = "nikolaik/python-nodejs:python3.11-nodejs20"
_LOST = 255
_COMMAND_LIMIT_S = 3600  # the service's own; ours is the caller's and ends the command earlier
_START_LIMIT_S = 300.0
_UNUSABLE = frozenset(["destroyed", "destroying", "error", "build_failed"])


class DaytonaOptions(Struct, frozen=True, kw_only=True):
    """The sandbox to be."""

    image: str = DEFAULT_IMAGE
    task: str = "default"
    persistent: bool = True
    api_key: str
    api_url: str = ""
    target: str = ""
    cpu: int = 1
    memory_gb: int = 5
    disk_gb: int = 10
    idle_minutes: int = 5  # the service stops a sandbox that nobody uses; this is its lease


class DaytonaEnvironment(RemoteEnvironment):
    """Bash in a sandbox of the service, found again by its name. When it is gone the call fails."""

    kind = "daytona"

    def __init__(self, common: Common, options: DaytonaOptions, cwd: str = "~") -> None:
        if not options.api_key:
            raise ConfigError("the daytona backend needs DAYTONA_API_KEY")
        super().__init__(common, cwd)
        self._options = options
        self._sdk: Any = None
        self._service: Any = None
        self._sandbox: Any = None

    async def _create(self) -> None:
        try:
            self._sdk = await self._common.run_blocking(importlib.import_module, "daytona")
        except ImportError as error:
            raise MissingPart("the daytona backend needs its SDK: pip install 'hermes-runtime[daytona]'") from error
        if self._service is None:
            settings: dict[str, Any] = {"api_key": self._options.api_key, "use_deprecated_polling": True}
            settings |= {"api_url": self._options.api_url} if self._options.api_url else {}
            settings |= {"target": self._options.target} if self._options.target else {}
            self._service = self._sdk.AsyncDaytona(self._sdk.DaytonaConfig(**settings))
        try:
            self._sandbox = await self._found() or await self._made()
        except self._sdk.DaytonaError as error:
            raise ToolError(f"the daytona sandbox could not be made: {error}") from error

    async def _found(self) -> Any:
        """This task's sandbox from an earlier session, started, if it was made from the same image."""
        try:
            sandbox = await self._service.get(self._name)
        except self._sdk.DaytonaNotFoundError:
            return None
        state = getattr(sandbox.state, "value", sandbox.state)
        if state in _UNUSABLE or (sandbox.labels or {}).get("hermes_image") != self._options.image:
            await sandbox.delete()
            return None
        if state != "started":
            await sandbox.start(timeout=_START_LIMIT_S)
        return sandbox

    async def _made(self) -> Any:
        options = self._options
        wanted = self._sdk.CreateSandboxFromImageParams(
            name=self._name,
            image=options.image,
            labels={"hermes_task_id": options.task, "hermes_image": options.image},
            resources=self._sdk.Resources(cpu=options.cpu, memory=options.memory_gb, disk=min(options.disk_gb, 10)),
            auto_stop_interval=options.idle_minutes,
            ephemeral=not options.persistent,
        )
        return await self._service.create(wanted, timeout=_START_LIMIT_S)

    @property
    def _name(self) -> str:
        return f"hermes-{self._options.task}"

    async def _open(
        self, decision: Decision, argv: tuple[str, ...], stdin: bytes | None, *, merge_stderr: bool
    ) -> Child:
        if not decision.allowed:
            raise ToolError(decision.reason or "this was not allowed")
        return TextChild(self._run_line, argv, stdin, merge_stderr=merge_stderr, owner=self.id)

    async def _run_line(self, line: str) -> TextOutput:
        if self._sandbox is None:
            raise ToolError("the daytona sandbox is gone")
        try:
            answer = await self._sandbox.process.exec(line, timeout=_COMMAND_LIMIT_S)
        except self._sdk.DaytonaError as error:
            return TextOutput(_LOST, f"daytona: {error}")
        return TextOutput(int(answer.exit_code), str(answer.result or ""))

    def _client_failed(self, code: int, errors: str) -> bool:
        return code == _LOST

    def _lost(self, errors: str) -> ToolError:
        self._sandbox = None
        return super()._lost(errors)

    async def _release(self) -> None:
        if self._service is None:
            return
        try:
            if self._sandbox is not None:
                await self._sandbox.process.exec(f"rm -rf {FOLDER}/{self.id}")
                await (self._sandbox.stop() if self._options.persistent else self._sandbox.delete())
        except self._sdk.DaytonaError as error:
            raise ToolError(f"the daytona sandbox {self._name!r} could not be let go of: {error}") from error
        finally:
            await self._service.close()
