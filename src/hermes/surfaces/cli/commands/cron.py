"""Schedule jobs: make, see, change and run them, and keep the time."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.exit_codes import Exit

if TYPE_CHECKING:
    from hermes.schedule.job_book import JobBook
    from hermes.schedule.job_order import JobOrder

F = TypeVar("F", bound=Callable[..., Any])
NOT_KEPT = "No scheduler is alive, so nothing runs by itself; start one: hermes cron daemon"
OTHER_NAMES = {"add": "create", "rm": "remove", "delete": "remove", "runs": "history"}
ACCEPTED = "hermes.cron.accept_hooks"  # where the option before the subcommand is kept
hooks = click.option("--accept-hooks", is_flag=True, help="Run the programs of `hooks` without asking for consent.")
limited = click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")


JOB_OPTIONS: dict[str, dict[str, Any]] = {
    "--name": {"help": "What it is called; without, the beginning of its prompt."},
    "--deliver": {"metavar": "TARGET", "help": "Where its answer goes: local, origin or command:NAME."},
    "--repeat": {"type": int, "metavar": "N", "help": "How often it runs; 0 is forever."},
    "--skill skills": {"multiple": True, "metavar": "NAME", "help": "A skill that it begins with; repeatable."},
    "--script": {"metavar": "FILE", "help": "A script of HERMES_HOME/scripts whose output it begins with."},
    "--workdir": {"metavar": "FOLDER", "help": "Where it works; the rules of that project are read."},
    "--model": {"metavar": "NAME", "help": "Its model, when not that of the settings."},
    "--provider": {"metavar": "NAME", "help": "Who serves that model."},
    "--context-from": {"multiple": True, "metavar": "ID", "help": "A job whose latest answer it reads; repeatable."},
    "--toolset enabled_toolsets": {"multiple": True, "metavar": "NAME", "help": "A toolset it gets; repeatable."},
    "--timezone": {"metavar": "ZONE", "help": "Its time zone, such as Europe/Berlin."},
    "--expires": {"metavar": "TIME", "help": "No run after this: 30d, or 2026-12-31."},
    "--catch-up": {"type": click.Choice(["skip", "once", "all"]), "help": "What was missed.  [default: once]"},
    "--overlap": {
        "type": click.Choice(["skip", "queue", "parallel"]),
        "help": "What is due while a run goes on.  [default: skip]",
    },
    "--jitter": {"metavar": "SPAN", "help": "Start up to this much later, such as 5m."},
    "--run-usd": {"type": float, "metavar": "USD", "help": "The most that one run may cost."},
    "--month-usd": {"type": float, "metavar": "USD", "help": "The most that its runs of a month may cost."},
    "--allow": {"multiple": True, "metavar": "COMMAND", "help": "A command it may run unasked (*, ?); repeatable."},
}


class CronMenu(Menu):
    """The commands, with the other names that some of them have."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, OTHER_NAMES.get(cmd_name, cmd_name))


def job_options(command: F) -> F:
    """What can be said of a job, when it is made and when it is changed."""
    for name, more in reversed(JOB_OPTIONS.items()):
        command = click.option(*name.split(), **more)(command)
    return command


