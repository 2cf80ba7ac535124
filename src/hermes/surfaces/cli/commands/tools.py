"""See which tools a session gets and why, and switch toolsets on and off."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from hermes.host.tool_report import ToolReport

_LONG = ("parameters", "required", "direct_tools", "resolved_tools")  # shown in another form, or once already
platform_option = click.option("--platform", metavar="NAME", help="For one way in only: cli, cron, acp, …")

EMPTY_BY_DEFAULT = ("agent.disabled_toolsets", "tools.trusted_projects")


@click.group("tools", cls=Menu, invoke_without_command=True)
@click.option("--summary", is_flag=True, help="Only count them.")
@as_json
@click.pass_context
def tools(ctx: click.Context, summary: bool, as_json: bool) -> None:
    """See which tools a session gets and why, and switch toolsets on and off."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=as_json, summary=summary)
    elif summary or as_json:
        raise click.UsageError(f"Options go behind the subcommand: hermes tools {ctx.invoked_subcommand} …", ctx)


@tools.command("list")
@click.option("--summary", is_flag=True, help="Only count them.")
@as_json
@platform_option
@click.pass_obj
def list_(cli: Cli, as_json: bool, summary: bool = False, platform: str | None = None) -> None:
    """List every tool: offered, unavailable or switched off, with the reason."""
    report = _report(cli, platform)
    counts = report.counts()
    if as_json:
        data = report.as_data()
        cli.out.json({"counts": counts, "problems": data["problems"]} if summary else data)
        return
    if not summary:
        cli.out.table(
            ["TOOL", "TOOLSET", "FROM", "STATE", "WHY"],
            [[tool.name, tool.toolset, tool.origin, tool.state, tool.why] for tool in report.tools],
            flexible=4,
        )
        cli.out.line()
    cli.out.line(f"{counts['offered']} offered, {counts['unavailable']} unavailable, {counts['off']} switched off.")
    cli.out.flush()
    for problem in report.problems:
        cli.out.note(f"warning: {problem}")


