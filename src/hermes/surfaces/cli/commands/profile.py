"""Keep separate homes: settings, sessions, memory and skills of their own."""

import os

import click

from hermes.config import paths
from hermes.errors import UserError
from hermes.host import profiles
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli

yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.group("profile", cls=Menu, invoke_without_command=True)
@click.pass_context
def profile(ctx: click.Context) -> None:
    """Keep separate homes: settings, sessions, memory and skills of their own. Without a command, list them.

    `hermes -p NAME …` uses one for a single run, `hermes profile use NAME` from now on.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@profile.command("list")
@as_json
@click.pass_obj
def list_(cli: Cli, as_json: bool = False) -> None:
    """List the profiles; the one in use is marked."""
    found = profiles.every(cli.root)
    if as_json:
        cli.out.json([{"name": name, "home": str(home), "in_use": home == cli.home} for name, home in found])
        return
    cli.out.table(
        ["", "PROFILE", "HOME"], [["*" if home == cli.home else "", name, home] for name, home in found], flexible=2
    )


@profile.command("create")
@click.argument("name")
@click.option("--clone", is_flag=True, help="Start with settings, secrets, memory and skills of the profile in use.")
@click.option("--clone-all", is_flag=True, help="Start with everything of it, sessions too.")
@click.option("--clone-from", metavar="PROFILE", help="Clone that one instead.")
@click.pass_obj
def create(cli: Cli, name: str, clone: bool, clone_all: bool, clone_from: str | None) -> None:
    """Make a profile."""
    source = profiles.existing(cli.root, clone_from) if clone_from else cli.home
    if name == paths.DEFAULT_PROFILE:
        raise UserError("the profile 'default' is always there")
    home = profiles.create(cli.root, name, source if clone or clone_all or clone_from else None, everything=clone_all)
    cli.out.told(f"Profile {name} is in {home}; use it with: hermes -p {name}")


@profile.command("use")
@click.argument("name")
@click.pass_obj
def use(cli: Cli, name: str) -> None:
    """Use a profile from now on; `default` is the root home."""
    profiles.use(cli.root, name)
    cli.out.line(f"From now on: {name}")
    if cli.environ.get("HERMES_PROFILE"):
        cli.out.note("warning: HERMES_PROFILE is set in this shell and overrides it")


@profile.command("show")
@click.argument("name", required=False)
@as_json
@click.pass_obj
def show(cli: Cli, name: str | None, as_json: bool) -> None:
    """Show what a profile holds."""
    home = profiles.existing(cli.root, name) if name else cli.home
    facts = profiles.facts(home)
    if as_json:
        cli.out.json({"name": name or cli.profile, **facts})
        return
    cli.out.line(cli.out.style(name or cli.profile, "bold"))
    for key, value in facts.items():
        cli.out.line(f"  {key:<10} {value}")


@profile.command("alias")
@click.argument("profile_name")
@click.option("--name", metavar="NAME", help="Name of the command; that of the profile when left out.")
@click.option("--remove", is_flag=True, help="Remove the commands of this profile.")
@click.pass_obj
def alias(cli: Cli, profile_name: str, name: str | None, remove: bool) -> None:
    """Make a command that is `hermes -p PROFILE`, in the folder bin of the home."""
    if remove:
        found = [file for file in profiles.aliases(cli.root, profile_name) if name in (None, file.name)]
        for file in found:
            file.unlink()
        cli.out.line(f"Removed: {', '.join(file.name for file in found) or 'nothing, there is none'}")
        return
    search = cli.environ.get("PATH", "")
    file = profiles.alias(cli.root, profile_name, name or profile_name, search)
    cli.out.told(f"{file.name} is now: hermes -p {profile_name}")
    if str(file.parent) not in search.split(os.pathsep):
        cli.out.note(f'To find it, add to your shell\'s start file: export PATH="{file.parent}:$PATH"')


@profile.command("rename")
@click.argument("old")
@click.argument("new")
@click.pass_obj
def rename(cli: Cli, old: str, new: str) -> None:
    """Give a profile another name."""
    profiles.rename(cli.root, old, new)
    cli.out.line(f"{old} is now {new}")


@profile.command("delete")
@click.argument("name")
@yes
@click.pass_obj
def delete(cli: Cli, name: str, yes: bool) -> None:
    """Delete a profile with everything in it."""
    home = profiles.existing(cli.root, name)
    if home == cli.root:
        raise UserError("the default profile cannot be deleted; its home is the root of the others")
    if not yes:
        click.confirm(f"Delete {home} with all its sessions, memory and settings?", abort=True, err=True)
    profiles.delete(cli.root, name)
    cli.out.line(f"{name} is deleted")


@profile.command("export")
@click.argument("name", required=False)
@click.option("-o", "--output", metavar="FILE", help="Archive to write; NAME.tar.gz when left out.")
@click.option("--with-secrets", is_flag=True, help="Put .env and auth.json in as well.")
@click.pass_obj
def export(cli: Cli, name: str | None, output: str | None, with_secrets: bool) -> None:
    """Write a profile to an archive. Secrets stay out unless asked for."""
    home = profiles.existing(cli.root, name) if name else cli.home
    file = profiles.export(home, output or f"{name or cli.profile}.tar.gz", with_secrets=with_secrets)
    cli.out.line(str(file))


@profile.command("import")
@click.argument("archive", type=click.Path(exists=True, dir_okay=False))
@click.option("--name", metavar="NAME", help="Name of the new profile; that of the file when left out.")
@click.pass_obj
def import_(cli: Cli, archive: str, name: str | None) -> None:
    """Make a profile from an archive."""
    name, home = profiles.import_archive(cli.root, archive, name)
    cli.out.told(f"Profile {name} is in {home}; use it with: hermes -p {name}")


COMMAND = profile