@click.group("cron", cls=CronMenu, invoke_without_command=True)
@hooks
@click.pass_context
def cron(ctx: click.Context, accept_hooks: bool) -> None:
    """Schedule jobs: make, see, change and run them, and keep the time. Without a command, list them.

    \b
    A job is a prompt, a skill or a script with a schedule. They run while a scheduler lives:
    `hermes cron daemon`, or `hermes cron tick` every minute from your own cron.

    \b
    Examples:
      hermes cron create "0 9 * * mon-fri" "What happened in my repositories since yesterday?"
      hermes cron create "every 2h" --script check.sh --no-agent --deliver command:notify
      hermes cron next
      hermes cron history
    """
    ctx.meta[ACCEPTED] = accept_hooks
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@cron.command("list")
@click.option("--all", "with_ended", is_flag=True, help="Also those that have come to their end.")
@as_json
@click.pass_obj
def list_(cli: Cli, with_ended: bool = False, as_json: bool = False) -> None:
    """List the jobs: when they run next, and what came of the last run."""
    from hermes.host.schedule.old_jobs import jobs_file
    from hermes.surfaces.cli.cron_views import job_rows

    views: list[dict[str, Any]] = []
    if _has_store(cli):
        with _book(cli) as book:
            jobs = [job for job in book.jobs() if with_ended or job.state != "completed"]
            views = [book.view(job) for job in jobs]
    if as_json:
        cli.out.json(views)
        return
    if views:
        cli.out.table(["ID", "NAME", "SCHEDULE", "NEXT", "LAST", "COST", "DELIVER"], job_rows(views), flexible=1)
    else:
        cli.out.note('There are no jobs. Make one: hermes cron create "0 9 * * *" "What is new?"')
        if jobs_file(cli.home).is_file():
            cli.out.note("There is a jobs.json of Hermes Agent; take its jobs with: hermes cron import")


@cron.command("create")
@click.argument("schedule")
@click.argument("prompt", required=False, default="")
@click.option("--no-agent", is_flag=True, help="The script does it all; its output is what is delivered.")
@job_options
@as_json
@click.pass_obj
def create(cli: Cli, /, schedule: str, prompt: str, as_json: bool, **options: Any) -> None:
    """Make a job; prints its id.

    \b
    SCHEDULE is one of
      30m, 2h, 1d             once, after this time
      every 30m, every 2h     again and again
      "0 9 * * mon-fri"       cron: minute, hour, day of month, month, day of week
      @hourly ... @yearly     the same in a word
      2026-03-05T14:00        once, then
    """
    with _book(cli) as book:
        job = book.create(_order(options, schedule=schedule, prompt=prompt))
        view, runs = book.view(job), book.next_runs(job, 5)
        is_kept = book.ledger.ticker(time.time()) is not None
    if as_json:
        cli.out.json({"success": True, **view, "next_runs": runs})
        return
    cli.out.line(job.id)
    cli.out.note(f"{job.name!r}, {job.schedule.display}; next: {', '.join(map(_moment, runs))}")
    if not is_kept:
        cli.out.note(NOT_KEPT)


@cron.command("edit")
@click.argument("job_id")
@click.option("--schedule", help="Another schedule, as for `create`.")
@click.option("--prompt", help="Other words.")
@click.option("--no-agent/--agent", default=None, help="The script does it all; or a model does.")
@click.option("--add-skill", multiple=True, metavar="NAME", help="One more skill; repeatable.")
@click.option("--remove-skill", multiple=True, metavar="NAME", help="One skill less; repeatable.")
@click.option("--clear-skills", is_flag=True, help="No skill at all.")
@job_options
@as_json
@click.pass_obj
def edit(cli: Cli, /, job_id: str, as_json: bool, **options: Any) -> None:
    """Change a job. An empty value clears."""
    add, remove, clear = (options.pop(name) for name in ("add_skill", "remove_skill", "clear_skills"))
    with _book(cli) as book:
        job = book.find(job_id)
        if add or remove or clear:
            kept = () if clear else options["skills"] or job.skills
            skills = [name for name in dict.fromkeys([*kept, *add]) if name not in remove]
            order = _order({**options, "skills": tuple(skills)}, clears=("skills",))
        else:
            order = _order(options)
        view = book.view(book.update(job.id, order))
    _tell(cli, view, f"Changed {view['name']!r}; next: {_moment(view['next_run_at']) or 'never'}", as_json)


@cron.command("show")
@click.argument("job_id")
@as_json
@click.pass_obj
def show(cli: Cli, job_id: str, as_json: bool) -> None:
    """Tell all about a job, and when it runs next."""
    with _book(cli) as book:
        job = book.find(job_id)
        facts = book.view(job) | {"prompt": job.prompt, "next_runs": book.next_runs(job, 5)}
    if as_json:
        cli.out.json(facts)
        return
    for name, value in facts.items():
        if value not in (None, "", [], 0, False) and name != "prompt_preview":
            each = value if isinstance(value, list) else [value]
            is_moment = name.endswith("_at") or name == "next_runs"
            cli.out.line(f"{name}: {', '.join(_moment(one) if is_moment else str(one) for one in each)}")


