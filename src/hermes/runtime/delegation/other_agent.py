"""A child that is the program of another agent: who may have it started, and the model that it is to the child.

The words that start it are the model's, and it runs as the person, outside the border. So the gate decides on it as on
any command that is to leave the border: a person's yes or a rule that sends it outside, and where nobody is, no.
"""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.errors import ToolError
from hermes.runtime.context import CallContext
from hermes.runtime.delegation.child_task import ChildTask
from hermes.runtime.options import ModelOptions
from hermes.seams import Action, Decision

if TYPE_CHECKING:
    from hermes.config.settings import Settings

WHY = "start another agent's program as you, outside the border, and hand it the task in words"
ELSEWHERE = (
    "acp_command starts a program on this machine, and this session's commands run elsewhere ({kind}); leave it out, "
    "and a child of your own kind does the task"
)


async def allowed_programs(tasks: Iterable[ChildTask], call: CallContext) -> dict[tuple[str, ...], Decision]:
    """The gate's yes for each program that the tasks name; `ToolError` when there is one that may not be started."""
    found: dict[tuple[str, ...], Decision] = {}
    for program in dict.fromkeys(task.program for task in tasks if task.program):
        if call.environment.kind != "local":
            raise ToolError(ELSEWHERE.format(kind=call.environment.kind))
        decision = await call.gate.decide(_action(program, call), call.scope)
        if not decision.allowed:
            raise ToolError(f"{program[0]!r} was not started, and none of the tasks: {decision.reason}")
        found[program] = decision
    return found


def other_model(program: tuple[str, ...], decision: Decision, settings: "Settings") -> ModelOptions:
    """The program as the model of a child; no other one stands in for it."""
    from hermes.models.external.agent_model import ExternalAgent  # for who asks for one
    from hermes.models.external.agent_process import AgentProgram
    from hermes.models.providers.resolve import ModelQuery, resolve

    found = resolve(settings, ModelQuery(provider="acp", name=Path(program[0]).name, argv=program))
    model = ExternalAgent(found.endpoint, AgentProgram(program, str(Path.cwd()), decision))
    return ModelOptions(model=model, fallback_model=())


def _action(program: tuple[str, ...], call: CallContext) -> Action:
    return Action(
        kind="command",
        tool="delegate_task",
        text=shlex.join(program),
        cwd=call.environment.cwd,
        route=call.route,
        session_id=call.session_id,
        task_id=call.task_id,
        details={"sandbox": "run_outside", "why": WHY},
    )
