"""Show, change and explain settings."""

import sys
from typing import TYPE_CHECKING, Any

import click

from hermes.config import paths
from hermes.config.section import is_secret
from hermes.errors import ConfigError, UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit

if TYPE_CHECKING:
    from hermes.config.settings import Explanation


def _matching_keys(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: the keys that begin with what was typed."""
    from hermes.config.audit import every_key

    return [key for key in every_key() if key.startswith(incomplete)]


a_key = click.argument("key", shell_complete=_matching_keys)


@click.group("config", cls=Menu, invoke_without_command=True)
@click.pass_context
def config(ctx: click.Context) -> None:
    """Show, change and explain settings. Without a command, show what is set.

    Settings are in config.yaml of the home, secrets in .env beside it. The command line wins over the environment,
    the environment over .env, .env over config.yaml, and that over the defaults.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@config.command("show")
@click.option("--all", "everything", is_flag=True, help="Defaults too.")
@as_json
@click.pass_obj
def show(cli: Cli, everything: bool = False, as_json: bool = False) -> None:
    """Show what is set, or with --all every key there is. Secrets are masked."""
    from hermes.config.audit import every_key
    from hermes.config.settings import Explanation

    settings = cli.settings()
    found: list[Explanation] = []
    for key in every_key():
        try:
            explained = settings.explain(key)
        except ConfigError as error:
            cli.out.note(f"warning: {error}")
            continue
        if everything or len(explained.sources) > 1:
            found.append(explained)
    if as_json:
        cli.out.json({each.key: each.value for each in found})
        return
    for each in found:
        mark = "  # without effect in this version" if each.pending else ""
        cli.out.line(f"{each.key}: {_text(each.value)}{cli.out.style(mark, 'dim')}")
    if not found:
        cli.out.note("Nothing is set; all keys and their defaults: hermes config show --all")


@config.command("get")
@a_key
@as_json
@click.pass_obj
def get(cli: Cli, key: str, as_json: bool) -> None:
    """Print the value of a key, a section or a NAME_LIKE_A_VARIABLE, secrets included."""
    value = _value(cli, key)
    if as_json:
        cli.out.json(value)
    else:
        cli.out.line(_text(value))


@config.command("set")
@a_key
@click.argument("value")
@click.pass_obj
def set_(cli: Cli, key: str, value: str) -> None:
    """Set a key in config.yaml; a NAME_LIKE_A_SECRET goes to .env instead.

    Lists are written a,b or [a, b]; mappings {a: b}. Comments in the file stay.
    """
    if _is_variable(key):
        from hermes.config.dotenv import set_env

        set_env(paths.env_file(cli.home), key, value)
        cli.out.line(f"{key} is set in {paths.env_file(cli.home)}")
        return
    from hermes.config.write import set_key, when_it_acts

    written = set_key(cli.home, key, value)
    shown = "…" if is_secret(key) and "${" not in value else _text(written)
    cli.out.write(f"{key} = {shown} in {paths.config_file(cli.home)}\n")
    if is_secret(key) and "${" not in value:
        cli.out.note("A secret is better kept in .env: hermes config set SOME_API_KEY VALUE, and ${SOME_API_KEY} here.")
    cli.out.note(when_it_acts(key))
    winner = cli.settings().explain(key).sources[0]
    if not winner.name.startswith(str(paths.config_file(cli.home))):
        cli.out.note(f"warning: {winner.name} overrides it; see: hermes config explain {key}")


@config.command("unset")
@a_key
@click.pass_obj
def unset(cli: Cli, key: str) -> int:
    """Remove a key, so that its default acts again."""
    if _is_variable(key):
        from hermes.config.dotenv import unset_env

        file, removed = paths.env_file(cli.home), unset_env(paths.env_file(cli.home), key)
    else:
        from hermes.config.write import unset_key

        file, removed = paths.config_file(cli.home), unset_key(cli.home, key)
    if not removed:
        cli.out.error(f"{key} is not set in {file}")
        return Exit.FAILED
    cli.out.write(f"{key} removed from {file}\n")
    if not _is_variable(key):
        from hermes.config.write import when_it_acts

        cli.out.note(when_it_acts(key))
    return Exit.ANSWERED


@config.command("explain")
@a_key
@as_json
@click.pass_obj
def explain(cli: Cli, key: str, as_json: bool) -> None:
    """Tell the value of a key or variable, where it comes from and what it overrode."""
    found = _variable(cli, key) if _is_variable(key) else cli.settings().explain(key)
    if as_json:
        cli.out.json(found)
        return
    cli.out.line(f"{cli.out.style(found.key, 'bold')} = {_text(found.value)}")
    cli.out.line(f"  {found.description}")
    for number, source in enumerate(found.sources):
        word = "from" if number == 0 else "over"
        cli.out.line(f"  {word} {source.name}: {_text(source.value)}")
    if found.pending:
        cli.out.line("  This version does not act on it.")


@config.command("check")
@as_json
@click.pass_obj
def check(cli: Cli, as_json: bool) -> int:
    """Check config.yaml and .env; exit code 1 when something must be mended."""
    from hermes.config.dotenv import is_private
    from hermes.config.load import load_settings

    problems: list[str] = []
    warnings: list[str] = []
    try:
        settings = load_settings(cli.home, environ=cli.environ)
        warnings += settings.warnings
        for name in settings.mapping:
            try:
                settings.mapping[name]
            except ConfigError as error:
                problems.append(str(error))
    except ConfigError:
        from hermes.config.mistakes import every_mistake

        problems += every_mistake(cli.home, cli.environ)
    if not is_private(paths.env_file(cli.home)):
        problems.append(f"others can read {paths.env_file(cli.home)}; run: chmod 600 {paths.env_file(cli.home)}")
    if as_json:
        cli.out.json({"ok": not problems, "problems": problems, "warnings": warnings})
    else:
        for problem in problems:
            cli.out.error(problem)
        for warning in warnings:
            cli.out.note(f"warning: {warning}")
        if not problems:
            cli.out.line("config.yaml and .env are fine.")
    return Exit.FAILED if problems else Exit.ANSWERED


@config.command("migrate")
@click.pass_obj
def migrate(cli: Cli) -> int:
    """Bring older spellings in config.yaml to the present ones; the old file stays beside it."""
    from hermes.config.write import migrate as migrated

    done = migrated(cli.home)
    for line in done:
        cli.out.line(line)
    if not done:
        cli.out.line("There is nothing to migrate.")
    cli.settings()  # what is known but without effect is told
    return Exit.ANSWERED


@config.command("edit")
@click.pass_obj
def edit(cli: Cli) -> int:
    """Open config.yaml in your editor, and check it afterwards."""
    from hermes.config.load import load_settings

    file = paths.config_file(cli.home)
    editor = cli.environ.get("VISUAL") or cli.environ.get("EDITOR")
    if not editor and not (sys.stdin.isatty() and cli.out.is_terminal):
        raise UserError(f"there is no terminal for an editor; the file is {file}, and `hermes config set` changes it")
    paths.made(cli.home)
    if not file.exists():
        from hermes.config.paths import write_private

        write_private(file, "# Settings of Hermes; all keys: hermes config show --all\n")
    click.edit(filename=str(file), editor=editor)
    try:
        load_settings(cli.home, environ=cli.environ)
    except ConfigError as error:
        cli.out.error(str(error))
        return Exit.FAILED
    return Exit.ANSWERED


@config.command("path")
@click.pass_obj
def path(cli: Cli) -> None:
    """Print where config.yaml is."""
    cli.out.line(str(paths.config_file(cli.home)))


@config.command("env-path")
@click.pass_obj
def env_path(cli: Cli) -> None:
    """Print where .env is."""
    cli.out.line(str(paths.env_file(cli.home)))


def _value(cli: Cli, key: str) -> Any:
    from hermes.config.audit import section_names

    settings = cli.settings()
    if _is_variable(key):
        if (value := settings.lookup(key)) is None:
            raise _not_set(cli, key)
        return value
    try:
        return settings.get(key)  # `model` is a section, and short for the name of the model
    except ConfigError:
        if key not in section_names():
            raise
        return dict(settings.mapping[key])


def _variable(cli: Cli, name: str) -> "Explanation":
    from hermes.config.settings import Explanation, Source, masked

    settings = cli.settings()
    places = {"the environment": settings.environ.get(name), str(paths.env_file(cli.home)): settings.secrets.get(name)}
    sources = tuple(Source(place, masked("secret", value)) for place, value in places.items() if value is not None)
    if not sources:
        raise _not_set(cli, name)
    return Explanation(key=name, description="A variable.", value=sources[0].value, sources=sources)


def _not_set(cli: Cli, name: str) -> UserError:
    where = f"neither in the environment nor in {paths.env_file(cli.home)}"
    return UserError(f"{name} is set {where}; set it with: hermes config set {name} VALUE")


def _is_variable(key: str) -> bool:
    """NAME_LIKE_A_VARIABLE: such names are no keys of config.yaml."""
    return key.isupper() and "." not in key


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value or '""'
    import msgspec

    return msgspec.json.encode(value).decode()


COMMAND = config