@cron.command("run")
@click.argument("job_id")
@click.option(
    "--accept-hooks", is_flag=True, help="Where no scheduler is alive: tick here, with the programs of `hooks`."
)
@as_json
@click.pass_obj
def run(cli: Cli, job_id: str, accept_hooks: bool, as_json: bool) -> int | None:
    """Make a job due now; the scheduler runs it at its next tick."""
    with _book(cli) as book:
        job, _ = book.run_now(job_id)
        view, is_kept = book.view(job), book.ledger.ticker(time.time()) is not None
    if accept_hooks and not is_kept:
        from hermes.surfaces.cli.cron_daemon import tick_once

        return tick_once(cli, _flags(accept_hooks), as_json=as_json)
    how = "it runs at the next tick" if is_kept else "no scheduler is alive; run it now with: hermes cron tick"
    _tell(cli, view, f"{job.name!r} is due now; {how}", as_json)
    return None


@cron.command("pause")
@click.argument("job_id")
@click.option("--reason", default="", help="Why, for whoever looks at it later.")
@as_json
@click.pass_obj
def pause(cli: Cli, job_id: str, reason: str, as_json: bool) -> None:
    """Let a job rest. What is due meanwhile is passed over, and is in its history."""
    with _book(cli) as book:
        view = book.view(book.pause(job_id, reason))
    _tell(cli, view, f"Paused {view['name']!r}", as_json)


@cron.command("resume")
@click.argument("job_id")
@as_json
@click.pass_obj
def resume(cli: Cli, job_id: str, as_json: bool) -> None:
    """Let a paused job run again."""
    with _book(cli) as book:
        view = book.view(book.resume(job_id))
    _tell(cli, view, f"Resumed {view['name']!r}; next: {_moment(view['next_run_at']) or 'never'}", as_json)


@cron.command("remove")
@click.argument("job_id")
@as_json
@click.pass_obj
def remove(cli: Cli, job_id: str, as_json: bool) -> None:
    """Remove a job. What came of its runs stays in the history."""
    with _book(cli) as book:
        job = book.remove(job_id)
    facts = {"success": True, "removed_job": {"id": job.id, "name": job.name, "schedule": job.schedule.display}}
    _tell(cli, facts, f"Removed {job.name!r} ({job.id})", as_json)


@cron.command("history")
@click.argument("job_id", required=False)
@limited
@as_json
@click.pass_obj
def history(cli: Cli, job_id: str | None, limit: int, as_json: bool) -> None:
    """Tell what came of each due moment, the newest first: also of those that were passed over, and why."""
    from hermes.surfaces.cli.cron_views import moment_facts, moment_rows

    found: list[dict[str, Any]] = []
    if job_id or _has_store(cli):
        with _book(cli) as book:
            jobs = {job.id: job for job in book.jobs()}
            wanted = _of_history(book, job_id) if job_id else None
            found = moment_facts(book.history(wanted, limit), jobs, book.ledger.zone_of, book.checks.zone)
    if as_json:
        cli.out.json(found)
    elif found:
        cli.out.table(["DUE", "JOB", "OUTCOME", "COST", "WHAT"], moment_rows(found), flexible=4)
    else:
        cli.out.note("Nothing was due yet.")


@cron.command("next")
@click.argument("job_id", required=False)
@click.option("--count", type=click.IntRange(1, 100), default=5, show_default=True, help="How many of each job.")
@as_json
@click.pass_obj
def next_(cli: Cli, job_id: str | None, count: int, as_json: bool) -> None:
    """Tell when jobs run next."""
    rows: list[tuple[str, str, str]] = []
    if job_id or _has_store(cli):
        with _book(cli) as book:
            jobs = [book.find(job_id)] if job_id else book.jobs()
            rows = sorted((at, job.id, job.name) for job in jobs for at in book.next_runs(job, count))
    if as_json:
        cli.out.json([{"at": at, "job_id": job, "name": name} for at, job, name in rows])
    elif rows:
        cli.out.table(["AT", "ID", "NAME"], [(_moment(at), job, name) for at, job, name in rows], flexible=2)
    else:
        cli.out.note("Nothing is planned.")


