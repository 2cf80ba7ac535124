"""Programs of your own that are told what happens, and may refuse a call or add to a message."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class ShellHook(SectionBase, frozen=True):
    """A program that reads what happened as JSON on its stdin and may answer with JSON on its stdout."""

    matcher: Annotated[str, key("Regular expression for the whole name of the tool; empty is every tool.")] = ""
    command: Annotated[
        str, key("The program and its words; no shell is involved. A bare name is not looked for in the workspace.")
    ] = ""
    timeout: Annotated[float, key("Seconds it may take.", gt=0, le=300)] = 60.0


class Section(SectionBase, frozen=True):
    """Programs of your own that are told what happens; each needs your consent once, see `hooks_auto_accept`."""

    pre_tool_call: Annotated[
        tuple[ShellHook, ...],
        key("Before a call. `{decision: block, reason: …}` refuses it, and so does a program that fails."),
    ] = ()
    post_tool_call: Annotated[tuple[ShellHook, ...], key("After a call, with its result.")] = ()
    pre_llm_call: Annotated[
        tuple[ShellHook, ...], key("Before a turn. `{context: …}` is told to the model beside the message.")
    ] = ()
    post_llm_call: Annotated[tuple[ShellHook, ...], key("After a turn that has an answer.")] = ()
    transform_tool_result: Annotated[
        tuple[ShellHook, ...], key("As `post_tool_call`; what the program says changes nothing.")
    ] = ()
    transform_terminal_output: Annotated[
        tuple[ShellHook, ...], key("After a command; what the program says changes nothing.")
    ] = ()
    transform_llm_output: Annotated[
        tuple[ShellHook, ...], key("At the end of a turn; what the program says changes nothing.")
    ] = ()
    pre_api_request: Annotated[tuple[ShellHook, ...], key("Before each request to a model.")] = ()
    post_api_request: Annotated[tuple[ShellHook, ...], key("After each answer of a model.")] = ()
    api_request_error: Annotated[tuple[ShellHook, ...], key("After each attempt that failed.")] = ()
    on_session_start: Annotated[tuple[ShellHook, ...], key("In the first turn of a session.")] = ()
    on_session_end: Annotated[tuple[ShellHook, ...], key("At the end of every turn.")] = ()
    on_session_finalize: Annotated[tuple[ShellHook, ...], key("When an agent is closed.")] = ()
    on_session_reset: Annotated[tuple[ShellHook, ...], key("When the conversation goes on in a new session.")] = ()
    pre_approval_request: Annotated[tuple[ShellHook, ...], key("Before a person is asked.")] = ()
    post_approval_response: Annotated[tuple[ShellHook, ...], key("When the person has answered.")] = ()
    pre_verify: Annotated[tuple[ShellHook, ...], key("Before a turn ends.", pending=True)] = ()
    subagent_start: Annotated[tuple[ShellHook, ...], key("When a child begins.")] = ()
    subagent_stop: Annotated[tuple[ShellHook, ...], key("When a child has ended.")] = ()
    pre_gateway_dispatch: Annotated[
        tuple[ShellHook, ...], key("Before a message of a chat platform is taken in.", pending=True)
    ] = ()
    kanban_task_claimed: Annotated[tuple[ShellHook, ...], key("After a task is taken.", pending=True)] = ()
    kanban_task_completed: Annotated[tuple[ShellHook, ...], key("After a task is done.", pending=True)] = ()
    kanban_task_blocked: Annotated[tuple[ShellHook, ...], key("After a task is stuck.", pending=True)] = ()
