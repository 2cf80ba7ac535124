"""Commands in an Apptainer or Singularity instance: an image file, an overlay folder when files are kept."""

import asyncio
import hashlib
import json
import re
import secrets
import shutil
from pathlib import Path

from msgspec import Struct

from hermes.errors import MissingPart, ToolError
from hermes.seams import Child, Decision, SpawnSpec
from hermes.tools.environments.remote import Common, RemoteEnvironment

DEFAULT_IMAGE = "docker://nikolaik/python-nodejs:python3.11-nodejs20"
_CHECK_LIMIT_S = 10.0
_BUILD_LIMIT_S = 600.0
_CLIENT_TROUBLE = re.compile(r"^(FATAL|ERROR):", re.MULTILINE)
_INSTANCE_S = 1e6  # an instance ends with the session, long before this
_SNAPSHOTS = "singularity_snapshots.json"


class SingularityOptions(Struct, frozen=True, kw_only=True):
    """The instance to be."""

    image: str = DEFAULT_IMAGE
    task: str = "default"
    persistent: bool = True
    folder: Path  # on the host: built images and overlays
    binds: tuple[str, ...] = ()  # `host:container`, read-only


class SingularityEnvironment(RemoteEnvironment):
    """Bash in an instance. When the instance is gone the call fails; the next one starts a new instance."""

    kind = "singularity"

    def __init__(self, common: Common, options: SingularityOptions, cwd: str = "/root") -> None:
        super().__init__(common, cwd)
        self._options = options
        self._program = ""
        self._name = ""
        self._instance: Child | None = None
        self._building = asyncio.Lock()  # guards the image file: two sessions build it once

    async def _create(self) -> None:
        path = self._common.client_env.get("PATH")
        self._program = next(
            (found for name in ("apptainer", "singularity") if (found := shutil.which(name, path=path))), ""
        )
        if not self._program:
            raise MissingPart("the singularity backend needs the program apptainer or singularity; install one of them")
        if (await self.client((self._program, "--version"), limit_s=_CHECK_LIMIT_S)).code != 0:
            raise ToolError(f"{Path(self._program).name} --version does not work here")
        image = await self._image_file()
        overlay = ("--overlay", str(await self._common.run_blocking(self._overlay))) if self._options.persistent else ()
        self._name = f"hermes-{secrets.token_hex(4)}"
        line = (
            *(self._program, "instance", "start", "--containall", "--no-home"),
            *(overlay or ("--writable-tmpfs",)),
            *(word for bind in self._options.binds for word in ("--bind", f"{bind}:ro")),
            *(image, self._name),
        )
        await self._hold(line)

    async def _hold(self, line: tuple[str, ...]) -> None:
        """Start the instance, which stays behind when the program has ended, and own what stays."""
        await self._let_go()
        spec = SpawnSpec(
            argv=line,
            cwd="/",
            env=self._common.client_env,
            owner=self.id,
            merge_stderr=False,
            linger_s=_INSTANCE_S,
            confinement=self._client,
        )
        self._instance = await self._common.supervisor.spawn(Decision.own("container instance"), spec)
        code = await self._instance.exited()
        if code != 0:
            errors = self._instance.stderr_tail().decode("utf-8", "replace").strip()
            self._name = ""
            await self._let_go()
            raise ToolError(f"the instance could not be started from {self._options.image!r}: {errors}")

    async def _let_go(self) -> None:
        if self._instance is not None:
            await self._instance.stop(1.0)
            self._instance.release()
            self._instance = None

    async def _image_file(self) -> str:
        """The image as a file: a `docker://` one is built once and kept."""
        image = self._options.image
        if "://" not in image:
            return image
        file = self._options.folder / "singularity" / f"{hashlib.sha256(image.encode()).hexdigest()[:16]}.sif"
        async with self._building:
            if await self._common.run_blocking(file.exists):
                return str(file)
            await self._common.run_blocking(file.parent.mkdir, parents=True, exist_ok=True)
            new = file.with_suffix(f".{secrets.token_hex(4)}.new")
            answer = await self.client((self._program, "build", str(new), image), limit_s=_BUILD_LIMIT_S)
            if answer.code != 0:
                raise ToolError(f"the image {image!r} could not be built: {answer.errors.strip()}")
            await self._common.run_blocking(new.replace, file)
        return str(file)

    def _overlay(self) -> Path:
        """The folder of this task's changes; recorded, so that it can be found and removed."""
        folder = self._options.folder / "singularity" / "overlays" / self._options.task
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        record = self._options.folder / _SNAPSHOTS
        known = json.loads(record.read_text()) if record.exists() else {}
        if known.get(self._options.task) != str(folder):
            record.write_text(json.dumps({**known, self._options.task: str(folder)}, indent=1))
        return folder

    def _reach(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return (self._program, "exec", f"instance://{self._name}", *argv)

    def _client_failed(self, code: int, errors: str) -> bool:
        return code == 255 or (code != 0 and bool(_CLIENT_TROUBLE.search(errors)))

    async def _release(self) -> None:
        if self._name:
            await self.client((self._program, "instance", "stop", self._name), limit_s=_CHECK_LIMIT_S * 3)
        await self._let_go()
