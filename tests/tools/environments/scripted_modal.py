"""A scripted peer for the modal backend: the few calls of Modal's gRPC services that its SDK makes, answered.

A sandbox is a folder of this machine; its commands are run by plain processes with an environment of their own.
"""

import asyncio
import base64
import importlib
import json
import os
import shutil
import socket
import time
from pathlib import Path
from typing import Any

# Parts of the SDK, which is an extra: they are not there for whoever checks types without it.
grpclib: Any = importlib.import_module("grpclib")
grpclib_server: Any = importlib.import_module("grpclib.server")
api_grpc: Any = importlib.import_module("modal_proto.api_grpc")
api_pb2: Any = importlib.import_module("modal_proto.api_pb2")
task_command_router_grpc: Any = importlib.import_module("modal_proto.task_command_router_grpc")
task_command_router_pb2: Any = importlib.import_module("modal_proto.task_command_router_pb2")

_OK = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)


def _unanswered(base: Any) -> dict[str, Any]:
    """Every call of a service, refused: a peer that is asked for more than it knows must not answer by accident."""

    def refuse(name: str) -> Any:
        async def method(self: Any, stream: Any) -> None:
            raise grpclib.GRPCError(grpclib.Status.UNIMPLEMENTED, f"the scripted peer does not know {name}")

        return method

    return {name: refuse(name) for name in base.__abstractmethods__}


