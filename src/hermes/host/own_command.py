"""A command of the person's own, typed as `!command`: outside the border, through the gate, shown as it runs."""

import posixpath
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.config.load import bound_settings
from hermes.errors import ToolError, UserError
from hermes.scope import TurnScope
from hermes.seams import Action
from hermes.tools.environments.run_child import CommandInterrupted, output_watch
from hermes.tools.terminal.output_text import plain
from hermes.tools.terminal.sandbox_escape import RunsOutside

if TYPE_CHECKING:
    from hermes.host.live_session import LiveSession

MOST_CHARS = 20_000  # of the output, told to the model
TAIL_BYTES = 8_192


async def run_own_command(
    session: "LiveSession", command: str, scope: TurnScope, tell: Callable[[str], None]
) -> tuple[str, int]:
    """Run `command` where the session stands; its output and exit code, which also join the next message.

    `tell` is handed the end of the output a few times a second. What is on the hardline does not run for anybody.
    """
    with bound_settings(session.settings):
        services = (await session.agent._assembled()).services
    environment = services.environment
    action = Action(
        kind="command",
        tool="terminal",
        text=command,
        cwd=environment.cwd,
        backend=environment.kind,
        route="person",
        session_id=session.session_id,
    )
    decision = await services.gate.decide(action, scope)
    if not decision.allowed:
        raise UserError(f"that never runs here: {decision.reason}")
    token = output_watch.set(_Watch(tell))
    output, code = "[stopped]", 130
    try:
        async with scope:  # which takes its own cancellation for an end
            try:
                if isinstance(environment, RunsOutside):
                    result = await environment.execute_outside(
                        command, decision, scope, timeout_s=None, cwd=posixpath.normpath(environment.cwd)
                    )
                else:
                    result = await environment.execute(command, decision, scope)
                output, code = plain(result.output), result.exit_code
            except CommandInterrupted as stopped:
                output = f"{plain(stopped.output)}\n[stopped]"
                raise
    except ToolError as error:
        raise UserError(str(error)) from error
    finally:
        output_watch.reset(token)
    output = session.redactor.redact(output.strip("\n"))
    session.own_output.append(_for_model(command, output, code))
    return output, code


class _Watch:
    """Keeps the end of what is printed, and tells it at most ten times a second."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._kept = b""
        self._at = 0.0

    def __call__(self, chunk: bytes) -> None:
        self._kept = (self._kept + chunk)[-TAIL_BYTES:]
        if time.monotonic() - self._at > 0.1:
            self._at = time.monotonic()
            self._tell(plain(self._kept.decode("utf-8", "replace")))


def _for_model(command: str, output: str, code: int) -> str:
    shown = output if len(output) <= MOST_CHARS else f"… (cut)\n{output[-MOST_CHARS:]}"
    return f"I ran this myself (exit code {code}):\n$ {command}\n{shown}"
