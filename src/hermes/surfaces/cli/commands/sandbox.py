"""See what local commands may touch here, and try it."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from hermes.confinement.policy import Confinement
    from hermes.tools.environments.local import LocalEnvironment

Result = TypeVar("Result")
_MOST_HOSTS = 40


@click.group("sandbox", cls=Menu, invoke_without_command=True)
@click.pass_context
def sandbox(ctx: click.Context) -> None:
    """See what local commands may touch in this folder, and try it. Without a command, show it."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@sandbox.command("show")
@as_json
@click.pass_obj
def show(cli: Cli, as_json: bool = False) -> None:
    """Show the level, what may be written, what is protected or hidden, and who holds which limit."""
    facts = {**_run(cli, _described), "hosts": _hosts(cli)}
    if as_json:
        cli.out.json(facts)
        return
    for line in lines_of(facts):
        cli.out.line(line)


@sandbox.command("explain")
@click.argument("path")
@as_json
@click.pass_obj
def explain(cli: Cli, path: str, as_json: bool) -> None:
    """Tell whether commands may see and write PATH, and by which rule."""
    real = os.path.realpath(os.path.expanduser(path))  # noqa: PTH111

    async def work(environment: "LocalEnvironment") -> dict[str, Any]:
        confined = await environment.confinement()
        rule = confined.rule_for(real)
        return {
            "path": real,
            "level": confined.level,
            "may_write": confined.may_write(real),
            "may_see": confined.may_see(real),
            "rule": None if rule is None else {"path": rule.path, "kind": rule.kind, "why": rule.why},
        }

    facts = _run(cli, work)
    if as_json:
        cli.out.json(facts)
        return
    may = "may be written" if facts["may_write"] else "may be read" if facts["may_see"] else "is hidden"
    rule = facts["rule"]
    why = f"{rule['why']} ({rule['kind']}, {rule['path']})" if rule else "no rule is about it, so it is read-only"
    cli.out.line(f"{real} {may}: {why}")
    if facts["level"] == "none":
        cli.out.note("Nothing enforces this here for commands (level none); file tools keep to it.")


@sandbox.command("try", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True)
@as_json
@click.pass_context
def try_(ctx: click.Context, words: tuple[str, ...], as_json: bool) -> None:
    """Run a COMMAND as a session would, confined; its exit code is that of the command.

    hermes sandbox try -- touch ~/.bashrc
    """
    import shlex

    from hermes.scope import TurnScope
    from hermes.seams import Decision, ExecResult

    cli: Cli = ctx.obj
    line = words[0] if len(words) == 1 else shlex.join(words)

    async def work(environment: "LocalEnvironment") -> ExecResult:
        return await environment.execute(line, Decision(allowed=True, reason="typed by the person"), TurnScope())

    result = _run(cli, work)
    if as_json:
        cli.out.json({"output": result.output, "exit_code": result.exit_code, "notes": list(result.notes)})
    else:
        cli.out.line(result.output.rstrip("\n"))
        for note in result.notes:
            cli.out.note(note)
    ctx.exit(result.exit_code)


async def _described(environment: "LocalEnvironment") -> dict[str, Any]:
    reach = await environment.reach()
    granted = await environment.granted_hosts() if reach == "ask" else []
    return {**described(await environment.confinement()), "network": reach, "granted_hosts": granted}


