"""`hermes trajectories compress`: a file or a folder, the model that sums up, and the metrics."""

import asyncio
import hashlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from hermes.batch.compress import Ask, CompressMetrics, Compressor, MadeLine
from hermes.batch.compress_config import CompressConfig, counter, read_config
from hermes.batch.compress_journal import CompressJournal, open_journal
from hermes.batch.output_files import TRAJECTORIES
from hermes.batch.replaced_file import replaced
from hermes.config import paths
from hermes.config.sections import model as model_section
from hermes.config.settings import Settings
from hermes.disk_trouble import reason_of
from hermes.errors import HermesError, ProviderError, UserError
from hermes.models.client import CallPlan, ModelClient
from hermes.models.providers.resolve import ModelQuery, resolve_model
from hermes.runtime.requests import build_units
from hermes.runtime.setup.model_setup import client_options
from hermes.runtime.setup.process import ProcessParts, shared
from hermes.runtime.trajectory import dumped
from hermes.scope import TurnScope
from hermes.seams import ModelRequest, RequestOptions
from hermes.tools.environments.command_env import redactor_of
from hermes.types import Message, text_of


class CompressWish(Struct, frozen=True, kw_only=True):
    """What is to be compressed, and how."""

    source: Path
    output: Path | None = None
    config: Path | None = None
    target_max_tokens: int | None = None
    sample_percent: float = 100.0
    seed: int = 42
    is_dry: bool = False
    tokenizer: str = ""


class CompressReport(Struct, frozen=True):
    """Where it went, and its figures."""

    output: Path
    metrics: CompressMetrics
    metrics_file: Path | None


class _SourceLine(Struct, frozen=True):
    """A line of a source that was chosen; `key` stands for it and for the settings that it is compressed with."""

    where: str  # for a person
    key: str
    text: bytes


async def compress_files(wish: CompressWish, settings: Settings, tell: Callable[[str], None]) -> CompressReport:
    """Do it; `UserError` when it cannot be done, and then an earlier output is as it was.

    A line whose summary fails stays as it was and is counted. What was made stays beside the output then, so the same
    command tries only those lines again.
    """
    config = read_config(wish.config, tell)
    if wish.target_max_tokens is not None:
        config.compression.target_max_tokens = wish.target_max_tokens
    config.tokenizer.name = wish.tokenizer or config.tokenizer.name
    config.checked()
    if not 0 < wish.sample_percent <= 100:
        raise UserError(f"sample-percent is above 0 and at most 100, not {wish.sample_percent:g}")
    count = counter(config.tokenizer.name, is_required=bool(wish.tokenizer), tell=tell)
    work = _CompressWork(wish, config, Compressor(config, count, _asking(config, settings, shared)))
    if wish.is_dry:
        return CompressReport(work.output, work.planned(), None)
    with open_journal(work.output.resolve()) as journal:
        return CompressReport(work.output, await work.done(journal), work.metrics_file)


