"""Add, try, look through and remove MCP servers: programs and addresses that bring tools."""

import asyncio
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit

if TYPE_CHECKING:
    from hermes.config.mcp_server import McpServer
    from hermes.host.mcp_care import McpCare, ServerTrial
    from hermes.tools.mcp.manifest import ServerManifest
    from hermes.tools.mcp.server_config import ServerConfig

SHOWN_CHARS = 100


@click.group("mcp", cls=Menu, invoke_without_command=True)
@click.pass_context
def mcp(ctx: click.Context) -> None:
    """Look after MCP servers, which bring tools of their own. Without a command, list them.

    A server is a program that is started (`--command`) or an address (`--url`). What it offers is kept, so that no
    session waits for it. Its tools are called mcp__SERVER__TOOL; the toolset mcp-SERVER stands for all of them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@mcp.command("list")
@as_json
@click.pass_obj
def list_(cli: Cli, as_json: bool = False) -> None:
    """List the servers, also those that are switched off."""
    care = _care(cli)
    facts = [care.facts(config) for config in care.configs()]
    if as_json:
        cli.out.json(facts)
        return
    if not facts:
        cli.out.note("No MCP server is configured. For example: hermes mcp add files -- npx -y some-server DIR")
        return
    rows = [[one["name"], one["state"], one["tools"], one["tokens"], one["place"]] for one in facts]
    cli.out.table(["SERVER", "STATE", "TOOLS", "TOKENS", "WHERE"], rows, flexible=4)


class SwallowingArgs(click.Command):
    """`--args` takes the rest of the line, whatever it looks like; so does `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--args" in args and "--" not in args[: args.index("--args")]:
            place = args.index("--args")
            args = [*args[:place], "--", *args[place + 1 :]]
        return super().parse_args(ctx, args)


@mcp.command("add", cls=SwallowingArgs)
@click.argument("name", required=False, default="")
@click.argument("words", nargs=-1, metavar="[-- PROGRAM ARGS...]")
@click.option("--command", default="", help="The program to start; its arguments come after --args, or after --.")
@click.option("--url", default="", help="The address of a server that listens.")
@click.option("--sse", is_flag=True, help="It speaks the older protocol, SSE.")
@click.option(
    "--env", multiple=True, metavar="NAME=VALUE", help="A variable for the program. ${NAME} is filled in later."
)
@click.option("--header", multiple=True, metavar="NAME=VALUE", help="A header for the address.")
@click.option("--oauth", is_flag=True, help="One signs in there; see hermes mcp login.")
@click.option("--parallel", is_flag=True, help="Its calls may run side by side.")
@click.option("--include", multiple=True, metavar="TOOL", help="Offer only this tool; A,B and repeats add up.")
@click.option("--exclude", multiple=True, metavar="TOOL", help="Do not offer this tool; A,B and repeats add up.")
@click.option("--from", "source", type=click.Path(), help="A JSON file of another product (mcpServers); - is stdin.")
@click.option("--offline", is_flag=True, help="Do not start it now.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def add(cli: Cli, /, name: str, words: tuple[str, ...], **options: Any) -> int:
    """Add a server: it is started once, and what it offers is shown, with what that costs.

    \b
    hermes mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
    hermes mcp add search --url https://example.org/mcp --oauth
    hermes mcp add --from ~/.config/some-product/mcp.json
    """
    care, code, yes = _care(cli), Exit.ANSWERED, bool(options["yes"])
    for each, entry in _entries(name, words, options).items():
        config = care.new(each, entry)
        if each in care.settings.mapping["mcp_servers"] and not yes:
            raise UserError(f"There is a server {each!r} already; say --yes to replace it, or choose another name.")
        if options["offline"] or not entry.enabled:
            care.save(config, entry)
            cli.out.line(f"{each} is added; it was not started.")
            continue
        if _added(cli, care, config, entry, yes=yes) is not Exit.ANSWERED:
            code = Exit.FAILED
    return code


def _added(cli: Cli, care: "McpCare", config: "ServerConfig", entry: "McpServer", *, yes: bool) -> Exit:
    trial = care.trial(config)
    if trial.manifest is None:
        if entry.auth == "oauth":
            care.save(config, entry)
            cli.out.told(f"{config.name} is added. Sign in with: hermes mcp login {config.name}")
            return Exit.ANSWERED
        cli.out.error(f"{config.name} is not added: {trial.error}")
        return Exit.FAILED
    _show_offer(cli, config, trial.manifest)
    if not yes and cli.out.is_terminal and not entry.tools.include and not entry.tools.exclude:
        entry = _choose(entry, [tool.name for tool in trial.manifest.tools])
    care.save(config, entry)
    care.keep(trial.manifest, pins=True)
    cli.out.line(f"{config.name} is added; sessions that begin now have its tools.")
    _warn_of_places(cli, (entry.command, *entry.args))
    return Exit.ANSWERED


def _choose(entry: "McpServer", names: list[str]) -> "McpServer":
    from hermes.tools.mcp.server_config import with_tools

    said = click.prompt("Offer which of them? all, or names with commas", default="all", err=True).strip()
    wanted = tuple(one.strip() for one in said.split(",") if one.strip())
    if said == "all":
        return entry
    if unknown := [one for one in wanted if one not in names]:
        raise UserError(f"It has no tool {unknown[0]!r}; nothing was added.")
    return with_tools(entry, wanted, ())


@mcp.command("show")
@click.argument("name")
@as_json
@click.pass_obj
def show(cli: Cli, name: str, as_json: bool) -> None:
    """Show every word that a server says about its tools, and what is odd about them."""
    care = _care(cli)
    config = care.config(name)
    about = care.details(config)
    if as_json:
        cli.out.json(about)
        return
    for key in ("name", "transport", "place", "state", "title", "protocol", "instructions"):
        if about.get(key):
            cli.out.line(f"{key}: {about[key]}")
    if about.get("seen_at"):
        cli.out.line(f"seen: {time.strftime('%Y-%m-%d %H:%M', time.localtime(about['seen_at']))}")
    for tool in about.get("tool_list", ()):
        marks = [] if tool["offered_as"] else ["not offered"]
        marks += ["CHANGED since it was accepted"] if tool["changed"] else []
        cli.out.line()
        cost = f"{tool['tokens']} tokens"
        cli.out.line(f"{tool['name']} ({', '.join([tool['offered_as'] or '-', cost, *marks])})")
        for line in (tool["description"] or "no description").splitlines():
            cli.out.line(f"  {line}")
        for field, schema in (tool["parameters"].get("properties") or {}).items():
            words = schema.get("description", "") if isinstance(schema, dict) else ""
            kind = schema.get("type", "any") if isinstance(schema, dict) else "any"
            cli.out.line(f"    {field} ({kind}) {words}".rstrip())
        for finding in tool["findings"]:
            cli.out.line(cli.out.style(f"  ! {finding}", "yellow"))
    for left, why in about.get("left_out", {}).items():
        cli.out.line(f"left out: {left}: {why}")


@mcp.command("test")
@click.argument("name", required=False, default="")
@as_json
@click.pass_obj
def test(cli: Cli, name: str, as_json: bool) -> int:
    """Start or reach a server as a session does, and list its tools. Ends with 1 when that fails."""
    from hermes.host.mcp_care import as_facts

    care = _care(cli)
    configs = [care.config(name)] if name else [config for config in care.configs() if config.entry.enabled]
    if not configs:
        raise UserError("No MCP server is configured, so there is nothing to test.")
    trials = {config.name: care.trial(config) for config in configs}
    for config in configs:
        if (manifest := trials[config.name].manifest) is not None:
            care.keep(manifest, pins=False)
    if as_json:
        cli.out.json([{"name": each, **as_facts(trial)} for each, trial in trials.items()])
    else:
        for each, trial in trials.items():
            _show_trial(cli, each, trial)
    return Exit.ANSWERED if all(trial.manifest is not None for trial in trials.values()) else Exit.FAILED


def _show_trial(cli: Cli, name: str, trial: "ServerTrial") -> None:
    if trial.manifest is None:
        cli.out.error(f"{name}: {trial.error}")
        return
    found = trial.manifest
    cli.out.line(f"{name}: {found.title} answered in {trial.seconds:.1f} s, protocol {found.protocol}")
    for tool in found.tools:
        cli.out.line(f"  {tool.name}: {_first_line(tool.description)}")
    for left, why in found.left_out.items():
        cli.out.line(f"  left out: {left}: {why}")


@mcp.command("tools")
@click.argument("name")
@as_json
@click.pass_obj
def tools(cli: Cli, name: str, as_json: bool) -> None:
    """List what is offered of a server, by the names that the model sees."""
    care = _care(cli)
    config = care.config(name)
    found = care.tools(config)
    if as_json:
        cli.out.json([{"name": one.name, "tool": one.tool, "tokens": one.tokens} for one in found])
        return
    if not found:
        cli.out.note(f"Nothing is known of {name}. Try: hermes mcp test {name}")
        return
    rows = [[one.name, one.tool, one.tokens, _first_line(one.description)] for one in found]
    cli.out.table(["TOOL", "AT THE SERVER", "TOKENS", "WHAT IT DOES"], rows, flexible=3)
    cli.out.note(f"{_tools(len(found))}, about {sum(one.tokens for one in found)} tokens in every request.")


@mcp.command("configure")
@click.argument("name")
@click.option("--include", multiple=True, metavar="TOOL", help="Offer only this tool; A,B and repeats add up.")
@click.option("--exclude", multiple=True, metavar="TOOL", help="Do not offer this tool; A,B and repeats add up.")
@click.option("--all", "everything", is_flag=True, help="Offer all its tools again.")
@click.option("--on/--off", "is_on", default=None, help="Use the server, or do not.")
@click.option("--parallel/--one-by-one", default=None, help="Whether its calls may run side by side.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds for a call.")
@click.option("--accept", is_flag=True, help="Take its tools as they describe themselves now.")
@click.pass_obj
def configure(cli: Cli, /, name: str, include: tuple[str, ...], exclude: tuple[str, ...], **options: Any) -> None:
    """Change which tools of a server are offered, and how it is used."""
    from msgspec.structs import replace

    from hermes.tools.mcp.server_config import with_tools

    care = _care(cli)
    config = care.config(name)
    manifest = care.shelf.read(config)
    known = {tool.name for tool in manifest.tools} if manifest is not None else set[str]()
    include, exclude = _names(include, known), _names(exclude, known)
    unknown = [one for one in (*include, *exclude) if one not in known]
    if manifest is not None and unknown:
        raise UserError(f"{name} has no tool {unknown[0]!r}; see: hermes mcp tools {name}")
    entry = care.written(name)
    if include or exclude or options["everything"]:
        entry = with_tools(entry, include, exclude)
    changes = {
        "enabled": options["is_on"],
        "supports_parallel_tool_calls": options["parallel"],
        "timeout": options["timeout"],
    }
    entry = replace(entry, **{key: value for key, value in changes.items() if value is not None})
    if entry == care.written(name) and not options["accept"]:
        raise UserError("Say what to change; see: hermes mcp configure --help")
    care.save(config, entry)
    if options["accept"] and manifest is not None:
        care.keep(manifest, pins=True)
    cli.out.line(f"{name} is changed; sessions that begin now, and /reload-mcp, use it.")


@mcp.command("login")
@click.argument("name")
@click.option("--no-browser", is_flag=True, help="Only show the address; on a machine without a browser.")
@click.pass_obj
def login(cli: Cli, name: str, no_browser: bool) -> int:
    """Sign in at a server with OAuth. The address is shown, and opened where there is a browser.

    On a machine without one, open the address anywhere, and paste here the address that the browser ends at.
    """
    care = _care(cli)
    config = care.config(name)

    def open_page(url: str) -> None:
        cli.out.line(f"Sign in at: {url}")
        cli.out.note("The browser comes back by itself. If it cannot, paste the address that it ended at here.")
        cli.out.flush()
        if not no_browser:
            import webbrowser

            webbrowser.open(url)

    trial = care.login(config, open_page, _typed_line)
    if trial.manifest is None:
        cli.out.error(f"You are not signed in: {trial.error}")
        return Exit.FAILED
    care.keep(trial.manifest, pins=False)
    cli.out.line(f"You are signed in at {name}, which has {_tools(len(trial.manifest.tools))}.")
    return Exit.ANSWERED


async def _typed_line() -> str:
    """The next line of stdin; for ever nothing when there is none."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def ready() -> None:
        text = sys.stdin.readline()
        if not line.done():
            loop.remove_reader(sys.stdin.fileno())
            line.set_result(text)

    try:
        loop.add_reader(sys.stdin.fileno(), ready)
    except (OSError, ValueError, PermissionError):  # a file, or nothing at all
        text = sys.stdin.readline() if sys.stdin is not None and not sys.stdin.closed else ""
        if text:
            return text
        return await line
    try:
        text = await line
        return text or await asyncio.Future()
    finally:
        loop.remove_reader(sys.stdin.fileno())


@mcp.command("logout")
@click.argument("name")
@click.pass_obj
def logout(cli: Cli, name: str) -> None:
    """Forget a sign-in."""
    care = _care(cli)
    was_in = care.tokens(care.config(name)).remove()
    cli.out.line(f"You are signed out of {name}." if was_in else f"Nobody was signed in at {name}.")


@mcp.command("remove")
@click.argument("name")
@click.pass_obj
def remove(cli: Cli, name: str) -> None:
    """Forget a server: its entry, what it offered, and its sign-in."""
    care = _care(cli)
    care.remove(care.config(name))
    cli.out.line(f"{name} is removed.")


def _entries(name: str, words: tuple[str, ...], options: dict[str, Any]) -> "dict[str, McpServer]":
    """The servers that the command line, or a file of another product, asks for."""
    from hermes.config.mcp_server import McpServer, McpTools
    from hermes.host.mcp_care import blocks_of

    source = options["source"]
    if source is not None:
        text = sys.stdin.read() if source == "-" else _read(source)
        found = blocks_of(text)
        if name and name not in found:
            raise UserError(f"There is no server {name!r} in it; there are: {', '.join(found)}")
        return {name: found[name]} if name else found
    if not name:
        raise UserError("Name the server: hermes mcp add NAME -- PROGRAM ARGS, or hermes mcp add NAME --url ADDRESS")
    if name.startswith("{"):
        return blocks_of(" ".join((name, *words)))
    command, args = options["command"], words
    if not command and not options["url"] and words:
        command, args = words[0], words[1:]
    if not command and not options["url"]:
        raise UserError(f"Say what {name!r} is: --command PROGRAM, or --url ADDRESS; see: hermes mcp add --help")
    entry = McpServer(
        command=command,
        args=args,
        url=options["url"],
        transport="sse" if options["sse"] else "http",
        env=_pairs("--env", options["env"]),
        headers=_pairs("--header", options["header"]),
        auth="oauth" if options["oauth"] else "",
        supports_parallel_tool_calls=options["parallel"],
        tools=McpTools(include=_names(options["include"]), exclude=_names(options["exclude"])),
    )
    return {name: entry}


def _names(given: tuple[str, ...], known: Collection[str] = ()) -> tuple[str, ...]:
    """What was given, lists with commas taken apart; a tool that is called so stays one."""
    return tuple(name.strip() for one in given for name in ([one] if one in known else one.split(",")) if name.strip())


def _pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise UserError(f"{option} takes NAME=VALUE, not {one!r}.")
        found[name.strip()] = value
    return found


def _read(source: str) -> str:
    try:
        return Path(source).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"Cannot read {source!r}: {why}") from error


def _show_offer(cli: Cli, config: "ServerConfig", manifest: "ServerManifest") -> None:
    from hermes.context.injection_scan import scan
    from hermes.tools.mcp.offered_tools import offered_tools

    offered = offered_tools(config, manifest, scan)
    cli.out.line(f"{config.name}: {manifest.title}, {_tools(len(manifest.tools))}")
    for tool in offered:
        cli.out.line(f"  {tool.tool}: {_first_line(tool.description)}")
        for finding in tool.findings:
            cli.out.line(cli.out.style(f"    ! {finding}", "yellow"))
    for left, why in manifest.left_out.items():
        cli.out.line(f"  left out: {left}: {why}")
    tokens = sum(tool.tokens for tool in offered)
    cli.out.line(f"Offering {_tools(len(offered))} costs about {tokens} tokens in every request.")


def _warn_of_places(cli: Cli, words: Sequence[str]) -> None:
    """A file that was found from this folder is not found by a session in another one."""
    for word in words:
        path = Path(word)
        if word and not path.is_absolute() and path.is_file():
            whole = str(path.absolute())
            cli.out.note(f"note: {word!r} is found only by sessions in this folder; for all, say {whole!r}")


def _tools(count: int) -> str:
    return f"{count} tool{'' if count == 1 else 's'}"


def _first_line(text: str) -> str:
    line = next(iter(text.strip().splitlines()), "")
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"


def _care(cli: Cli) -> "McpCare":
    from hermes.host.mcp_care import McpCare  # `hermes --help` loads none of this

    return McpCare(cli.settings())


COMMAND = mcp