def described(confined: "Confinement") -> dict[str, Any]:
    """The confinement as plain values."""
    from hermes.tools.supervisor.keeper import cgroups

    cgroups.prepare(confined.limits.processes, confined.limits.memory_mb)
    by_kernel = cgroups.held() if confined.level != "none" else []
    cgroups.remove()
    limits = confined.limits
    paths: dict[str, list[str]] = {"writable": [], "protected": [], "hidden": []}
    for rule in confined.rules:
        if confined.rule_for(rule.path) is not rule:
            continue  # another one wins over it
        if rule.access == "write":
            paths["writable"].append(rule.path)
        elif rule.kind in ("protected", "self-running", "git-config") and os.path.lexists(rule.path):
            paths["protected"].append(rule.path)
        elif rule.access == "hidden" and os.path.lexists(rule.path):
            paths["hidden"].append(rule.path)
    return {
        "level": confined.level,
        "why": confined.why,
        "policy": confined.policy,
        "workspace": confined.workspace,
        **paths,
        "network": "open" if confined.network else "off",
        "sockets": [rule.path for rule in confined.of_kind("socket") if rule.access == "read"],
        "limits": {
            "processes": {"most": limits.processes, "held_by": "kernel" if "pids" in by_kernel else "keeper"},
            "memory_mb": {"most": limits.memory_mb, "held_by": "kernel" if "memory" in by_kernel else "keeper"},
            "open_files": {"most": limits.open_files, "held_by": "kernel"},
            "temp_mb": {"most": limits.temp_mb, "held_by": "keeper"},
        },
    }


def _hosts(cli: Cli) -> list[dict[str, Any]]:
    """What sessions asked to reach, newest last, each host of a session once."""
    from hermes.host.session_select import open_sessions

    with open_sessions(cli) as db:
        rows = db.list_approvals(None) if db else []
    found = {
        (str(row["session_id"] or ""), str(row["action"])): str(row["verdict"])
        for row in reversed(rows)
        if row["tool"] == "network"
    }
    newest = list(found.items())[-_MOST_HOSTS:]
    return [{"session_id": one, "host": host, "verdict": verdict} for (one, host), verdict in newest]


def lines_of(facts: dict[str, Any]) -> list[str]:
    """The same for a person."""
    level = {
        "full": "full: bubblewrap, a system call filter and Landlock",
        "files": "files: Landlock and a system call filter",
        "none": "none: nothing holds commands",
    }[facts["level"]]
    lines = [f"level      {level}{' (' + facts['why'] + ')' if facts['why'] else ''}", f"policy     {facts['policy']}"]
    for name in ("writable", "protected", "hidden"):
        shown = facts[name] or ["nothing"]
        lines += [f"{name if place == 0 else '':<10} {path}" for place, path in enumerate(shown)]
    lines.append(f"network    {facts['network']}")
    lines += [f"{'':<10} {host} passes" for host in facts.get("granted_hosts", ())]
    for each in facts.get("hosts", ()):
        said = "granted" if each["verdict"] == "allow" else "refused"
        lines.append(f"{'':<10} {said} {each['host']} in session {each['session_id'] or 'none'}")
    lines.append(f"sockets    {', '.join(facts['sockets']) or 'none of the machine'}")
    for name, limit in facts["limits"].items():
        most = f"{limit['most']}, held by the {limit['held_by']}" if limit["most"] else "without limit"
        lines.append(f"{'limits' if name == 'processes' else '':<10} {name} {most}")
    return lines


def _run(cli: Cli, work: "Callable[[LocalEnvironment], Awaitable[Result]]") -> Result:
    """Do something in the environment that a session started here would get."""
    from hermes.config.sections import terminal  # `hermes --help` loads none of this
    from hermes.tools.environments.factory import EnvironmentRequest, create_environment
    from hermes.tools.environments.local import LocalEnvironment
    from hermes.tools.supervisor.supervisor import ProcessSupervisor

    settings = cli.settings()
    section = settings.of(terminal.Section)
    if section.backend != "local":
        raise UserError(f"commands run in the {section.backend} backend, which is no part of this machine")

    async def main() -> Result:
        supervisor = ProcessSupervisor()
        environment = create_environment(
            EnvironmentRequest(
                settings=section,
                supervisor=supervisor,
                home=cli.home,
                environ=settings.environ,
                secrets=settings.secrets,
                approvals=settings.mapping.get("approvals") or {},
                launch_folder=str(Path.cwd()),
            )
        )
        assert isinstance(environment, LocalEnvironment)
        try:
            return await work(environment)
        finally:
            await environment.close()
            await supervisor.close()

    found: Result = asyncio.run(main())
    return found


COMMAND = sandbox
