"""Verify and compress trajectories."""

import asyncio
from pathlib import Path
from typing import Any

import click
import msgspec

from hermes.errors import UserError
from hermes.surfaces.cli.app import Menu, as_json
from hermes.surfaces.cli.context import Cli

MAX_TOLD = 10


EPILOG = """\b
Examples:
  hermes trajectories verify data/RUN/trajectories.jsonl
  hermes trajectories compress data/RUN/trajectories.jsonl --target-max-tokens 8000 --dry-run"""


@click.group("trajectories", cls=Menu, epilog=EPILOG, invoke_without_command=True)
@click.pass_context
def trajectories(ctx: click.Context) -> None:
    """Verify and compress trajectories: conversations as training data, one JSON object a line."""
    if ctx.invoked_subcommand is None:
        ctx.obj.out.line(ctx.get_help())


@trajectories.command("verify")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--records",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The records; else those beside FILE.",
)
@as_json
@click.pass_obj
def verify(cli: Cli, file: Path, records: Path | None, as_json: bool) -> int:
    """Prove that the stored steps of each trajectory give the very bytes that were sent to the model.

    FILE is a run's folder or its trajectories.jsonl, which is held against the records beside it, or its records.jsonl.
    Lines may stand in another order, and in a file of another name some may be missing. The exit code is 1 when
    anything is not as it was.
    """
    from hermes.batch.output_files import TRAJECTORIES
    from hermes.batch.verify_files import verify_file

    if file.is_dir():
        file /= TRAJECTORIES
        if not file.is_file():
            raise UserError(f"there is no {str(file)!r}; name a file of trajectories or records")
    found = verify_file(file, records)
    code = 0 if found.is_proven else 1
    if as_json:
        cli.out.json({**msgspec.to_builtins(found), "exit_code": code})
        return code
    for problem in found.problems:
        cli.out.error(problem)
    if found.more_problems:
        cli.out.error(f"and {found.more_problems} more")
    cli.out.line(f"{found.proven} of {found.total} proven, {found.calls} model calls rendered again")
    return code


@trajectories.command("compress")
@click.argument("source", metavar="INPUT", type=click.Path(exists=True, path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Where to; else INPUT's name with _compressed.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Settings, as YAML.")
@click.option("--target-max-tokens", type=click.IntRange(min=1), help="What a trajectory may have; 15250 by default.")
@click.option("--sample-percent", type=float, default=100.0, show_default=True, help="Take only so many of the lines.")
@click.option("--seed", type=int, default=42, show_default=True, help="Which ones these are.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only tell what would be done.")
@click.option("--tokenizer", default="", help="A tokenizer.json on this machine; else 4 characters a token.")
@as_json
@click.pass_obj
def compress(cli: Cli, /, as_json: bool, **wish: Any) -> int:
    """Make trajectories fit: the middle of each that is too long becomes one summary.

    INPUT is a file, a run's folder, or a folder of .jsonl files. A trajectory that fits is copied without a model
    call. What a stopped run has done is kept: the same command goes on. One whose summary fails is left as it is; then
    the exit code is 1, and the same command tries it again.
    """
    from hermes.batch.compress_files import CompressReport, CompressWish, compress_files
    from hermes.runtime.setup.process import shared

    settings = cli.settings()

    async def work() -> CompressReport:
        try:
            return await compress_files(CompressWish(**wish), settings, cli.out.note)
        finally:
            await shared.close()

    try:
        report = asyncio.run(work())
    except KeyboardInterrupt:
        cli.out.note("What is done is kept; the same command goes on.")
        raise
    metrics, is_dry = report.metrics, wish["is_dry"]
    code = 1 if metrics.failed else 0
    if as_json:
        told = {"output": str(report.output), "is_dry": is_dry, **msgspec.to_builtins(metrics), "exit_code": code}
        cli.out.json(told)
        return code
    did = f"{metrics.compressed} of {metrics.trajectories} trajectories {'would be' if is_dry else 'are'} compressed"
    cli.out.note(f"{did}, {metrics.copied} fit as they are")
    cli.out.note(f"{metrics.tokens_before:,} tokens before, {metrics.tokens_after:,} after")
    _tell_some(cli, metrics.errors)
    if metrics.still_over:
        cli.out.note(f"Longer than the target all the same{' would be' if is_dry else ''}: {metrics.still_over}")
        _tell_some(cli, metrics.over)
    if metrics.failed:
        cli.out.error(
            f"{metrics.failed} could not be summarized and {'is' if metrics.failed == 1 else 'are'} in the output as "
            "before; the same command tries again"
        )
    if not is_dry:
        cli.out.line(str(report.output))
    return code


def _tell_some(cli: Cli, told: list[str]) -> None:
    for one in told[:MAX_TOLD]:
        cli.out.note(f"  {one}")
    if len(told) > MAX_TOLD:
        cli.out.note(f"  and {len(told) - MAX_TOLD} more")


COMMAND = trajectories
