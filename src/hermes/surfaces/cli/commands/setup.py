"""Set Hermes up: model, terminal, keys of tools, skills."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from hermes.config import paths
from hermes.config.dotenv import set_env
from hermes.config.env_vars import EnvVar, optional_env_vars
from hermes.config.sections import terminal as terminal_section
from hermes.config.write import set_key
from hermes.errors import UserError
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit

SECTIONS = ("model", "terminal", "tools", "skills")


@click.command("setup")
@click.argument("sections", nargs=-1, type=click.Choice(SECTIONS), metavar="[model|terminal|tools|skills]...")
@click.option("--non-interactive", is_flag=True, help="Ask nothing; take what the options say.")
@click.option("--provider", metavar="NAME", default="", help="Who serves the model.")
@click.option("--model", "name", metavar="NAME", default="", help="The model.")
@click.option("--base-url", metavar="URL", default="", help="Address, for a server of your own.")
@click.option("--api-key", metavar="KEY", default="", help="Its key; kept in .env.")
@click.option("--terminal", "backend", type=click.Choice(terminal_section.BACKENDS), help="Where commands run.")
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="A tool's key; kept in .env. May repeat.")
@click.option("--no-check", is_flag=True, help="Write the model down untried.")
@click.pass_obj
def setup(cli: Cli, /, **options: Any) -> int:
    """Set Hermes up, step by step; again for one section at any time. What is set stays unless you change it."""
    from hermes.host.model_choice import ModelChoice
    from hermes.surfaces.cli.model_questions import adopt, is_interactive

    pairs = [_pair(text) for text in options["variables"]]
    words = {name: options[name] for name in ("provider", "base_url", "api_key")}
    choice = ModelChoice(model=options["name"], **words)
    is_given = choice != ModelChoice() or bool(options["backend"] or pairs)
    if options["non_interactive"] and not is_given:
        raise UserError("--non-interactive needs something to set: --model, --provider, --terminal or --env")
    if not is_given and not is_interactive():
        raise UserError("there is no terminal to ask in; use --non-interactive with --model, --provider, --terminal …")
    if not is_given:
        return _ask_all(cli, options["sections"] or SECTIONS)
    if choice != ModelChoice():
        adopt(cli, choice, is_tried=not options["no_check"])
    if options["backend"]:
        _save_backend(cli, options["backend"])
    for variable, value in pairs:
        _save_variable(cli, variable, value)
    return Exit.ANSWERED


def _ask_all(cli: Cli, sections: Sequence[str]) -> int:
    steps: dict[str, Callable[[Cli], None]] = {
        "model": _ask_model,
        "terminal": _ask_terminal,
        "tools": _ask_tools,
        "skills": _ask_skills,
    }
    for section in sections:
        cli.out.note(f"\n{section.capitalize()}")
        steps[section](cli)
    from hermes.surfaces.cli.model_questions import told_next

    cli.out.note("\nDone.")
    told_next(cli)
    return Exit.ANSWERED


def _save_backend(cli: Cli, backend: str) -> None:
    set_key(cli.home, "terminal.backend", backend)
    cli.out.line(f"terminal.backend = {backend}")


def _save_variable(cli: Cli, variable: str, value: str) -> None:
    set_env(paths.env_file(cli.home), variable, value)
    cli.out.line(f"{variable} in .env")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UserError(f"--env takes NAME=VALUE, not {text!r}")
    return name, value


# -- asking ------------------------------------------------------------------------------------------------------


def _ask_model(cli: Cli) -> None:
    from hermes.host.model_choice import save_choice
    from hermes.surfaces.cli.model_questions import ask_choice

    asked = ask_choice(cli)
    for line in save_choice(cli.settings(), *asked) if asked is not None else ["What was set is kept."]:
        cli.out.line(line)


def _ask_terminal(cli: Cli) -> None:
    now = cli.settings().of(terminal_section.Section).backend
    cli.out.note(f"Commands can run in: {', '.join(terminal_section.BACKENDS)}.")
    chosen = click.prompt("Where do commands run", type=click.Choice(terminal_section.BACKENDS), default=now, err=True)
    if chosen != now:
        _save_backend(cli, chosen)


def _ask_tools(cli: Cli) -> None:
    settings = cli.settings()
    for one in (*optional_env_vars().values(), *_wanted_by_extensions(cli)):
        state = " (is set; Enter keeps it)" if settings.lookup(one.name) else " (Enter leaves it out)"
        where = f", {one.url}" if one.url else ""
        text = f"{one.name}: {one.purpose}{where}{state}"
        value = click.prompt(text, default="", show_default=False, hide_input=one.is_secret, err=True).strip()
        if value:
            _save_variable(cli, one.name, value)


def _wanted_by_extensions(cli: Cli) -> list[EnvVar]:
    """What plugins and tool files say they need (`requires_env`) beyond what is asked for anyway."""
    from hermes.host.plugin_care import PluginCare
    from hermes.host.tool_report import variables_of_tool_files

    settings, known = cli.settings(), set(optional_env_vars())
    found = {
        one.name: EnvVar(one.name, one.description or "a plugin wants it", one.url, one.secret)
        for one in PluginCare(settings).wanted_variables()
    }
    for name, tool in variables_of_tool_files(settings.home, settings.mapping).items():
        found.setdefault(name, EnvVar(name, f"the tool {tool}"))
    return [one for name, one in found.items() if name not in known]


def _ask_skills(cli: Cli) -> None:
    from hermes.extensions.skills.bundled_skills import choose
    from hermes.host.skill_care import SkillCare

    care = SkillCare(cli.settings())
    for head in care.unchosen():
        cli.out.note(f"{head.name}: {head.description}")
        if click.confirm(f"Have {head.name}", default=False, err=True):
            cli.out.line(str(choose(care.book, head.name)))


COMMAND = setup
