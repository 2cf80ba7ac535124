"""Run a dataset of prompts through the agent, for training data and tests."""

import asyncio
import contextlib
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec import Struct, to_builtins

from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli
from hermes.typed import convert

if TYPE_CHECKING:
    from hermes.batch.opened_run import RunStop
    from hermes.batch.run_spec import RunProgress, RunReport, RunSpec
    from hermes.state.batch_rows import BatchRows, BatchRun

SHOW_EVERY_S = 1.0
BUDGETS = {"tokens is used up": "--run-tokens", "budget of $": "--run-usd"}  # of which another one is needed to go on
EPILOG = """\b
Examples:
  hermes batch run prompts.jsonl --distribution terminal_only
  hermes batch status prompts
  hermes batch resume prompts
  hermes batch export prompts --output first.jsonl"""


def _caps(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that bound a sample and a run."""
    told = (
        ("--run-tokens", click.IntRange(min=1), "Most tokens the run may read and write."),
        ("--run-usd", float, "Most dollars the run may cost."),
        ("--sample-seconds", float, "Most seconds a sample may take in one go."),
        ("--sample-tokens", click.IntRange(min=1), "Most tokens a sample may read and write."),
        ("--sample-usd", float, "Most dollars a sample may cost."),
    )
    for name, kind, words in told:
        command = click.option(name, type=kind, help=words)(command)
    return command


_allow_hosts = click.option(
    "--allow-host", "allow_hosts", multiple=True, help="A host that samples may reach; may be given several times."
)


@click.group("batch", cls=Menu, epilog=EPILOG, invoke_without_command=True)
@click.pass_context
def batch(ctx: click.Context) -> None:
    """Run a dataset of prompts through the agent, each as a sample of its own. Without a command, tell how runs stand.

    A dataset is JSON lines with a "prompt", and an "image" and a "cwd" where a sample needs them. The files of a run
    are in ./data/RUN. A run that was stopped or killed goes on exactly where it was. More: docs/batch.md
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(status)


@batch.command("run")
@click.argument("dataset")
@click.option("--run-name", help="What the run is called, else as the dataset; its files are in ./data/NAME.")
@click.option(
    "--batch-size", type=click.IntRange(min=1), default=10, show_default=True, help="Samples a batch file holds."
)
@click.option(
    "--distribution", default="default", show_default=True, help="Toolsets of a sample: hermes batch distributions."
)
@click.option("--model", default="", help="The model; else the configured one.")
@click.option("--base-url", default="", help="Where it is served.")
@click.option("--provider", default="", help="Who serves it.")
@click.option("--api-key", default="", help="Its key. Better in .env, where no list of processes shows it.")
@click.option(
    "--max-turns",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Rounds of a sample before it sums up.",
)
@click.option("--num-workers", type=click.IntRange(min=1), default=4, show_default=True, help="Samples at once.")
@click.option(
    "--processes", type=click.IntRange(min=1), default=1, show_default=True, help="Processes that share them."
)
@click.option("--max-samples", type=click.IntRange(min=1), help="Run only the first so many.")
@click.option("--resume", is_flag=True, help="Go on with the run of this name, if there is one.")
@click.option(
    "--ephemeral-system-prompt", default="", help="Words for the model that are not part of the session's prompt."
)
@click.option("--max-tokens", type=click.IntRange(min=1), help="Most tokens of an answer.")
@click.option("--reasoning-effort", default="", help="How hard the model thinks.")
@click.option("--reasoning-disabled", is_flag=True, help="Without thinking.")
@click.option("--prefill-messages-file", help="JSON list of messages that every conversation begins with.")
@click.option("--providers-allowed", default="", help="Of an aggregator: ask only these, a list with commas.")
@click.option("--providers-ignored", default="", help="Of an aggregator: never ask these.")
@click.option("--providers-order", default="", help="Of an aggregator: ask these first.")
@click.option("--provider-sort", default="", help="Of an aggregator: price, throughput or latency.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the toolsets that are drawn.")
@click.option(
    "--sends-seed", is_flag=True, help="Ask the server for reproducible answers, another seed for each sample."
)
@click.option("--logprobs", is_flag=True, help="Keep token ids and log-probabilities, where the server gives them.")
@_caps
@_allow_hosts
@click.option("--keep-unreasoned", is_flag=True, help="Keep samples without any reasoning, too.")
@click.option("--keep-workspaces", is_flag=True, help="Leave the folders of samples that have ended.")
@click.option("--on", type=click.Choice(["here", "ray"]), default="here", show_default=True, help="Where samples run.")
@as_json
@click.pass_context
def run(
    ctx: click.Context, /, as_json: bool, resume: bool, on: str, allow_hosts: tuple[str, ...], **options: Any
) -> int:
    """Run the samples of DATASET.

    Progress goes to stderr, with --json as lines of JSON to stdout. Ctrl-C lets the samples under way come to their
    end, a second one stops them; both can be resumed. The exit code is 0 when every sample has ended and none failed.
    """
    spec = _spec(options)
    if resume:
        given = {name for name in options if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
        spec = _as_begun(ctx.obj, spec, given)
    return _run(ctx.obj, spec, _Way(resume=resume, on=on, as_json=as_json, allow_hosts=allow_hosts))


@batch.command("resume")
@click.argument("name")
@click.option("--api-key", default="", help="The key of the model, which is never stored.")
@click.option("--num-workers", type=click.IntRange(min=1), help="Samples at once; else as before.")
@click.option("--processes", type=click.IntRange(min=1), help="Processes that share them; else as before.")
@click.option("--max-samples", type=click.IntRange(min=1), help="Run only the first so many; else as before.")
@_caps
@_allow_hosts
@click.option("--on", type=click.Choice(["here", "ray"]), default="here", show_default=True, help="Where samples run.")
@as_json
@click.pass_obj
def resume(cli: Cli, /, name: str, on: str, as_json: bool, allow_hosts: tuple[str, ...], **changes: Any) -> int:
    """Go on with a run, as it was begun. Samples that have ended are not run again; those that failed are."""
    from hermes.batch.run_spec import RunSpec, replace_spec

    with _rows(cli) as rows:
        found = _find(rows, name)
    spec = convert(found.spec, RunSpec)
    given = {key: value for key, value in changes.items() if value not in (None, "")}
    way = _Way(resume=True, on=on, as_json=as_json, allow_hosts=allow_hosts)
    return _run(cli, replace_spec(spec, **given), way)


@batch.command("status")
@click.argument("name", required=False)
@as_json
@click.pass_obj
def status(cli: Cli, name: str | None, as_json: bool) -> None:
    """Tell how far a run is, or all of them."""
    with _rows(cli) as rows:
        runs = [_find(rows, name)] if name else rows.runs()
        told = [
            {"name": one.name, "folder": one.folder, "ended": one.ended_at is not None, **rows.counts(one.run_id)}
            for one in runs
        ]
    if as_json:
        cli.out.json(told[0] if name else told)
        return
    if not told:
        cli.out.note("There are no runs yet; begin one with: hermes batch run DATASET --run-name NAME")
        return
    heads = ("waiting", "running", "done", "dropped", "failed")
    cells = [[one["name"], *(one[head] for head in heads), one["folder"]] for one in told]
    cli.out.table(["RUN", *(head.upper() for head in heads), "FOLDER"], cells, flexible=6)


@batch.command("stats")
@click.argument("name")
@as_json
@click.pass_obj
def stats(cli: Cli, name: str, as_json: bool) -> None:
    """Tell the figures of a run: tools, reasoning, tokens, money, and what was dropped and why."""
    from hermes.batch.output_files import OutputFiles
    from hermes.batch.run_spec import RunSpec

    with _rows(cli) as rows:
        found = _find(rows, name)
        total = sum(rows.counts(found.run_id).values())
        told = OutputFiles(convert(found.spec, RunSpec), rows).statistics(found.started_at, total)
        failures = [(row.index, row.reason) for row in rows.rows(found.run_id) if row.state == "failed"]
        spent = rows.spending(found.run_id)
    took = (found.ended_at or time.time()) - found.started_at
    told |= {"duration_seconds": round(took, 2), "spent": to_builtins(spent)}
    if as_json:
        cli.out.json({**told, "failures": [{"prompt_index": index, "reason": why} for index, why in failures]})
        return
    counted = told["samples"]
    cli.out.line(f"{name}: {counted['done']} done, {counted['dropped']} dropped, {counted['failed']} failed of {total}")
    money = _money(told["cost_usd"], told["unpriced_samples"], sum(counted.values()))
    cli.out.line(f"{_many(told['api_calls'], 'model call')}, {told['tokens']:,} tokens, {money}")
    if spent.calls > told["api_calls"]:
        price = f"${spent.cost_usd:.4f}" if not spent.unpriced else "a price that is not known"
        cli.out.line(
            f"spent with what was cut off: {_many(spent.calls, 'model call')}, {spent.tokens:,} tokens, {price}"
        )
    if told["incomplete_samples"]:
        cli.out.line(f"  not brought to their end, but kept: {told['incomplete_samples']}")
    for reason, many in told["dropped"].items():
        cli.out.line(_dropped(reason, many))
    for index, why in failures[:10]:
        cli.out.line(f"  sample {index} failed: {why}")
    if told["tool_statistics"]:
        rates = [[tool, one["count"], f"{one['success_rate']:g} %"] for tool, one in told["tool_statistics"].items()]
        cli.out.table(["TOOL", "CALLS", "WORKED"], rates)


@batch.command("export")
@click.argument("name")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to; else to stdout.")
@click.option("--force", is_flag=True, help="Write over a file that is there already.")
@click.option("--records", is_flag=True, help="The verifiable records in place of the trajectories.")
@click.option("--all", "is_all", is_flag=True, help="Also samples that called a tool which does not exist.")
@click.pass_obj
def export(cli: Cli, /, name: str, output: Path | None, force: bool, records: bool, is_all: bool) -> None:
    """Write the trajectories of a run, in the order of its dataset, as far as it is."""
    from hermes.batch.export_file import require_free, write_lines
    from hermes.batch.sample_result import unpacked

    with _rows(cli) as rows:
        found = _find(rows, name)
        lines = (unpacked(body)[records] for _, state, body in rows.bodies(found.run_id) if is_all or state == "done")
        if output is not None:
            require_free(output, rows.runs(), force=force)
            cli.out.note(f"{write_lines(output, lines)} lines are in {output}")
            return
        many = 0
        for many, line in enumerate(lines, 1):  # noqa: B007 - counted
            cli.out.line(line)
    if not many:
        cli.out.note(f"No sample of {name!r} has ended with a trajectory; see: hermes batch stats {name}")


@batch.command("forget")
@click.argument("name")
@click.pass_obj
def forget(cli: Cli, name: str) -> None:
    """Remove a run from the store. Its files and its sessions stay."""
    from hermes.batch.run_entry import refuse_at_work

    with _rows(cli) as rows:
        found = _find(rows, name)
        refuse_at_work(rows, found)
        rows.forget(found.run_id)
    cli.out.note(f"The run {name!r} is forgotten.")


@batch.command("distributions")
@as_json
@click.pass_obj
def distributions(cli: Cli, as_json: bool) -> None:
    """List the toolset distributions: ours, and yours of HERMES_HOME/distributions.yaml."""
    from hermes.batch.distributions import list_distributions

    found = list_distributions(cli.home)
    if as_json:
        cli.out.json({name: {"description": one.description, "toolsets": one.toolsets} for name, one in found.items()})
        return
    cells = [
        [name, ", ".join(f"{toolset} {percent:g}" for toolset, percent in one.toolsets.items()), one.description]
        for name, one in found.items()
    ]
    cli.out.table(["DISTRIBUTION", "TOOLSETS, PERCENT", "FOR"], cells, flexible=1)
    for name, one in found.items():
        for toolset in one.unknown_toolsets():
            cli.out.note(f"{name}: there is no toolset {toolset!r} here, so no sample gets it; see: hermes tools")


COMMAND = batch


# -- running -----------------------------------------------------------------------------------------------------


def _spec(options: dict[str, Any]) -> "RunSpec":
    from hermes.batch.run_spec import RunSpec

    for name in ("providers_allowed", "providers_ignored", "providers_order"):
        options[name] = [one.strip() for one in options[name].split(",") if one.strip()]
    options["keeps_unreasoned"] = options.pop("keep_unreasoned")
    options["keeps_workspaces"] = options.pop("keep_workspaces")
    file = options.pop("prefill_messages_file")
    if file:
        from hermes.batch.prefill import read_prefill

        options["prefill_messages"] = read_prefill(Path(file))
    options["run_name"] = options["run_name"] or _name_of(options["dataset"])
    return RunSpec(**options)


def _as_begun(cli: Cli, spec: "RunSpec", given: set[str]) -> "RunSpec":
    """The run as it was begun, if it was, with what is `given` now; what nobody gives is no wish to change it."""
    from hermes.batch.run_spec import RunSpec, replace_spec

    checked = spec.checked()
    with _rows(cli) as rows:
        known = rows.find(checked.run_id)
    if known is None:
        return spec
    renamed = {"keep_unreasoned": "keeps_unreasoned", "keep_workspaces": "keeps_workspaces"}
    renamed["prefill_messages_file"] = "prefill_messages"
    names = {renamed.get(name, name) for name in given}
    changes = {name: getattr(checked, name) for name in names if name in RunSpec.__struct_fields__}
    return replace_spec(convert(known.spec, RunSpec), **{**changes, "api_key": spec.api_key})


def _name_of(dataset: str) -> str:
    """What a run of `dataset` is called when nobody says: the file's name without its ending."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(dataset).stem).strip("-.") or "run"


class _Way(Struct, frozen=True, kw_only=True):
    """How a run is gone about, which is no part of it."""

    resume: bool
    on: str
    as_json: bool
    allow_hosts: tuple[str, ...]


def _run(cli: Cli, spec: "RunSpec", way: _Way) -> int:
    from hermes.batch.opened_run import RunStop
    from hermes.batch.run import run_batch

    settings, stop, show = cli.settings(), RunStop(), _Shown(cli, way.as_json)
    if way.allow_hosts:
        from hermes.host.added_hosts import with_added_hosts

        settings = with_added_hosts(settings, way.allow_hosts)

    async def work() -> "RunReport":
        from hermes.runtime.setup.process import shared

        try:
            with _signals(stop, cli):
                return await run_batch(
                    spec, resume=way.resume, settings=settings, stop=stop, on_progress=show, on=way.on
                )
        finally:
            await shared.close()

    report = asyncio.run(work())
    return show.end(report)


class _Shown:
    """Shows how far a run is: one line that moves in a terminal, now and then one in a pipe, JSON for programs."""

    def __init__(self, cli: Cli, as_json: bool) -> None:
        self._cli = cli
        self._as_json = as_json
        self._last = 0.0
        self._moves = cli.out.stderr.isatty() and not as_json
        self._every_s = SHOW_EVERY_S if self._moves or as_json else 10 * SHOW_EVERY_S
        self._has_begun = False

    def __call__(self, progress: "RunProgress") -> None:
        now = time.monotonic()
        if not self._has_begun:
            self._has_begun = True
            for note in () if self._as_json else progress.notes:
                self._cli.out.note(note[0].upper() + note[1:])
        if now - self._last < self._every_s:
            return
        self._last = now
        if self._as_json:
            self._cli.out.json({"type": "progress", **progress.as_dict()})
        elif self._moves:
            self._cli.out.stderr.write(f"\r\x1b[K{_line(progress)}")
            self._cli.out.stderr.flush()
        else:
            self._cli.out.note(_line(progress))

    def end(self, report: "RunReport") -> int:
        """Tell what came of the run; the exit code."""
        progress, out = report.progress, self._cli.out
        code = 0 if report.is_complete and not progress.failed else 130 if report.stopped else 1
        if self._as_json:
            bad = [{"line": number, "reason": why} for number, why in report.bad_lines]
            told = {
                "folder": str(report.folder),
                "stopped": report.stopped,
                "held": report.held,
                "dropped_by": report.reasons,
                "exit_code": code,
            }
            out.json({"type": "result", **progress.as_dict(), **told, "bad_lines": bad})
            return code
        if self._moves:
            out.stderr.write("\r\x1b[K")
        for number, why in report.bad_lines:
            out.note(f"line {number} of the dataset is left out: {why}")
        if report.bad_line_count > len(report.bad_lines):
            out.note(f"and {report.bad_line_count - len(report.bad_lines)} more lines")
        out.note(_line(progress))
        for reason, many in report.reasons.items():
            out.note(_dropped(reason, many))
        if report.stopped:
            other = next((f" {option} N" for word, option in BUDGETS.items() if word in report.stopped), "")
            go_on = f"hermes batch resume {report.folder.name}{other}"
            out.note(f"Not all samples have ended: {report.stopped}. Go on with: {go_on}")
        elif report.held:
            out.error(f"not all samples have ended: {report.held}; then: hermes batch resume {report.folder.name}")
        elif progress.failed:
            out.error(f"{_many(progress.failed, 'sample')} failed; why: hermes batch stats {report.folder.name}")
        out.line(str(report.folder))
        return code


def _dropped(reason: str, many: int) -> str:
    from hermes.batch.sample_figures import NO_REASONING

    hint = " (the model showed no reasoning; run with --keep-unreasoned to keep such samples)"
    return f"  {reason}: {many}{hint if reason == NO_REASONING else ''}"


def _line(progress: "RunProgress") -> str:
    left = progress.left_s
    told = [
        f"{progress.ended}/{progress.total} ended",
        *([f"{progress.running} running"] if progress.running else []),
        *([f"{progress.dropped} dropped"] if progress.dropped else []),
        *([f"{progress.failed} failed"] if progress.failed else []),
        f"{progress.rate:.2f}/s",
        f"{progress.tokens:,} tokens",
        _money(progress.cost_usd, progress.unpriced, progress.ended),
    ]
    if left and progress.ended < progress.total:
        told.append(f"about {left / 60:.0f} min left" if left >= 90 else f"about {left:.0f} s left")
    return ", ".join(told)


def _money(cost: float, unpriced: int, of: int) -> str:
    if unpriced and unpriced >= of:
        return "price unknown"
    return f"${cost:.4f}" + (f" + {_many(unpriced, 'sample')} without a price" if unpriced else "")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@contextlib.contextmanager
def _signals(stop: "RunStop", cli: Cli) -> Iterator[None]:
    """The first Ctrl-C or TERM drains, the second stops."""
    loop = asyncio.get_running_loop()

    def hit() -> None:
        if not stop.reason:
            cli.out.note("\nNo further sample is begun; those under way come to their end. Once more to stop them.")
            stop.drain()
        else:
            stop.halt()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, hit)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def _rows(cli: Cli) -> "Iterator[BatchRows]":
    from hermes.host.session_select import open_sessions

    with open_sessions(cli, make=True) as db:
        assert db is not None
        yield db.store.batch_rows


def _find(rows: "BatchRows", name: str) -> "BatchRun":
    """The run by its name, id or folder; of several with one name that of ./data, else the newest below this folder."""
    from hermes.batch.run_spec import DATA

    found = [one for one in rows.runs() if name in (one.name, one.run_id, one.folder)]
    if not found:
        raise UserError(f"there is no run {name!r}; see: hermes batch status")
    place = Path.cwd()
    nearest = [one for one in found if Path(one.folder) == place / DATA / one.name]
    return (nearest or [one for one in found if Path(one.folder).is_relative_to(place)] or found)[0]
