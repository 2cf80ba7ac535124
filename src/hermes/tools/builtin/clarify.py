"""clarify: ask the person a question and wait for the answer, where somebody can answer."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from hermes.errors import ToolError
from hermes.seams import AsksUser, ToolContext
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.registry import registry, tool_result
from hermes.tools.traits import Traits

MAX_CHOICES = 4
NOBODY = "nobody can be asked here; decide for yourself what fits the task best, and say what you assumed"


class Clarify(Struct, frozen=True, forbid_unknown_fields=True):
    """Ask the user one question and wait for the answer. Only where the task cannot go on without it."""

    question: Annotated[str, Meta(min_length=1, description="One question, with what is needed to answer it.")]
    choices: Annotated[
        list[str],
        Meta(max_length=MAX_CHOICES, description="Up to four answers to choose from; leave out for an open question."),
    ] = []


async def clarify(args: Mapping[str, object], *, ctx: ToolContext, **_: object) -> str:
    wanted = parse_args(args, Clarify)
    question = wanted.question.strip()
    if not question:
        raise ToolError("question is empty; say what you want to know")
    choices = [choice.strip() for choice in wanted.choices if choice.strip()] or None
    if not isinstance(ctx, AsksUser):
        raise ToolError(NOBODY)
    answer = await ctx.ask_user(question, choices)
    return tool_result(question=question, choices_offered=choices, user_response=answer.strip())


registry.register(
    name="clarify",
    toolset="clarify",
    schema=schema_of("clarify", Clarify),
    handler=clarify,
    is_async=True,
    emoji="❓",
    traits=Traits(interactive=True, agent_loop=True, timeout_s=None),
)
