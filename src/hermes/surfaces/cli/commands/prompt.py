"""See what the model is told before anybody says a word."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes import AIAgent
    from hermes.runtime.prompt import PromptReport
    from hermes.scope import TurnScope
    from hermes.seams import ModelRequest
    from hermes.types import ModelEvent


@click.group("prompt", cls=Menu, invoke_without_command=True)
@click.pass_context
def prompt(ctx: click.Context) -> None:
    """See what the model is told before anybody says a word; without a command, all of it."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@prompt.command("show")
@click.option("-m", "--model", metavar="NAME", help="For this model.")
@click.option("--provider", metavar="NAME", help="Who serves it.")
@click.option("-t", "--toolsets", metavar="A,B", help="With these toolsets.")
@click.option("--source", metavar="TAG", help="For this way in: cli, cron, acp …")
@click.option("--ignore-rules", is_flag=True, help="Without AGENTS.md, SOUL.md, memory and skills.")
@click.option("--pass-session-id", is_flag=True, help="With the id of the session.")
@click.option("--text", "as_text", is_flag=True, help="Only the prompt, as it is sent.")
@as_json
@click.pass_obj
def show(cli: Cli, /, as_text: bool, as_json: bool, **options: Any) -> None:
    """Show the system prompt of a session begun here and now: each part, its tokens, and where it comes from.

    Tokens are estimates, at four characters each. Nothing is sent to anybody, and no session is made.
    """
    report = asyncio.run(_report(cli, options))
    if as_json:
        cli.out.json(_facts(report))
        return
    if as_text:
        cli.out.write("\n\n".join(part.text for part in report.parts) + "\n")
        return
    for event in report.told:
        cli.out.note(f"· {event.message}")
    for part in report.parts:
        cli.out.line(cli.out.style(f"── {part.name} · {part.tier} · {part.tokens} tokens · {part.origin}", "bold"))
        cli.out.line(part.text)
        cli.out.line("")
    cli.out.line(cli.out.style(f"── tools · {sum(tool.tokens for tool in report.tools)} tokens", "bold"))
    cli.out.line(", ".join(f"{tool.name} {tool.tokens}" for tool in report.tools) or "none")
    cli.out.line("")
    cli.out.line(f"{report.tokens} tokens in all, {report.profile} profile (prompt.profile)")


async def _report(cli: Cli, options: dict[str, Any]) -> "PromptReport":
    from hermes import AIAgent  # help does without the kernel
    from hermes.config.load import bound_settings
    from hermes.host.agent_settings import agent_keywords
    from hermes.models.providers.resolve import NO_MODEL
    from hermes.surfaces.cli.chat.run_options import wish_from

    wish = wish_from({name: value for name, value in options.items() if value not in (None, False)})
    settings = cli.settings(wish.flags)
    keywords = agent_keywords(wish.agent, settings)
    with bound_settings(settings):
        try:
            return await _described(AIAgent(**keywords))
        except UserError as error:
            if str(error) != NO_MODEL:
                raise
        cli.out.note("· no model is configured: this is what any would be told whose window is not known")
        return await _described(AIAgent(**{**keywords, "model": NoModelYet()}))


async def _described(agent: "AIAgent") -> "PromptReport":
    try:
        return await agent.adescribe_prompt()
    finally:
        await agent.aclose()


class NoModelYet:
    """Stands where a model would, to describe what it would be told; there is none to ask."""

    name, provider, base_url = "", "", ""

    async def stream(self, request: "ModelRequest", scope: "TurnScope") -> "AsyncIterator[ModelEvent]":
        from hermes.models.providers.resolve import NO_MODEL

        raise UserError(NO_MODEL)
        yield  # the contract is an iterator


def _facts(report: "PromptReport") -> dict[str, Any]:
    parts = [
        {"name": one.name, "tier": one.tier, "tokens": one.tokens, "origin": one.origin, "text": one.text}
        for one in report.parts
    ]
    return {
        "profile": report.profile,
        "tokens": report.tokens,
        "parts": parts,
        "tools": [{"name": one.name, "tokens": one.tokens} for one in report.tools],
        "notices": [one.message for one in report.told],
    }


COMMAND = prompt