class _CompressWork:
    """The lines of all sources, what becomes of them, and where that goes."""

    def __init__(self, wish: CompressWish, config: CompressConfig, compressor: Compressor) -> None:
        self._wish = wish
        self._config = config
        self._compressor = compressor
        self._settings_key = _settings_key(config)
        self._targets, self.output = _places(wish, config)
        self.metrics_file = _metrics_file(config, self.output, {*self._targets, *self._targets.values()})
        self._chosen = {source: _choice(source, wish) for source in self._targets}
        if not any(self._chosen.values()):
            why = "it is empty" if wish.sample_percent >= 100 else f"{wish.sample_percent:g} % of its lines are none"
            raise UserError(f"there is no trajectory to take from {str(wish.source)!r}: {why}")

    def planned(self) -> CompressMetrics:
        """What would come of it."""
        metrics = CompressMetrics()
        for source in self._targets:
            for line in self._lines(source):
                metrics.add(self._compressor.plan(line.text), line.where)
        return self._checked(metrics)

    async def done(self, journal: CompressJournal) -> CompressMetrics:
        """Make what the journal has not, and only then write; the figures of all that was ever done for it."""
        began = time.monotonic() - journal.seconds
        failed = await self._make(journal, began)
        metrics = CompressMetrics(seconds=round(time.monotonic() - began, 3))
        for source in self._targets:
            for line, made in self._made(source, journal, failed):
                metrics.add(made, line.where)
        self._checked(metrics)
        if metrics.failed and not metrics.compressed and self.output.exists():
            raise UserError(
                f"no summary could be made ({metrics.errors[0]}); {str(self.output)!r} is left as it was, "
                "and the same command tries again"
            )
        for source, target in self._targets.items():
            target.parent.mkdir(exist_ok=True)
            with replaced(target.resolve()) as out:
                for line, made in self._made(source, journal, failed):
                    if not made.figures.bad_lines:
                        out.write((line.text if made.text is None else made.text.encode()) + b"\n")
        if self.metrics_file is not None:
            with replaced(self.metrics_file) as out:
                out.write(dumped(msgspec.to_builtins(metrics)).encode() + b"\n")
        if not failed:
            journal.remove()
        return metrics

    async def _make(self, journal: CompressJournal, began: float) -> dict[str, MadeLine]:
        """Add each missing line to the journal; those that failed. A run that is stopped lets calls under way end."""
        missing = (line for source in self._targets for line in self._lines(source) if line.key not in journal)
        workers, compressor = self._config.processing.max_concurrent_requests, self._compressor
        failed: dict[str, MadeLine] = {}
        stops: list[HermesError] = []

        async def worker() -> None:
            for line in missing:
                try:
                    made = await compressor.make(line.text)
                except HermesError as error:
                    stops.append(error)
                    return
                made.figures.summary_calls += journal.calls_in_vain(line.key)
                journal.add(line.key, made, time.monotonic() - began)
                if made.figures.failed:
                    failed[line.key] = made
                if stops or (len(compressor.cut_off) >= workers and not compressor.summaries):
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(worker())
        if compressor.cut_off and not compressor.summaries:  # nobody is there; else it is these trajectories
            stops.append(compressor.cut_off[0])
        if stops:
            raise stops[0]
        return failed

    def _made(
        self, source: Path, journal: CompressJournal, failed: dict[str, MadeLine]
    ) -> Iterator[tuple[_SourceLine, MadeLine]]:
        for line in self._lines(source):
            if line.key not in failed and line.key not in journal:
                raise UserError(f"{str(source)!r} was changed meanwhile; run the same command again to go on")
            yield line, failed.get(line.key) or journal.get(line.key)

    def _lines(self, source: Path) -> Iterator[_SourceLine]:
        """The chosen lines, one in memory at a time."""
        chosen, is_folder = self._chosen[source], self._wish.source.is_dir()
        for place, (number, text) in enumerate(_filled_lines(source)):
            if place in chosen:
                where = f"{source.name}, line {number}" if is_folder else f"line {number}"
                name = f"{self._settings_key} {source.name} {number} ".encode()
                yield _SourceLine(where, hashlib.sha256(name + text).hexdigest(), text)

    def _checked(self, metrics: CompressMetrics) -> CompressMetrics:
        if not metrics.trajectories:
            raise UserError(f"there are no trajectories in {str(self._wish.source)!r} ({metrics.errors[0]})")
        return metrics


