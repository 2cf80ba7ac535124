"""Ask a question; the model works on it with tools."""

from typing import Any

import click

from hermes.surfaces.cli.chat import run_chat
from hermes.surfaces.cli.chat_options import chat_options
from hermes.surfaces.cli.context import Cli

EPILOG = """\b
Examples:
  hermes chat -q "Why does the build fail?"
  git diff | hermes chat -q "Review this."
  hermes chat --continue -q "And now the tests."
  hermes chat -q "…" --json | jq -r 'select(.type=="result").final_response'
  hermes chat -q "Which files changed, and why?" --output-schema changes.json
The exit code says how it ended: hermes help exit-codes"""


@click.command("chat", epilog=EPILOG, context_settings={"allow_extra_args": True})
@click.option("-q", "--query", metavar="TEXT", help="The question. What is piped in is added to it.")
@click.option("--image", type=click.Path(), metavar="FILE", help="A picture to go with it.")
@click.option("-v", "--verbose", is_flag=True, help="Tell more on stderr: reasoning, calls, what was done.")
@click.option("-Q", "--quiet", is_flag=True, help="Tell nothing on stderr but errors.")
@click.option("--json", "as_json", is_flag=True, help="Events as JSON lines on stdout, the result last.")
@click.option(
    "--output-schema",
    metavar="FILE",
    help="Print only JSON that fits the JSON Schema in this file, checked; exit code 9 when the answer does not.",
)
@click.option("--source", metavar="TAG", help="Where this came from, for `hermes sessions list --source`.")
@chat_options
@click.pass_context
def chat(ctx: click.Context, /, **options: Any) -> int:
    """Ask a question; the model works on it with tools, and every step is kept.

    The answer alone goes to stdout.
    """
    if ctx.args:
        raise click.UsageError(f'A question needs -q: hermes chat -q "{" ".join(ctx.args)}"')
    cli: Cli = ctx.obj
    return run_chat(cli, options)


COMMAND = chat