@cron.command("status")
@as_json
@click.pass_obj
def status(cli: Cli, as_json: bool) -> int:
    """Tell whether a scheduler is alive and what is to come; fails when jobs wait and nobody keeps the time."""
    from hermes.surfaces.cli.cron_views import status_facts, status_lines

    with _book(cli) as book:
        facts = status_facts(book, time.time())
    if as_json:
        cli.out.json(facts)
    else:
        for line in status_lines(facts):
            cli.out.line(line)
    return Exit.ANSWERED if facts["healthy"] else Exit.FAILED


@cron.command("import")
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@as_json
@click.pass_obj
def import_(cli: Cli, file: str | None, as_json: bool) -> int:
    """Take the jobs of a jobs.json of Hermes Agent; without FILE, that of this home. Those that are here stay."""
    from pathlib import Path

    from hermes.host.schedule.old_jobs import import_jobs, jobs_file

    with _book(cli) as book:
        came = import_jobs(book, Path(file) if file else jobs_file(cli.home))
    if as_json:
        refused = [{"name": name, "why": why} for name, why in came.refused]
        cli.out.json({"taken": [job.id for job in came.taken], "known": list(came.known), "refused": refused})
    else:
        cli.out.line(f"{len(came.taken)} jobs were taken, {len(came.known)} were here already")
        for name, why in came.refused:
            cli.out.error(f"{name!r} was not taken: {why}")
    return Exit.FAILED if came.refused else Exit.ANSWERED


@cron.command("tick")
@hooks
@as_json
@click.pass_obj
def tick(cli: Cli, accept_hooks: bool, as_json: bool) -> int:
    """Run everything that is due now, deliver it, and leave."""
    from hermes.surfaces.cli.cron_daemon import tick_once

    return tick_once(cli, _flags(accept_hooks), as_json=as_json)


@cron.command("daemon")
@hooks
@click.pass_obj
def daemon(cli: Cli, accept_hooks: bool) -> int:
    """Keep the time until stopped. Any number may live; one of them ticks, and another takes over when it is gone."""
    from hermes.surfaces.cli.cron_daemon import run_daemon

    return run_daemon(cli, _flags(accept_hooks))


def _flags(accept_hooks: bool) -> dict[str, Any]:
    is_accepted = accept_hooks or click.get_current_context().meta.get(ACCEPTED)
    return {"hooks_auto_accept": True} if is_accepted else {}


def _has_store(cli: Cli) -> bool:
    """Whether there is anything to look into: looking makes no store."""
    from hermes.state.stores import has_sessions, place_of

    return has_sessions(place_of(cli.home))


@contextmanager
def _book(cli: Cli) -> "Iterator[JobBook]":
    from hermes.host.session_select import open_sessions
    from hermes.runtime.setup.schedule_setup import job_book

    settings = cli.settings()
    with open_sessions(cli, make=True) as db:
        assert db is not None
        yield job_book(settings, db.store.schedule, time.time)


def _order(options: dict[str, Any], clears: Sequence[str] = (), **more: Any) -> "JobOrder":
    """What was said; an option that was not given is no word about it."""
    from hermes.schedule.job_order import JobOrder

    said = {name: value for name, value in options.items() if value not in (None, ()) or name in clears}
    if said.get("no_agent") is False and more:
        del said["no_agent"]
    return JobOrder(**said, **more)


def _of_history(book: "JobBook", name: str) -> str:
    try:
        return book.find(name).id
    except UserError:
        if book.history(name, 1):  # a job that was removed
            return name
        raise


def _moment(text: str | None) -> str:
    from hermes.surfaces.cli.cron_views import moment_words  # help does without the store

    return moment_words(text)


def _tell(cli: Cli, facts: dict[str, Any], words: str, as_json: bool) -> None:
    cli.out.json(facts) if as_json else cli.out.line(words)


COMMAND = cron
