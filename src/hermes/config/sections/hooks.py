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
