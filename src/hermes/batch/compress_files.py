"""`hermes trajectories compress`: a file or a folder, the model that sums up, and the metrics."""

from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from hermes.batch.compress import Ask, CompressMetrics, Compressor
from hermes.batch.compress_config import CompressConfig, counter, read_config
from hermes.config.settings import Settings
from hermes.errors import ProviderError, UserError
from hermes.models.client import CallPlan, ModelClient
from hermes.models.providers.resolve import ModelQuery, resolve_model
from hermes.runtime.requests import build_units
from hermes.runtime.setup.model_setup import client_options
from hermes.runtime.setup.process import ProcessParts, shared
from hermes.runtime.trajectory import dumped
from hermes.scope import TurnScope
from hermes.seams import ModelRequest, RequestOptions
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


async def compress_files(wish: CompressWish, settings: Settings, tell: Callable[[str], None]) -> CompressReport:
    """Do it; `UserError` when the input is no trajectories, or some could not be summarized."""
    config = read_config(wish.config, tell)
    if wish.target_max_tokens is not None:
        config.compression.target_max_tokens = wish.target_max_tokens
    config.checked()
    if not 0 < wish.sample_percent <= 100:
        raise UserError(f"sample-percent is above 0 and at most 100, not {wish.sample_percent:g}")
    count = counter(wish.tokenizer or config.tokenizer.name, is_required=bool(wish.tokenizer), tell=tell)
    sources, output = _places(wish, config)
    made = Compressor(config, count, _asking(config, settings, shared), percent=wish.sample_percent, seed=wish.seed)
    metrics_file = _metrics_file(config, output)
    try:
        for source in sources:
            target = output / source.name if wish.source.is_dir() else output
            await made.run(source, target, is_dry=wish.is_dry)
        if not made.metrics.trajectories:
            raise UserError(f"there are no trajectories in {str(wish.source)!r}")
    finally:
        if metrics_file is not None and not wish.is_dry and made.metrics.trajectories:
            metrics_file.write_text(dumped(msgspec.to_builtins(made.metrics)) + "\n", encoding="utf-8")
    return CompressReport(output, made.metrics, None if wish.is_dry else metrics_file)


def _places(wish: CompressWish, config: CompressConfig) -> tuple[list[Path], Path]:
    source, suffix = wish.source, config.output.output_suffix
    if source.is_dir():
        found = sorted(source.glob("*.jsonl"))
        if not found:
            raise UserError(f"there is no .jsonl file in {str(source)!r}")
        return found, wish.output or source.with_name(f"{source.name}{suffix}")
    if not source.is_file():
        raise UserError(f"there is no {str(source)!r}")
    output = wish.output or source.with_name(f"{source.stem}{suffix}.jsonl")
    if output.resolve() == source.resolve():
        raise UserError("the output would take the place of the input; name another one (--output)")
    return [source], output


def _metrics_file(config: CompressConfig, output: Path) -> Path | None:
    if not config.metrics.enabled:
        return None
    return output.with_name(config.metrics.output_file or f"{output.stem}_metrics.json")


def _asking(config: CompressConfig, settings: Settings, process: ProcessParts) -> Ask:
    """Ask the model that sums up; it is found with the first question, so that short trajectories need none."""
    clients: list[ModelClient] = []
    part = config.summarization

    async def ask(system: str, text: str) -> str:
        if not clients:
            key = settings.lookup(part.api_key_env) if part.api_key_env else ""
            query = ModelQuery(name=part.model, base_url=part.base_url, api_key=key or "")
            options = msgspec.structs.replace(
                client_options(settings, process.window_memory), max_attempts=max(1, part.max_retries)
            )
            model = resolve_model(settings, process.http, query)
            clients.append(ModelClient([model], process.store(settings), process.clock, process.ids, options))
        request = ModelRequest(
            system=system,
            tools=(),
            units=build_units([Message(role="user", content=text)]),
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
