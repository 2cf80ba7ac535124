"""`hermes-agent`: the low-level runner. One question, all parameters on the command line, no subcommands."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from hermes import __version__
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.start import run_command

F = TypeVar("F", bound=Callable[..., Any])

MAX_TURNS = 10
LOG_PREFIX_CHARS = 20


def both(name: str, **options: Any) -> Callable[[F], F]:
    """An option under its underscored and its dashed spelling."""
    spellings = dict.fromkeys((f"--{name}", f"--{name.replace('_', '-')}"))
    return click.option(*spellings, name, **options)


@click.command("hermes-agent", context_settings={"help_option_names": ["-h", "--help"]})
@both("query", metavar="TEXT", help="The question. What is piped in is added to it.")
@both("model", metavar="NAME", help="Model; without it, that of the settings.")
@both("api_key", metavar="KEY", help="Key for the address.")
@both("base_url", metavar="URL", help="Address of the API.")
@both("max_turns", type=click.IntRange(min=1), default=MAX_TURNS, show_default=True, help="Model calls of the turn.")
@both("enabled_toolsets", metavar="A,B", help="Toolsets the model gets.")
@both("disabled_toolsets", metavar="A,B", help="Toolsets it does not get.")
@both("list_tools", is_flag=True, help="List the tools and leave.")
@both("save_trajectories", is_flag=True, help="Add the conversation to trajectory_samples.jsonl.")
@both("save_sample", is_flag=True, help="Write the conversation to a file of its own.")
@both("verbose", is_flag=True, help="Tell more on stderr.")
@both("log_prefix_chars", type=int, default=LOG_PREFIX_CHARS, show_default=True, help="Characters shown of arguments.")
@click.version_option(__version__, "-V", "--version", message="hermes-agent %(version)s")
@click.pass_obj
def runner(cli: Cli, /, **options: Any) -> int:
    """Run one question with everything given on the command line."""
    from hermes.surfaces.cli.chat.run_options import Wish, named_toolsets  # help does without it

    wish = Wish(
        question=options["query"],
        model=options["model"] or "",
        api_key=options["api_key"] or "",
        base_url=options["base_url"] or "",
        max_turns=options["max_turns"],
        toolsets=named_toolsets("--enabled_toolsets", options["enabled_toolsets"]),
        disabled_toolsets=named_toolsets("--disabled_toolsets", options["disabled_toolsets"]),
        verbose=options["verbose"],
        preview_chars=options["log_prefix_chars"],
        trajectories=options["save_trajectories"],
        sample=options["save_sample"],
    )
    if options["list_tools"]:
        return _list_tools(cli, wish.flags)
    from hermes.surfaces.cli.chat.headless import answer  # help does without the kernel

    return answer(cli, wish)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    return run_command(runner, list(sys.argv[1:] if argv is None else argv), "hermes-agent")


def _list_tools(cli: Cli, flags: Mapping[str, Any]) -> int:
    """Every tool, and whether a run with these toolsets would get it."""
    from hermes.host.tool_report import report

    found = report(cli.home, cli.settings(flags).mapping, Path.cwd())
    rows = [[tool.name, tool.toolset, tool.state, tool.why] for tool in found.tools]
    cli.out.table(["TOOL", "TOOLSET", "STATE", "WHY"], rows, flexible=3)
    return 0


if __name__ == "__main__":
    sys.exit(main())
