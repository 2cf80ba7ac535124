"""See which tools a session gets and why, and switch toolsets on and off."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu
from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from hermes.surfaces.cli.toolview import ToolReport

as_json = click.option("--json", "as_json", is_flag=True, help="As JSON.")
platform_option = click.option("--platform", metavar="NAME", help="For one way in only: cli, cron, telegram, …")


@click.group("tools", cls=Menu, invoke_without_command=True)
@click.option("--summary", is_flag=True, help="Only count them.")
@click.pass_context
def tools(ctx: click.Context, summary: bool) -> None:
    """See which tools a session gets and why, and switch toolsets on and off."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False, summary=summary)


@tools.command("list")
@click.option("--summary", is_flag=True, help="Only count them.")
@as_json
@click.pass_obj
def list_(cli: Cli, as_json: bool, summary: bool = False) -> None:
    """List every tool: offered, unavailable or switched off, with the reason."""
    report = _report(cli)
    if as_json:
        cli.out.json(report.as_data())
        return
    counts = {state: sum(tool.state == state for tool in report.tools) for state in ("offered", "unavailable", "off")}
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
    for key, value in found.items():
        if key != "parameters" and value not in ("", []):
            cli.out.line(f"{key:<12} {', '.join(value) if isinstance(value, list) else value}")
    for field, schema in (found.get("parameters") or {}).items():
        kind = schema.get("type", "any")
        cli.out.line(f"  {field:<20} {kind:<10} {schema.get('description', '')}")


@tools.command("enable")
@click.argument("names", nargs=-1, required=True)
@platform_option
@click.pass_obj
def enable(cli: Cli, names: tuple[str, ...], platform: str | None) -> None:
    """Give sessions these toolsets from now on."""
    report = _report(cli)
    for name in names:
        _check_toolset(report, name)
        off = [one for one in _listed(cli, "agent.disabled_toolsets") if one != name]
        if len(off) < len(_listed(cli, "agent.disabled_toolsets")):
            _save(cli, "agent.disabled_toolsets", off)
        key = _key(platform)
        on = _listed(cli, key, platform)
        if not set(report.resolve([name])) <= set(report.resolve(on)):
            _save(cli, key, [*on, name])
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
    for name in names:
        _check_toolset(report, name)
        key = _key(platform)
        on = _listed(cli, key, platform)
        if name in on:
            _save(cli, key, [one for one in on if one != name])
        elif platform:
            raise UserError(
                f"{name!r} is not in the list of {platform}; it comes with {', '.join(on)}. "
                "Without --platform it is switched off everywhere."
            )
        else:
            off = _listed(cli, "agent.disabled_toolsets")
            _save(cli, "agent.disabled_toolsets", list(dict.fromkeys([*off, name])))
        cli.out.line(f"{name} is off.")
    cli.out.flush()
    cli.out.note("New sessions are without it; sessions that exist keep their tools.")


@tools.command("trust")
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".")
@click.option("--remove", is_flag=True, help="Trust it no longer.")
@click.pass_obj
def trust(cli: Cli, folder: Path, remove: bool) -> None:
    """Let the tool files in FOLDER/.hermes/tools run in sessions that work there."""
    real = str(folder.resolve())
    others = [one for one in _listed(cli, "tools.trusted_projects") if str(Path(one).expanduser().resolve()) != real]
    _save(cli, "tools.trusted_projects", others if remove else [*others, real])
    cli.out.line(f"{real} is {'no longer trusted' if remove else 'trusted: its own tools are code that runs as you'}.")


def _report(cli: Cli) -> "ToolReport":
    from hermes.surfaces.cli.toolview import report  # noqa: PLC0415 - `hermes tools --help` needs none of it

    return report(cli.home, cli.settings().mapping, Path.cwd())


def _check_toolset(report: "ToolReport", name: str) -> None:
    if report.is_toolset(name):
        return
    owner = next((tool.toolset for tool in report.tools if tool.name == name), None)
    if owner is not None:
        raise UserError(f"{name!r} is a tool; toolsets are switched, and its toolset is {owner!r}.")
    near = get_close_matches(name, report.toolset_names(), n=1)
    raise UserError(f"There is no toolset {name!r}." + (f" Did you mean {near[0]!r}?" if near else ""))


def _key(platform: str | None) -> str:
    return f"platform_toolsets.{platform}" if platform else "toolsets"


def _listed(cli: Cli, key: str, platform: str | None = None) -> list[str]:
    settings = cli.settings()
    if platform:
        by_platform: Any = settings.get("platform_toolsets")
        return list(by_platform.get(platform, (f"hermes-{platform}",)))
    value: Sequence[str] = settings.get(key)
    return list(value)


def _save(cli: Cli, key: str, names: Sequence[str]) -> None:
    import msgspec  # noqa: PLC0415 - only changes need it

    from hermes.config.write import set_key  # noqa: PLC0415

    set_key(cli.home, key, msgspec.json.encode(list(names)).decode())


COMMAND = tools
