"""Check the installation and say what to run to mend it."""

from difflib import get_close_matches

import click
from msgspec import to_builtins
from msgspec.structs import replace

from hermes.disk_trouble import disk_trouble
from hermes.errors import HermesError
from hermes.host.doctor import CHECKS, Check, Finding, absent, problem
from hermes.host.logs import log_fault
from hermes.surfaces.cli.app import as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit

MARKS = {"ok": ("✓", "green"), "absent": ("-", "dim"), "warning": ("!", "yellow"), "problem": ("✗", "red")}


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Mend what can be mended safely.")
@click.option("--online", is_flag=True, help="Ask providers on the internet as well.")
@as_json
@click.argument("names", nargs=-1, metavar="[CHECK]...")
@click.pass_obj
def doctor(cli: Cli, /, fix: bool, online: bool, as_json: bool, names: tuple[str, ...]) -> int:
    """Check the installation and say what to run to mend it; exit code 1 when something does not work.

    Without --online, only servers on this machine are asked anything.
    """
    cli.may_go_online = online
    for name in names:
        if name not in CHECKS.names():
            near = get_close_matches(name, CHECKS.names(), n=1)
            hint = f" Did you mean: {near[0]}?" if near else ""
            raise click.UsageError(f"There is no check {name!r}; there are: {', '.join(CHECKS.names())}.{hint}")
    checks = {name: CHECKS.load(name) for name in names or CHECKS.names()}
    fixed = [done for check in checks.values() if fix and check.fix for done in check.fix(cli)]
    found = _once({name: [_typed(cli, one) for one in _findings(cli, check)] for name, check in checks.items()})
    every = [finding for findings in found.values() for finding in findings]
    broken = any(finding.status == "problem" for finding in every)
    if as_json:
        cli.out.json({"ok": not broken, "fixed": fixed, "checks": to_builtins(found)})
        return Exit.FAILED if broken else Exit.ANSWERED
    for name, findings in found.items():
        cli.out.line(cli.out.style(checks[name].title, "bold"))
        for finding in findings:
            mark, colour = MARKS[finding.status]
            cli.out.line(f"  {cli.out.style(mark, colour)} {cli.out.typed(finding.text)}")
    for done in fixed:
        cli.out.line(f"mended: {done}")
    steps = list(dict.fromkeys(finding.next_step for finding in every if finding.next_step))
    if steps:
        cli.out.line("\nTo do:")
        for step in steps:
            cli.out.line(f"  {step}")
    return Exit.FAILED if broken else Exit.ANSWERED


def _once(found: dict[str, list[Finding]]) -> dict[str, list[Finding]]:
    """What several checks stumble over, such as a mistake in config.yaml, is told by the first of them."""
    told: set[str] = set()
    once: dict[str, list[Finding]] = {}
    for name, findings in found.items():
        fresh = [one for one in findings if one.status != "problem" or one.text not in told]
        told.update(one.text for one in fresh)
        once[name] = fresh if fresh or not findings else [absent("not looked at, because of what is told above")]
    return once


def _typed(cli: Cli, finding: Finding) -> Finding:
    """`finding` with a next step that can be typed as it stands."""
    return replace(finding, next_step=cli.out.typed(finding.next_step))


def _findings(cli: Cli, check: Check) -> list[Finding]:
    try:
        return list(check.run(cli))
    except HermesError as error:
        return [problem(str(error))]
    except Exception as error:  # noqa: BLE001 - the border: one check that fails must not hide what the others find
        if sentence := disk_trouble(error):
            return [problem(sentence)]
        log_fault(cli.home, error)
        return [problem(f"this check itself failed ({type(error).__name__}: {error})", "hermes logs errors")]


COMMAND = doctor
