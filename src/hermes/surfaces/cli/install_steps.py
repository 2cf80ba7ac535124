"""Putting `hermes` on the PATH, with a person's yes: what is shown, asked and told."""

import os
import shutil
from pathlib import Path

import click

from hermes.host.command_word import NAME, is_same, program_file
from hermes.host.self_install import (
    InstallPlan,
    Shell,
    carry_out,
    completion_file,
    own_home,
    plan_install,
    read_record,
    shell_of,
    write_record,
)
from hermes.surfaces.cli.completion_script import completion_script
from hermes.surfaces.cli.context import Cli

WRITES = "These are the only files outside its home and your project; `hermes uninstall` takes back exactly them."


def make_plan(cli: Cli, shell: Shell | None) -> InstallPlan:
    """What would be written, with a completion for `shell`."""
    from hermes.surfaces.cli.app import APP

    script = (shell, completion_script(APP, shell)) if shell else None
    return plan_install(cli.environ, read_record(cli.root), script)


def show_plan(cli: Cli, plan: InstallPlan) -> None:
    """What would be written, and what is there already."""
    for sentence in plan.told:
        cli.out.note(sentence)
    if plan.writes:
        cli.out.note("This would write:")
        for write in plan.writes:
            cli.out.quote(f"  {write.words}")
        cli.out.note(WRITES)


def install(cli: Cli, plan: InstallPlan, shell: Shell | None) -> None:
    """Write it, and say what to type from now on."""
    carry_out(cli.root, plan)
    for write in plan.writes:
        cli.out.line(f"wrote {write.words}")
    for sentence in hints(cli, shell):
        cli.out.note(sentence)


def hints(cli: Cli, shell: Shell | None) -> list[str]:
    """What is still to be done so that the word works here, and what the completion needs."""
    folder = own_home(cli.environ) / ".local/bin"
    program = program_file(cli.environ)
    found = shutil.which(NAME, path=cli.environ.get("PATH"))
    on_path = any(is_same(Path(each), folder) for each in cli.environ.get("PATH", "").split(os.pathsep) if each)
    told = []
    if found and program and is_same(Path(found), program):
        told.append("From now on, in any folder: hermes")
    elif found and on_path:
        told.append(f"{found} comes first on your PATH and is another program; {folder / NAME} starts this one.")
    else:
        told.append(
            f"{folder} is not on your PATH. In this terminal, and in your shell's start file for good:\n"
            f"  {_path_line(shell)}"
        )
    if shell == "zsh":
        place = completion_file(cli.environ, "zsh").parent
        told.append(f"For the completion, before compinit in ~/.zshrc: fpath=({place} $fpath)")
    elif shell:
        told.append("The completion works in new terminals.")
    return told


def _path_line(shell: Shell | None) -> str:
    return "fish_add_path ~/.local/bin" if shell == "fish" else 'export PATH="$HOME/.local/bin:$PATH"'


def offer_install(cli: Cli) -> None:
    """Ask once, at the end of a first run in a terminal, whether the person wants to type `hermes` anywhere."""
    from hermes.errors import UserError

    record = read_record(cli.root)
    program = program_file(cli.environ)
    found = shutil.which(NAME, path=cli.environ.get("PATH"))
    if record.offered or program is None or (found and is_same(Path(found), program)):
        return
    record.offered = True
    shell = shell_of(cli.environ)
    try:
        write_record(cli.root, record)
        plan = make_plan(cli, shell)
    except UserError:  # the disk is full, the place is taken: whoever asks for `hermes install` is told
        return
    if not plan.writes:
        return
    cli.out.quote("\nTo type `hermes` in any folder, it can be put on your PATH; this is asked once.")
    show_plan(cli, plan)
    try:
        is_wanted = click.confirm("Write it", default=False, err=True)
    except click.Abort:  # Ctrl-C, Ctrl-D: what came before it went well all the same
        is_wanted = False
        cli.out.note("")
    if is_wanted:
        install(cli, plan, shell)
    else:
        cli.out.note("Nothing was written. Later: hermes install")