class Process:
    """One program of a sandbox."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.written = 0


class ScriptedModal:
    """Serves on loopback between `start` and `close`. `calls` are the names of all calls that came."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[str] = []
        self.sandboxes: dict[str, bool] = {}  # by id: whether it lives
        self.images: list[str] = []
        self._processes: dict[str, Process] = {}
        self._server: Any = None
        self._connections: list[Any] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]

    async def start(self) -> None:
        self._server = grpclib_server.Server([_api(self), _router(self)])
        make = self._server._protocol_factory

        def remembered() -> Any:
            self._connections.append(make())
            return self._connections[-1]

        self._server._protocol_factory = remembered
        await self._server.start("127.0.0.1", self.port)

    async def close(self) -> None:
        for each in self._processes.values():
            if each.process.returncode is None:
                each.process.kill()
            await each.process.wait()
        self._server.close()
        for connection in self._connections:
            if hasattr(connection, "connection"):
                connection.connection.close()
        await self._server.wait_closed()
        await asyncio.sleep(0)  # a transport closes its socket at the loop's next step

    # -- the service -----------------------------------------------------------------------------------------------

    def create(self, image: str) -> str:
        ident = f"sb-{len(self.sandboxes) + 1}"
        self.sandboxes[ident] = True
        home = self.folder / ident
        if image.startswith("im-snapshot"):
            shutil.copytree(self.folder / image, home, symlinks=True)
        else:
            home.mkdir(parents=True)
        return ident

    def snapshot(self, ident: str) -> str:
        image = f"im-snapshot-{len(self.images) + 1}"
        self.images.append(image)
        shutil.copytree(self.folder / ident, self.folder / image, symlinks=True)
        return image

    def jwt(self) -> str:
        claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + 3600}).encode()).decode().rstrip("=")
        return f"header.{claims}.signature"

    # -- the worker ------------------------------------------------------------------------------------------------

    async def exec(self, request: Any) -> None:
        ident = request.task_id.removeprefix("ta-")
        if not self.sandboxes.get(ident):
            raise grpclib.GRPCError(grpclib.Status.NOT_FOUND, "task is gone")
        home = self.folder / ident
        process = await asyncio.create_subprocess_exec(
            *request.command_args,
            cwd=home,
            env={"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=1 << 20,
        )
        self._processes[request.exec_id] = Process(process)

    def process(self, exec_id: str) -> Process:
        return self._processes[exec_id]

    def kill(self, ident: str) -> None:
        """The sandbox dies, and all its programs with it."""
        self.sandboxes[ident] = False
        for each in self._processes.values():
            if each.process.returncode is None:
                os.killpg(each.process.pid, 9)


def _api(peer: ScriptedModal) -> Any:
    answers: dict[str, Any] = {
        "ClientHello": lambda _: api_pb2.ClientHelloResponse(image_builder_version="2024.10"),
        "AppGetOrCreate": lambda _: api_pb2.AppGetOrCreateResponse(app_id="ap-1"),
        "EnvironmentGetOrCreate": lambda _: api_pb2.EnvironmentGetOrCreateResponse(
            environment_id="en-1",
            metadata=api_pb2.EnvironmentMetadata(settings=api_pb2.EnvironmentSettings(image_builder_version="2024.10")),
        ),
        "ImageGetOrCreate": lambda _: api_pb2.ImageGetOrCreateResponse(image_id="im-base", result=_OK),
        "ImageFromId": lambda request: api_pb2.ImageFromIdResponse(image_id=request.image_id),
        "AuthTokenGet": lambda _: api_pb2.AuthTokenGetResponse(token=peer.jwt()),
        "SandboxCreateV2": lambda request: _created(peer, request.definition.image_id),
        "SandboxGetCommandRouterAccess": lambda _: api_pb2.SandboxGetCommandRouterAccessResponse(
            url=f"http://127.0.0.1:{peer.port}", jwt=peer.jwt()
        ),
        "SandboxTerminateV2": lambda request: _terminated(peer, request.sandbox_id),
    }

    def answering(name: str, answer: Any) -> Any:
        async def method(self: Any, stream: Any) -> None:
            peer.calls.append(name)
            await stream.send_message(answer(await stream.recv_message()))

        return method

    methods = {
        **_unanswered(api_grpc.ModalClientBase),
        **{name: answering(name, each) for name, each in answers.items()},
    }
    return type("ScriptedApi", (api_grpc.ModalClientBase,), methods)()


def _created(peer: ScriptedModal, image: str) -> Any:
    ident = peer.create(image)
    return api_pb2.SandboxCreateV2Response(sandbox_id=ident, task_id=f"ta-{ident}", sandbox_token="token")


def _terminated(peer: ScriptedModal, ident: str) -> Any:
    peer.kill(ident)
    return api_pb2.SandboxTerminateResponse()


def _router(peer: ScriptedModal) -> Any:
    async def start(self: Any, stream: Any) -> None:
        await peer.exec(await stream.recv_message())
        await stream.send_message(task_command_router_pb2.TaskExecStartResponse())

    async def write(self: Any, stream: Any) -> None:
        request = await stream.recv_message()
        process = peer.process(request.exec_id)
        stdin = process.process.stdin
        assert stdin is not None
        stdin.write(request.data[process.written - request.offset :])
        process.written = max(process.written, request.offset + len(request.data))
        if request.eof:
            stdin.close()
        await stream.send_message(task_command_router_pb2.TaskExecStdinWriteResponse())

    async def read(self: Any, stream: Any) -> None:
        request = await stream.recv_message()
        process = peer.process(request.exec_id).process
        is_stdout = request.file_descriptor == task_command_router_pb2.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT
        pipe = process.stdout if is_stdout else process.stderr
        assert pipe is not None
        while data := await pipe.read(65536):
            await stream.send_message(task_command_router_pb2.TaskExecStdioReadResponse(data=data))

    async def snapshot(self: Any, stream: Any) -> None:
        request = await stream.recv_message()
        image = peer.snapshot(request.task_id.removeprefix("ta-"))
        await stream.send_message(task_command_router_pb2.TaskSnapshotFilesystemResponse(image_id=image))

    async def wait(self: Any, stream: Any) -> None:
        request = await stream.recv_message()
        code = await peer.process(request.exec_id).process.wait()
        await stream.send_message(task_command_router_pb2.TaskExecWaitResponse(code=code))

    base = task_command_router_grpc.TaskCommandRouterBase
    own = {"TaskExecStart": start, "TaskExecStdinWrite": write, "TaskExecStdioRead": read, "TaskExecWait": wait}
    own["TaskSnapshotFilesystem"] = snapshot
    return type("ScriptedRouter", (base,), {**_unanswered(base), **own})()