def _filled_lines(source: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with source.open("rb") as lines:
            yield from ((number, line.rstrip(b"\r\n")) for number, line in enumerate(lines, 1) if line.strip())
    except OSError as error:
        raise UserError(f"cannot read {str(source)!r}: {reason_of(error)}") from error


def _choice(source: Path, wish: CompressWish) -> range | frozenset[int]:
    """Which of the lines are taken: by their places among those that are not empty."""
    every = range(sum(1 for _ in _filled_lines(source)))
    if wish.sample_percent >= 100:
        return every
    return frozenset(random.Random(wish.seed).sample(every, round(len(every) * wish.sample_percent / 100)))


def _settings_key(config: CompressConfig) -> str:
    """Stands for all that a compressed line depends on beside itself; who serves the model may change."""
    asked, notice = config.summarization, (config.output.add_summary_notice, config.output.summary_notice_text)
    parts = (config.tokenizer, config.compression, config.protected_turns, notice)
    return hashlib.sha256(msgspec.json.encode((parts, asked.model, asked.temperature))).hexdigest()


def _places(wish: CompressWish, config: CompressConfig) -> tuple[dict[Path, Path], Path]:
    """Each source with its target, and the output that the person is told of."""
    source, suffix = wish.source, config.output.output_suffix
    if source.is_dir():
        output = wish.output or source.with_name(f"{source.resolve().name}{suffix}")
        whole = source / TRAJECTORIES  # of a run: what else is beside it holds the same, or no trajectories
        taken = [whole] if whole.is_file() else sorted(source.glob("*.jsonl"))
        found = {one: output / one.name for one in taken if one.is_file()}
        if not found:
            raise UserError(f"there is no .jsonl file in {str(source)!r}")
    elif source.is_file():
        output = wish.output or source.with_name(f"{source.stem}{suffix}.jsonl")
        found = {source: output}
    else:
        raise UserError(f"there is no {str(source)!r}")
    if not {one.resolve() for one in found}.isdisjoint(one.resolve() for one in (output, *found.values())):
        raise UserError("the output would take the place of the input; name another one (--output)")
    if output.exists() and not (output.is_dir() if source.is_dir() else output.is_file()):
        kind = "folder" if source.is_dir() else "file"
        raise UserError(f"{str(output)!r} is no {kind}, and {str(source)!r} is one; name another output (--output)")
    return found, output


def _metrics_file(config: CompressConfig, output: Path, taken: set[Path]) -> Path | None:
    if not config.metrics.enabled:
        return None
    stem = output.stem if output.suffix == ".jsonl" else output.name
    file = output.with_name(config.metrics.output_file or f"{stem}_metrics.json")
    if file.resolve() in {one.resolve() for one in taken}:
        raise UserError(f"metrics.output_file {file.name!r} would take the place of trajectories; name another one")
    return file


def _asking(config: CompressConfig, settings: Settings, process: ProcessParts) -> Ask:
    """Ask the model that sums up; it is found with the first question, so that short trajectories need none."""
    clients: list[ModelClient] = []
    part = config.summarization
    redactor = redactor_of(settings, settings.lookup(part.api_key_env))

    async def ask(system: str, text: str) -> str:
        if not clients:
            key = settings.lookup(part.api_key_env) or ""
            if part.api_key_env and not key:
                raise UserError(
                    f"summarization.api_key_env names {part.api_key_env!r}, which is not set; export it, or add it to "
                    f"{str(paths.env_file(settings.home))!r}"
                )
            if not (part.model or settings.of(model_section.Section).default):
                raise UserError(
                    "there is no model that sums up: name one in the file of --config, as "
                    "`summarization: {model: NAME, base_url: URL}`, or choose one for everything with: hermes model"
                )
            query = ModelQuery(name=part.model, base_url=part.base_url, api_key=key)
            options = msgspec.structs.replace(
                client_options(settings, process.window_memory), max_attempts=max(1, part.max_retries)
            )
            model = resolve_model(settings, process.http, query)
            clients.append(ModelClient([model], process.store(settings), process.clock, process.ids, options))
        request = ModelRequest(
            system=system,
            tools=(),
            units=build_units([Message(role="user", content=redactor.redact(text))]),
            options=RequestOptions(extra_body={"temperature": part.temperature}),
        )
        plan, scope = CallPlan(purpose="trajectory_summary", session_id=None), TurnScope("summary")
        async with scope:
            answer = await clients[0].call(request, plan, scope)
            await process.store(settings).commit(answer.closing)
            words = text_of(answer.response.message.content).strip()
        if not words:
            raise ProviderError("the summary is empty", reason="server_error")
        return words

    return ask
