"""Look after plugins: code of your own or of others that adds tools, hooks, commands and providers."""

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

import click

from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit

if TYPE_CHECKING:
    from hermes.extensions.plugins.manifest import PluginManifest
    from hermes.host.plugin_care import PluginCare

Result = TypeVar("Result")
yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.group("plugins", cls=Menu, invoke_without_command=True)
@click.pass_context
def plugins(ctx: click.Context) -> None:
    """Look after plugins. Without a command, list them.

    A plugin is a folder with a plugin.yaml and an __init__.py in HERMES_HOME/plugins. Nothing of it runs before you
    switch it on; then it runs inside Hermes, with all that Hermes itself may do.

    \b
    Examples:
      hermes plugins new my-plugin
      hermes plugins install https://example.org/team/plugin.git
      hermes plugins enable my-plugin
      hermes plugins info my-plugin
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@plugins.command("list")
@click.option("--enabled", "only_enabled", is_flag=True, help="Only those that are switched on.")
@click.option("--user", "only_user", is_flag=True, help="Only those of the home.")
@click.option("--no-bundled", is_flag=True, help="Leave out what comes with Hermes.")
@click.option("--plain", is_flag=True, help="Names alone, one a line.")
@as_json
@click.pass_obj
def list_(
    cli: Cli,
    only_enabled: bool = False,
    only_user: bool = False,
    no_bundled: bool = False,
    plain: bool = False,
    as_json: bool = False,
) -> int:
    """List the plugins, whether they are on, and what is wrong with one that does not load."""
    found = [
        one
        for one in _care(cli).states()
        if not (only_enabled and one.status != "enabled")
        and not (only_user and one.manifest.source != "user")
        and not (no_bundled and one.manifest.source == "bundled")
    ]
    if as_json:
        cli.out.json([one.as_json() for one in found])
        return Exit.ANSWERED
    if plain:
        for one in found:
            cli.out.line(one.manifest.key)
        return Exit.ANSWERED
    if not found:
        kind = " of that kind" if only_enabled or only_user or no_bundled else ""
        cli.out.note(f"There are no plugins{kind} in {cli.home / 'plugins'}. Make one: hermes plugins new NAME")
        return Exit.ANSWERED
    rows = [
        [
            one.manifest.key,
            "failed" if one.error and one.status == "enabled" else one.status,
            one.manifest.version,
            one.manifest.source,
            one.error or one.manifest.description,
        ]
        for one in found
    ]
    cli.out.table(["PLUGIN", "STATUS", "VERSION", "FROM", "WHAT FOR"], rows, flexible=4)
    silent = [
        one.manifest.key for one in found if one.manifest.needs is None and one.status == "enabled" and not one.error
    ]
    if silent:
        cli.out.note(f"Declare nothing, so they get all that plugins can get: {', '.join(silent)}")
    return Exit.ANSWERED


@plugins.command("info")
@click.argument("name")
@as_json
@click.pass_obj
def info(cli: Cli, name: str, as_json: bool) -> int:
    """Tell what a plugin is, what it declares to need, what it offers, and why it does not load."""
    care = _care(cli)
    state = care.state(name)
    if as_json:
        cli.out.json({**state.as_json(), "path": state.manifest.path, "details": state.details})
        return Exit.ANSWERED
    one = state.manifest
    cli.out.line(f"{one.key} {one.version}".rstrip() + f": {state.status}, {one.kind}, from {one.path or one.module}")
    for line in (one.description, f"by {one.author}" if one.author else ""):
        if line:
            cli.out.line(line)
    cli.out.line("Declares:")
    for line in one.declared():
        cli.out.line(f"  {line}")
    for variable in one.requires_env:
        has = "is set" if care.settings.lookup(variable.name) else "is not set"
        cli.out.line(
            f"  wants {variable.name}, which {has}{f': {variable.description}' if variable.description else ''}"
        )
    if state.offers is not None:
        cli.out.line("Offers:")
        for line in state.offers.lines() or ["nothing that it registers"]:
            cli.out.line(f"  {line}")
    elif state.status != "enabled":
        cli.out.told(f"What it offers is known when it is on: hermes plugins enable {one.key}")
    for line in (*one.warnings, *(state.offers.warnings if state.offers is not None else ())):
        cli.out.line(f"warning: {line}")
    if state.error:
        cli.out.line(f"error: {state.error}")
        for line in state.details.splitlines():
            cli.out.line(f"  {line}")
    return Exit.ANSWERED


@plugins.command("enable")
@click.argument("name")
@click.option("--allow-tool-override", is_flag=True, help="Let it replace tools that are there already.")
@yes
@click.pass_obj
def enable(cli: Cli, name: str, allow_tool_override: bool, yes: bool) -> int:
    """Switch a plugin on, after showing what it declares to need; asks for the variables it wants."""
    care = _care(cli)
    return _enable(cli, care, care.find(name), allow_tool_override=allow_tool_override, yes=yes)


@plugins.command("disable")
@click.argument("name")
@click.pass_obj
def disable(cli: Cli, name: str) -> None:
    """Switch a plugin off; it stays where it is."""
    care = _care(cli)
    manifest = care.find(name)
    care.disable(manifest)
    cli.out.line(f"{manifest.key} is off.")


@plugins.command("install")
@click.argument("source", metavar="URL|OWNER/REPO|FOLDER")
@click.option("--enable", "is_enabled", is_flag=True, help="Switch it on, too.")
@click.option("--force", is_flag=True, help="Replace one of that name.")
@yes
@click.pass_obj
def install(cli: Cli, source: str, is_enabled: bool, force: bool, yes: bool) -> int:
    """Take a plugin from a git address or a folder. Nothing of it runs before it is switched on."""
    from hermes.extensions.plugins.plugin_install import place

    fetched = _run(cli, lambda care: care.fetch(source))
    one = fetched.manifest
    at = f" at {fetched.origin.commit[:12]}" if fetched.origin.commit else ""
    cli.out.line(
        f"{one.name} {one.version}".rstrip() + f", {len(fetched.files)} files, from {fetched.origin.address}{at}"
    )
    if one.description:
        cli.out.line(one.description)
    _show_declared(cli, one)
    placed = place(fetched, cli.home, force=force)
    cli.out.line(f"{placed.key} is installed.")
    care = _care(cli)
    if is_enabled or (cli.out.is_terminal and not yes and click.confirm("Switch it on now?", default=False, err=True)):
        return _enable(cli, care, placed, allow_tool_override=False, yes=True)
    if not care.is_enabled(placed):
        cli.out.note(f"Switch it on: hermes plugins enable {placed.key}")
    return Exit.ANSWERED


@plugins.command("update")
@click.argument("name")
@click.option("--check", "is_check", is_flag=True, help="Only tell what would change.")
@yes
@click.pass_obj
def update(cli: Cli, name: str, is_check: bool, yes: bool) -> int:
    """Take what is at the plugin's source by now. What it declares anew has to be allowed anew."""
    from hermes.extensions.plugins.plugin_install import changed_files, origin_of, place

    care = _care(cli)
    old = care.find(name)
    fetched = _run(cli, lambda made: made.fetch(origin_of(old).address))
    if fetched.manifest.name != old.name:
        raise UserError(
            f"the plugin at {fetched.origin.address} is called {fetched.manifest.name!r} by now; nothing was changed"
        )
    lines = changed_files(fetched, old)
    if not lines:
        cli.out.line(f"{old.key} is as it is at its source.")
        return Exit.ANSWERED
    cli.out.line(f"{old.key} {old.version} -> {fetched.manifest.version}")
    for line in lines[:40]:
        cli.out.line(f"  {line}")
    if len(lines) > 40:
        cli.out.line(f"  and {len(lines) - 40} more")
    is_other = fetched.manifest.declaration != old.declaration
    if is_other:
        cli.out.line("It declares something else than before.")
        _show_declared(cli, fetched.manifest)
    if is_check:
        return Exit.ANSWERED
    if not yes and cli.out.is_terminal and not click.confirm("Take it?", default=True, err=True):
        cli.out.note("Nothing was changed.")
        return Exit.FAILED
    placed = place(fetched, cli.home, force=True)
    cli.out.line(f"{placed.key} is updated.")
    if is_other and care.is_enabled(placed):
        if cli.out.is_terminal and not yes and click.confirm("Allow what it declares now?", default=False, err=True):
            care.plugins.consents.give(placed)
        else:
            cli.out.note(f"It does not run until you allow that: hermes plugins enable {placed.key}")
    return Exit.ANSWERED


