"""Run a command line: choose the home, hand over to the commands, and say in one sentence what went wrong."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.config import paths
from hermes.disk_trouble import disk_trouble
from hermes.errors import BudgetExceeded, HermesError, ProviderError, SessionInUse, UserError
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit
from hermes.surfaces.cli.output import Output, OutputLost, is_text

if TYPE_CHECKING:
    from click import Command


def run(words: Sequence[str]) -> int:
    """Run the words after `hermes`; the exit code."""
    return run_command(None, words, "hermes")


def run_command(command: "Command | None", words: Sequence[str], name: str) -> int:
    """Run `words` with `command` (None: that of `hermes`). Never raises, and never shows a traceback."""
    environ = os.environ
    out = Output.of_process(environ)
    try:
        profile, rest = take_profile(list(words))
        home = paths.chosen_home(environ, profile, may_be_missing=rest[:1] == ["profile"])
        with paths.bound_home(home):
            cli = Cli(home=home, environ=environ, out=out)
            code = _dispatch(cli, command, rest, name)
            if code == Exit.ANSWERED and command is None and _is_first_run(cli, rest):
                from hermes.surfaces.cli.install_steps import offer_install  # once in a home

                offer_install(cli)
        out.flush()
    except BrokenPipeError as error:
        return give_up(out, error)
    except UserError as error:
        out.error(str(error))
        return Exit.FAILED
    except OSError as error:
        out.error(disk_trouble(error) or f"{error.strerror or error}: {error.filename!r}")
        return Exit.FAILED
    return code


def _is_first_run(cli: Cli, words: list[str]) -> bool:
    """Whether a person may be asked now, and was not before, to have a checkout's `hermes` on the PATH."""
    return (
        (not words or words[0] in ("chat", "demo", "model", "setup"))
        and bool(cli.environ.get("HERMES_LAUNCHER"))
        and bool(sys.stdin and sys.stdin.isatty() and cli.out.stderr.isatty() and cli.out.is_terminal)
        and not (cli.root / "installation.json").exists()
    )


def give_up(out: Output, error: OSError) -> Exit:
    """stdout takes no more: let the rest go, and say why, unless its reader has simply left."""
    out.abandon()
    if isinstance(error, BrokenPipeError) and not isinstance(error, OutputLost):
        return Exit.BROKEN_PIPE
    out.error(f"the output could not be written: {error.strerror}; make room there. Nothing stored is lost")
    return Exit.FAILED


def take_profile(words: list[str]) -> tuple[str | None, list[str]]:
    """`-p NAME` taken out of `words`, wherever it stands before a `--`."""
    rest: list[str] = []
    profile = None
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            rest += words[index:]
            break
        if word in ("-p", "--profile"):
            if index + 1 >= len(words):
                raise UserError(f"{word} needs the name of a profile; see: hermes profile list")
            profile = words[index + 1]
            index += 2
            continue
        if word.startswith("--profile="):
            profile = word.partition("=")[2]
        else:
            rest.append(word)
        index += 1
    return profile, rest


def _dispatch(cli: Cli, command: "Command | None", words: list[str], name: str) -> int:
    import click  # `--version` and a bad profile do without it

    if command is None:
        from hermes.surfaces.cli.app import APP

        command = APP
    try:
        # Not `command.main`: it would turn a broken pipe into exit code 1.
        _complete(cli, command)
        with command.make_context(name, words, obj=cli) as ctx:
            code = command.invoke(ctx)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (click.Abort, KeyboardInterrupt, EOFError):
        cli.out.note("Stopped.")
        return Exit.CANCELLED
    except click.UsageError as error:
        from hermes.surfaces.cli.usage_hints import show_usage  # only when something is wrong

        show_usage(cli, error)
        return Exit.USAGE
    except click.ClickException as error:
        cli.out.error(error.format_message())
        return Exit.FAILED
    except BrokenPipeError:
        raise
    except HermesError as error:
        cli.out.error(str(error))
        return _code_of(error)
    except Exception as error:  # noqa: BLE001 - the border: a fault of ours is told in one sentence and logged whole
        word = next((each for each in words if not is_text(each)), None)
        if isinstance(error, UnicodeEncodeError) and word is not None:
            cli.out.error(f"{word!r} on the command line is not UTF-8 text; write it in UTF-8")
            return Exit.USAGE
        if sentence := disk_trouble(error):
            cli.out.error(sentence)
            return Exit.FAILED
        return _fault(cli, error)
    return code if isinstance(code, int) else Exit.ANSWERED


def _complete(cli: Cli, app: "Command") -> None:
    """Answer the shell's question for completions, when this run is one."""
    asked = cli.environ.get("_HERMES_COMPLETE")
    if asked:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(app, {"obj": cli}, "hermes", "_HERMES_COMPLETE", asked))


def _code_of(error: HermesError) -> Exit:
    match error:
        case ProviderError():
            return Exit.REFUSED if error.reason == "policy_blocked" else Exit.PROVIDER
        case BudgetExceeded():
            return Exit.BUDGET
        case SessionInUse():
            return Exit.IN_USE
        case _:
            return Exit.FAILED


def _fault(cli: Cli, error: Exception) -> Exit:
    from hermes.host.logs import log_fault  # only when something is wrong

    file = log_fault(cli.home, error)
    where = f"; the details are in {file}" if file else ""
    words = f"{type(error).__name__}: {error}".splitlines()[0]
    cli.out.error(f"Hermes itself failed ({words}){where}. Nothing stored is lost; see also: hermes doctor")
    if cli.environ.get("HERMES_DEBUG"):
        sys.excepthook(type(error), error, error.__traceback__)
    return Exit.INTERNAL
