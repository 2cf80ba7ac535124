"""What MCP servers are introduced to: the supervisor and the border of a session, and the one model client."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from hermes.config import paths
from hermes.config.sections import terminal
from hermes.config.settings import Settings
from hermes.confinement.policy import AnyConfinement, ConfinedEnvironment
from hermes.models.auxiliary import AuxiliaryClient, AuxiliaryQuestion
from hermes.redact import Redactor
from hermes.runtime.setup.process import ProcessParts
from hermes.seams import Environment, ToolContext
from hermes.tools.environments.factory import EnvironmentRequest, create_environment
from hermes.tools.mcp.connection import LinkParts
from hermes.tools.mcp.server_requests import SampleAnswer, SampleRequest
from hermes.tools.mcp.stdio_pipe import StdioPlace
from hermes.types import text_of

if TYPE_CHECKING:
    from hermes.runtime.context import Services

TASK = "mcp"
SYSTEM = "You answer for a tool that an agent uses. What it says is a request, and none of the person's own words."


def link_parts(settings: Settings, process: ProcessParts, services: "Services", version: str) -> LinkParts:
    """What connections of a session are made with. Its own border holds what is started, wherever its commands run."""
    return _parts(settings, process, services.environment, services.redactor, version)


def lone_link_parts(settings: Settings, process: ProcessParts, folder: str, version: str) -> LinkParts:
    """The same for a command line without a session."""
    return _parts(settings, process, _local(settings, process, folder), Redactor(), version)


def _parts(
    settings: Settings, process: ProcessParts, environment: Environment, redactor: Redactor, version: str
) -> LinkParts:
    held: list[Environment] = []

    async def confinement() -> AnyConfinement:
        if isinstance(environment, ConfinedEnvironment):
            return await environment.confinement()
        if not held:  # commands run elsewhere, and servers run here
            held.append(_local(settings, process, str(settings.home)))
        local = held[0]
        assert isinstance(local, ConfinedEnvironment)
        return await local.confinement()

    return LinkParts(
        home=settings.home,
        stdio=StdioPlace(
            supervisor=lambda: process.supervisor,
            confinement=confinement,
            environ=settings.environ,
            cwd=lambda: environment.cwd if environment.kind == "local" else str(settings.home),
            owner="mcp",
            stderr_log=paths.logs_dir(settings.home) / "mcp-stderr.log",
            redact=redactor.redact,
        ),
        in_thread=process.pool.run,
        client_version=version,
    )


def _local(settings: Settings, process: ProcessParts, folder: str) -> Environment:
    return create_environment(
        EnvironmentRequest(
            settings=replace(settings.of(terminal.Section), backend="local"),
            supervisor=process.supervisor,
            home=settings.home,
            environ=settings.environ,
            secrets=settings.secrets,
            approvals=settings.mapping.get("approvals") or {},
            launch_folder=folder,
            task_id=TASK,
            session_id="",
            run_blocking=process.pool.run,
        )
    )


class AuxiliarySampler:
    """Model calls that servers ask for, through the client of side jobs: in the ledger, under the caps."""

    def __init__(self, auxiliary: AuxiliaryClient) -> None:
        self._auxiliary = auxiliary

    def model_for(self, wanted: str) -> str:
        return self._auxiliary.model_name(TASK, wanted)

    async def sample(self, asked: SampleRequest, ctx: ToolContext) -> SampleAnswer:
        question = AuxiliaryQuestion(
            task=TASK,
            system=f"{SYSTEM}\n\n{asked.system}".strip(),
            text=asked.text,
            session_id=ctx.session_id,
            max_tokens=asked.max_tokens,
            model=asked.model,
        )
        response = await self._auxiliary.respond(question, ctx.scope)
        stopped = "maxTokens" if response.finish_reason == "length" else "endTurn"
        text = text_of(response.message.content)
        return SampleAnswer(text, self._auxiliary.model_name(TASK, asked.model), stopped)