@plugins.command("remove")
@click.argument("name")
@yes
@click.pass_obj
def remove(cli: Cli, name: str, yes: bool) -> int:
    """Delete a plugin of the home, and switch it off."""
    care = _care(cli)
    manifest = care.find(name)
    if not yes:
        if not cli.out.is_terminal:
            raise UserError(f"there is no terminal to ask in; to delete {manifest.path} say --yes")
        click.confirm(f"Delete {manifest.path}?", abort=True, err=True)
    care.remove(manifest)
    cli.out.line(f"{manifest.key} is gone.")
    return Exit.ANSWERED


def _pytest_words() -> str:
    """How pytest runs with this very Hermes, which is seldom on the path of the first `pytest` there is."""
    return f"{shlex.quote(sys.executable)} -m pytest -p hermes.testing.pytest_plugin"


@plugins.command("new")
@click.argument("name")
@click.option("--enable", "is_enabled", is_flag=True, help="Switch it on, too.")
@click.pass_obj
def new(cli: Cli, name: str, is_enabled: bool) -> int:
    """Make a plugin that works: a tool, a hook, a slash command, and a test that runs it."""
    from hermes.extensions.plugins.plugin_template import new_plugin

    folder = new_plugin(name, cli.home)
    cli.out.line(str(folder))
    cli.out.note(f"Its test: {_pytest_words()} {shlex.quote(str(folder))}")
    if find_spec("pytest") is None:
        cli.out.note("  pytest is not there yet; install it with: hermes --install-extra test")
    care = _care(cli)
    if is_enabled:
        return _enable(cli, care, care.find(name), allow_tool_override=False, yes=True)
    cli.out.note(f"Switch it on: hermes plugins enable {name}")
    return Exit.ANSWERED