@tools.command("info")
@click.argument("name")
@as_json
@click.pass_obj
def info(cli: Cli, name: str, as_json: bool) -> None:
    """Show one tool, or one toolset."""
    report = _report(cli)
    found = report.describe(name)
    if found is None:
        near = get_close_matches(name, report.known_names(), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else " See: hermes tools list"
        for problem in report.problems:  # its file may be the broken one
            cli.out.note(f"warning: {problem}")
        raise UserError(f"There is no tool or toolset {name!r}.{hint}")
    if as_json:
        cli.out.json(found)
        return
    facts = {key: value for key, value in found.items() if key not in _LONG and value not in ("", [])}
    width = max(12, *map(len, facts))
    for key, value in facts.items():
        _show(cli, f"{key:<{width}} ", ", ".join(value) if isinstance(value, list) else str(value))
    for field, schema in found.get("parameters", {}).items():
        kinds = schema.get("type", "any") if isinstance(schema, dict) else str(schema)
        kind = "|".join(kinds) if isinstance(kinds, list) else kinds
        words = schema.get("description", "") if isinstance(schema, dict) else ""
        needed = "(required) " if field in found.get("required", ()) else ""
        _show(cli, f"  {field:<20} {kind:<10} ", f"{needed}{words}")


@tools.command("enable")
@click.argument("names", nargs=-1, required=True)
@platform_option
@click.pass_obj
def enable(cli: Cli, names: tuple[str, ...], platform: str | None) -> None:
    """Give sessions these toolsets from now on."""
    report = _report(cli)
    report.check_toolsets(names)
    for name in names:
        off = _listed(cli, "agent.disabled_toolsets")
        if name in off:
            off.remove(name)
            _save(cli, "agent.disabled_toolsets", off)
        mine, on = report.resolve([name]), _toolsets(cli, platform)
        if not mine <= report.resolve(on):
            _save(cli, _key(cli, platform), [*on, name])
        blocking = [one for one in off if mine & report.resolve([one])]
        if blocking:
            raise UserError(f"{name!r} stays off, wholly or in part: run hermes tools enable {' '.join(blocking)}")
        cli.out.line(f"{name} is on.")
    cli.out.flush()
    cli.out.note("New sessions get it; sessions that exist keep their tools.")


@tools.command("disable")
@click.argument("names", nargs=-1, required=True)
@platform_option
@click.pass_obj
def disable(cli: Cli, names: tuple[str, ...], platform: str | None) -> None:
    """Keep these toolsets from sessions from now on."""
    report = _report(cli)
    report.check_toolsets(names)
    for name in names:
        on = _toolsets(cli, platform)
        others = [one for one in on if one != name]
        comes_with_others = report.resolve([name]) & report.resolve(others)
        if platform and comes_with_others:
            raise UserError(
                f"{name!r} comes with {', '.join(others)} on {platform}. "
                "Without --platform it is switched off everywhere."
            )
        if name in on:
            _save(cli, _key(cli, platform), others)
        if comes_with_others:
            off = _listed(cli, "agent.disabled_toolsets")
            _save(cli, "agent.disabled_toolsets", list(dict.fromkeys([*off, name])))
        cli.out.line(f"{name} is off.")
    cli.out.flush()
    cli.out.note("New sessions are without it; in those that exist it no longer runs, once they are opened again.")


@tools.command("trust")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option("--remove", is_flag=True, help="Trust it no longer.")
@click.pass_obj
def trust(cli: Cli, folder: Path, remove: bool) -> None:
    """Let the tool files in FOLDER/.hermes/tools run in sessions that work there."""
    from hermes.tools.registration.definitions import project_of  # `hermes tools --help` needs none of it

    if not remove and not folder.is_dir():
        raise UserError(f"There is no folder {str(folder)!r}.")
    trusted = {one: str(Path(one).expanduser().resolve()) for one in _listed(cli, "tools.trusted_projects")}
    real = str(folder.resolve())
    if real not in trusted.values():
        real = str(project_of(Path(real), cli.home) or real)
    others = [one for one, place in trusted.items() if place != real]
    _save(cli, "tools.trusted_projects", others if remove else [*others, real])
    cli.out.line(f"{real} is {'no longer trusted' if remove else 'trusted: its own tools are code that runs as you'}.")


def _show(cli: Cli, label: str, text: str) -> None:
    """A label and its text, which stays in its own column, and within a terminal's width."""
    room = max(20, cli.out.width - len(label)) if cli.out.is_terminal else 2**31
    lines = [line for part in text.splitlines() for line in wrap(part, room, break_long_words=False) or [""]]
    for line in lines or [""]:
        cli.out.line(f"{label}{line}".rstrip())
        label = " " * len(label)


def _report(cli: Cli, platform: str | None = None) -> "ToolReport":
    from hermes.host.tool_report import report  # `hermes tools --help` needs none of it

    return report(cli.home, cli.settings().mapping, Path.cwd(), platform)


def _key(cli: Cli, platform: str | None) -> str:
    by_platform: Any = cli.settings().get("platform_toolsets")
    if platform or "cli" in by_platform:  # what is said for the command line wins over what is said for all
        return f"platform_toolsets.{platform or 'cli'}"
    return "toolsets"


def _toolsets(cli: Cli, platform: str | None) -> list[str]:
    from hermes.host.tool_report import toolsets_of  # see above

    return toolsets_of(cli.settings().mapping, platform)


def _listed(cli: Cli, key: str) -> list[str]:
    value: Sequence[str] = cli.settings().get(key)
    return list(value)


def _save(cli: Cli, key: str, names: Sequence[str]) -> None:
    import msgspec  # only changes need it

    from hermes.config.write import set_key, unset_key

    if not names and key in EMPTY_BY_DEFAULT:
        unset_key(cli.home, key)
    else:
        set_key(cli.home, key, msgspec.json.encode(list(names)).decode())


COMMAND = tools
