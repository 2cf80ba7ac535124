"""Put `hermes` on your PATH: a link and a completion file."""

import click

from hermes.surfaces.cli.app import as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit


@click.command("install")
@click.option("-y", "--yes", is_flag=True, help="Write without asking.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only show what would be written.")
@click.option("--shell", type=click.Choice(["bash", "zsh", "fish", "none"]), help="Complete for it; else for $SHELL.")
@as_json
@click.pass_obj
def install(cli: Cli, yes: bool, is_dry: bool, shell: str | None, as_json: bool) -> int:
    """Put `hermes` on your PATH: a link in ~/.local/bin and one completion file.

    It shows what it would write and asks. Nothing else outside the home of Hermes and your project is ever written, and
    `hermes uninstall` takes back exactly this.
    """
    from hermes.host.self_install import SHELLS, shell_of
    from hermes.surfaces.cli import install_steps
    from hermes.surfaces.cli.model_questions import is_interactive

    chosen = next((one for one in SHELLS if one == shell), None) if shell else shell_of(cli.environ)
    plan = install_steps.make_plan(cli, chosen)
    if as_json:
        is_done = yes and not is_dry
        if is_done:
            from hermes.host.self_install import carry_out

            carry_out(cli.root, plan)
        writes = [{"path": str(one.path), "kind": one.kind} for one in plan.writes]
        cli.out.json({"written": is_done, "writes": writes, "notes": list(plan.told)})
        return Exit.ANSWERED
    install_steps.show_plan(cli, plan)
    if is_dry:
        return Exit.ANSWERED
    if not plan.writes:
        for sentence in install_steps.hints(cli, chosen):
            cli.out.note(sentence)
        return Exit.ANSWERED
    if not yes:
        if not is_interactive():
            cli.out.error("nobody can be asked here, so nothing was written; to write it: hermes install --yes")
            return Exit.FAILED
        if not click.confirm("Write it", default=True, err=True):
            cli.out.note("Nothing was written.")
            return Exit.FAILED
    install_steps.install(cli, plan, chosen)
    return Exit.ANSWERED


COMMAND = install