plugins.add_command(remove, "uninstall")
plugins.add_command(remove, "rm")


def _enable(cli: Cli, care: "PluginCare", manifest: "PluginManifest", *, allow_tool_override: bool, yes: bool) -> int:
    _show_declared(cli, manifest)
    if not yes and cli.out.is_terminal and not click.confirm(f"Let {manifest.key} run?", default=True, err=True):
        cli.out.note("Nothing was changed.")
        return Exit.FAILED
    care.enable(manifest, allow_tool_override=allow_tool_override)
    _ask_variables(cli, care, manifest)
    state = _care(cli).state(manifest.key)
    if state.error:
        cli.out.error(f"{manifest.key} is on, and does not load: {state.error}")
        return Exit.FAILED
    cli.out.line(f"{manifest.key} is on; sessions that begin now have it.")
    for line in state.offers.lines() if state.offers is not None else ():
        cli.out.line(f"  {line}")
    return Exit.ANSWERED


def _ask_variables(cli: Cli, care: "PluginCare", manifest: "PluginManifest") -> None:
    """Ask for what it wants and is not set; without a terminal, say it."""
    from hermes.config import paths
    from hermes.config.dotenv import set_env

    for one in care.missing_variables(manifest):
        about = ", ".join(filter(None, (one.description, one.url)))
        if not cli.out.is_terminal:
            cli.out.note(f"It wants {one.name}{f' ({about})' if about else ''}: hermes setup --env {one.name}=…")
            continue
        text = f"{one.name}{f': {about}' if about else ''} (Enter leaves it out)"
        value = click.prompt(text, default="", show_default=False, hide_input=one.secret, err=True).strip()
        if value:
            set_env(paths.env_file(cli.home), one.name, value)
            cli.out.line(f"{one.name} in .env")


def _show_declared(cli: Cli, manifest: "PluginManifest") -> None:
    for line in manifest.declared():
        cli.out.line(f"  {line}")


def _care(cli: Cli) -> "PluginCare":
    from hermes.host.plugin_care import PluginCare  # `hermes --help` loads none of this

    return PluginCare(cli.settings())


def _run(cli: Cli, work: "Callable[[PluginCare], Awaitable[Result]]") -> Result:
    """Do something that may start git."""
    from hermes.host.plugin_care import PluginCare
    from hermes.runtime.setup.process import ProcessParts

    async def main() -> Result:
        parts = ProcessParts()
        try:
            return await work(PluginCare(cli.settings(), parts.supervisor))
        finally:
            await parts.close()

    return asyncio.run(main())


COMMAND = plugins
